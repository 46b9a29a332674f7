"""Models that people add: kept by digest in a store, fetched and verified by workers, never named by path."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from engine.domain.errors import HostError, SpecError
from engine.domain.stored import read_spec
from engine.models import catalogue
from engine.models.weights.manifest import manifest_of
from engine.runs.predict import predict
from tests.support.web import Browser, person, request_body
from webapp.accounts.models import AuditEntry
from webapp.clusters import model_library
from webapp.clusters.catalogue import resolve_model
from webapp.clusters.models import StoredModel
from webapp.clusters.store import Store
from webapp.runs.models import Run
from webapp.runs.requests import RunRequest, spec_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def demo() -> Path:
    """The one directory with trained weights that this project has."""
    return Path(catalogue.resolve("demo-lm")[1].directory)


@pytest.fixture(autouse=True)
def places(settings: Any, tmp_path: Path) -> None:
    """A store that all share, and the first worker's folder for copies."""
    settings.MODEL_STORE = str(tmp_path / "store")
    settings.MODEL_CACHE = tmp_path / "first worker"


@pytest.fixture
def mine(demo: Path, tmp_path: Path) -> Path:
    """A model of somebody's: the same tensors, another text in a file that runs read."""
    directory = tmp_path / "mine"
    shutil.copytree(demo, directory)
    (directory / "generation_config.json").write_text("{}")
    return directory


def test_the_digest_is_of_names_and_contents_and_of_nothing_else(mine: Path, tmp_path: Path) -> None:
    before = manifest_of(mine).digest
    other = tmp_path / "elsewhere"
    shutil.copytree(mine, other)
    (other / "README.md").write_text("said anew")
    assert manifest_of(other).digest == before
    (other / "config.json").write_text((mine / "config.json").read_text() + " ")
    assert manifest_of(other).digest != before


def test_a_chat_template_belongs_to_a_model_and_travels_with_it(mine: Path, tmp_path: Path) -> None:
    (mine / "chat_template.jinja").write_text("{{ messages }}")
    (mine / "tokenizer_config.json").write_text("{}")
    model_library.add(mine, "mine", "ann")
    manifest = manifest_of(mine)
    assert {"chat_template.jinja", "tokenizer_config.json"} <= manifest.files.keys()
    Store(str(tmp_path / "store")).fetch(manifest.digest, tmp_path / "copy")
    assert (tmp_path / "copy" / "chat_template.jinja").read_text() == "{{ messages }}"


def test_two_workers_with_different_folders_get_the_same_model(
    mine: Path, settings: Any, tmp_path: Path
) -> None:
    """One is the machine where the model was added, the other has nothing."""
    added = model_library.add(mine, "mine", by="ann")
    first = model_library.directory_of(added.digest)
    settings.MODEL_CACHE = tmp_path / "second worker"
    second = model_library.directory_of(added.digest)
    assert first.parent != second.parent
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
    assert model_library.directory_of(added.digest) == second
    names = sorted(path.name for path in second.iterdir())
    assert names == ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json"]


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "manifest.json"])
def test_a_tampered_file_is_refused_and_nothing_of_it_stays(mine: Path, file: str, settings: Any) -> None:
    added = model_library.add(mine, "mine", by="ann")
    path = Path(settings.MODEL_STORE) / added.digest / file
    text = bytearray(path.read_bytes())
    text[len(text) // 2] ^= 1
    path.write_bytes(text)
    with pytest.raises(HostError, match=r"other contents|has no model"):
        model_library.directory_of(added.digest)
    assert not settings.MODEL_CACHE.exists() or list(settings.MODEL_CACHE.iterdir()) == []


def test_a_copy_that_was_changed_later_is_refused(mine: Path) -> None:
    added = model_library.add(mine, "mine", by="ann")
    (model_library.directory_of(added.digest) / "tokenizer.json").write_text("{}")
    with pytest.raises(HostError, match="changed after it had been fetched"):
        model_library.directory_of(added.digest)


def test_a_manifest_that_names_a_path_is_refused(mine: Path, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    manifest = manifest_of(mine)
    evil = manifest.model_copy(update={"files": {"../../out": next(iter(manifest.files.values()))}})
    (tmp_path / "store" / evil.digest).mkdir(parents=True)
    (tmp_path / "store" / evil.digest / "manifest.json").write_text(evil.model_dump_json())
    shutil.copy(mine / next(iter(manifest.files)), tmp_path / "out")  # what the path leads to, as it says
    with pytest.raises(HostError, match="other contents"):
        store.fetch(evil.digest, tmp_path / "a" / "b" / "copy")
    assert not (tmp_path / "a" / "out").exists()


def test_a_manifest_that_was_changed_together_with_its_files_is_refused(mine: Path, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    digest = store.add(mine).digest
    (mine / "generation_config.json").write_text('{"other": 1}')
    other = store.add(mine).digest
    shutil.rmtree(tmp_path / "store" / digest)
    (tmp_path / "store" / other).rename(tmp_path / "store" / digest)
    with pytest.raises(HostError, match="other contents"):
        store.fetch(digest, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_any_place_that_fsspec_reaches_is_a_store(mine: Path, tmp_path: Path) -> None:
    store = Store("memory://models")
    digest = store.add(mine).digest
    assert store.digests() == (digest,)
    store.fetch(digest, tmp_path / "copy")
    assert manifest_of(tmp_path / "copy").digest == digest
    store.remove(digest)
    assert store.digests() == ()


def test_a_store_that_no_library_reaches_says_so() -> None:
    with pytest.raises(HostError, match="LOOM_MODEL_STORE is nowhere://x"):
        Store("nowhere://x")


# Names --------------------------------------------------------------------------------------------
def test_removing_the_last_name_removes_the_files(mine: Path, settings: Any) -> None:
    digest = model_library.add(mine, "one", by="ann").digest
    model_library.add(mine, "two", by="bob")
    model_library.remove("one")
    assert (Path(settings.MODEL_STORE) / digest).is_dir()
    model_library.remove("two")
    assert not (Path(settings.MODEL_STORE) / digest).exists()
    with pytest.raises(SpecError, match="Nobody has added a model two"):
        model_library.remove("two")


@pytest.mark.parametrize("name", ["demo-lm", "", "../x", "a b", "x" * 61, ".hidden"])
def test_a_name_in_use_or_no_name_is_refused(mine: Path, name: str) -> None:
    with pytest.raises(SpecError):
        model_library.add(mine, name, by="ann")
    assert not StoredModel.objects.exists()


def test_a_directory_with_broken_weights_is_not_added(mine: Path, settings: Any) -> None:
    with (mine / "model.safetensors").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(SpecError):
        model_library.add(mine, "mine", by="ann")
    assert not StoredModel.objects.exists() and not Path(settings.MODEL_STORE).exists()


# Runs ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("model", ["demo-lm", "mine", "tiny-gpt2"])
def test_a_run_has_no_path_and_a_worker_finds_its_model(mine: Path, model: str, tmp_path: Path) -> None:
    model_library.add(mine, "mine", by="ann")
    body = request_body(model=model, workload={"prompt": "Once upon a time", "new_tokens": 2})
    spec = spec_of(RunRequest.parse(body, "test"))
    assert spec.weights.directory == "" and str(mine) not in spec.model_dump_json()
    report = predict(model_library.with_local_weights(spec))
    assert report.outcome.kind == "finished"
    if model != "tiny-gpt2":
        assert report.spec.weights.directory
        assert model_library.without_place(report).spec.weights == spec.weights


@pytest.mark.redis
def test_a_queued_run_needs_the_digest_of_its_model(
    mine: Path, alice: Browser, live_redis: redis.Redis
) -> None:
    digest = model_library.add(mine, "mine", by="ann").digest
    run_id = alice.post("/runs", request_body(model="mine")).json()["id"]
    run = Run.objects.get(pk=run_id)
    assert run.need["model"] == digest
    assert read_spec(run.spec, "it").needed().weights.digest == digest


# The browser --------------------------------------------------------------------------------------
def upload(browser: Browser, name: str, directory: Path, *without: str) -> Any:
    files = [path for path in sorted(directory.iterdir()) if path.name not in without]
    return browser.client.post(
        "/api/models",
        {"name": name, "files": [SimpleUploadedFile(path.name, path.read_bytes()) for path in files]},
        headers={"X-CSRFToken": browser.client.cookies["csrftoken"].value},
    )


def test_an_operator_uploads_a_model_and_it_is_offered(alice: Browser, mine: Path) -> None:
    answer = upload(alice, "mine", mine)
    assert answer.status_code == 201, answer.content
    assert answer.json()["digest"] == manifest_of(mine).digest
    assert [row["name"] for row in alice.get("/models").json()["models"]] == ["mine"]
    assert "mine" in {row["name"] for row in alice.get("/catalogue").json()["models"]}
    assert resolve_model("mine", None)[1].digest == answer.json()["digest"]
    assert alice.delete("/models/mine").status_code == 204
    assert alice.get("/models").json()["models"] == []


def test_the_catalogue_has_an_added_model_once_and_no_longer_when_it_is_removed(
    alice: Browser, mine: Path
) -> None:
    def times_offered() -> int:
        return [row["name"] for row in alice.get("/catalogue").json()["models"]].count("mine")

    model_library.add(mine, "mine", "alice")
    assert [times_offered(), times_offered()] == [1, 1]
    model_library.remove("mine")
    assert times_offered() == 0


def test_only_who_added_a_model_removes_it_and_the_log_says_who(alice: Browser, demo: Path) -> None:
    model_library.add(demo, "mine", by="alice")
    person("bob", "operator")
    bob = Browser()
    bob.log_in("bob")
    refused = bob.delete("/models/mine")
    assert refused.status_code == 403 and "Model mine belongs to alice" in refused.json()["detail"]
    assert StoredModel.objects.filter(name="mine").exists()
    assert alice.delete("/models/mine").status_code == 204
    model_library.add(demo, "ours", by="./loom models add")
    assert alice.delete("/models/ours").status_code == 403
    User.objects.filter(username="bob").update(is_superuser=True)
    assert bob.delete("/models/ours").status_code == 204
    said = AuditEntry.objects.filter(action="deleted").values_list("who", "what")
    assert set(said) == {("alice", "model mine"), ("bob", "model ours")}


def test_a_json_file_that_would_fill_the_memory_is_refused_unread(mine: Path) -> None:
    with (mine / "config.json").open("r+b") as file:
        file.truncate(20_000_001)
    with pytest.raises(SpecError, match=r"config\.json: is larger than 20,000,000 bytes"):
        model_library.add(mine, "mine", by="ann")


def test_an_upload_with_a_name_twice_is_refused(alice: Browser) -> None:
    files = [SimpleUploadedFile("config.json", b"{}"), SimpleUploadedFile("config.json", b"[]")]
    answer = alice.client.post(
        "/api/models",
        {"name": "mine", "files": files},
        headers={"X-CSRFToken": alice.client.cookies["csrftoken"].value},
    )
    assert answer.status_code == 422 and "with different names" in answer.json()["detail"]


def test_what_is_no_model_is_refused_with_the_reason(alice: Browser, mine: Path) -> None:
    without = upload(alice, "mine", mine, "model.safetensors")
    assert without.status_code == 422 and "model.safetensors" in without.json()["detail"]
    (mine / "config.json").write_text(json.dumps({"model_type": "unheard-of"}))
    assert upload(alice, "mine", mine).status_code == 422
    assert alice.get("/models").json()["models"] == []


def test_a_model_over_the_limit_and_one_of_a_viewer_are_refused(
    alice: Browser, victor: Browser, mine: Path, settings: Any
) -> None:
    assert upload(victor, "mine", mine).status_code == 403
    settings.MODEL_BYTES = 1000
    refused = upload(alice, "mine", mine)
    assert refused.status_code == 422 and "the limit is 1 kB" in refused.json()["detail"]


def test_all_models_together_have_a_limit(mine: Path, settings: Any) -> None:
    first = model_library.add(mine, "first", "ada")
    settings.MODELS_BYTES = 2 * first.bytes - 1
    with pytest.raises(SpecError, match="remove some, or set LOOM_MODELS_BYTES"):
        model_library.add(mine, "second", "ada")
    settings.MODELS_BYTES = 3 * first.bytes
    model_library.add(mine, "second", "ada")
