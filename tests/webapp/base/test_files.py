"""Files of people: read in a process of their own, refused in a sentence; what a kill leaves goes."""

from __future__ import annotations

import fcntl
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

import topologies
from engine.confined import Confined
from engine.models import catalogue
from engine.models.weights import headers
from tests.support.web import Browser
from tests.webapp.clusters.test_machines import BOARD
from tests.webapp.clusters.test_uploads import file_of, size_of
from webapp.base import files
from webapp.http import uploads

pytestmark = pytest.mark.django_db(transaction=True)
DEEP = 100_000
DEMO = Path(catalogue.resolve("demo-lm")[1].directory)


@pytest.fixture
def nothing_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions that read files fail in this process; other processes have them as they are."""
    readers = [one.function for one in vars(files).values() if isinstance(one, Confined)]
    assert len(readers) == 9
    for reader in readers:
        monkeypatch.setattr(
            reader, "__code__", (lambda *given: pytest.fail("read in the web process")).__code__
        )


def send(browser: Browser, path: str, name: str, data: bytes, **fields: str) -> Any:
    return browser.client.post(
        f"/api{path}",
        {"file": SimpleUploadedFile(name, data), **fields},
        headers={"X-CSRFToken": browser.client.cookies["csrftoken"].value},
    )


def upload_model(browser: Browser, name: str, **contents: bytes) -> Any:
    sent = [
        SimpleUploadedFile(path.name, path.read_bytes())
        for path in DEMO.iterdir()
        if path.name not in contents
    ]
    sent += [SimpleUploadedFile(path, data) for path, data in contents.items()]
    return browser.client.post(
        "/api/models",
        {"files": sent, "name": name},
        headers={"X-CSRFToken": browser.client.cookies["csrftoken"].value},
    )


def test_every_file_of_a_person_is_read_in_another_process(
    alice: Browser, nothing_read_here: None, settings: Any, tmp_path: Path
) -> None:
    settings.MODEL_STORE, settings.MACHINES_DIR = str(tmp_path / "store"), tmp_path / "machines"
    machine = {"name": "board", "calibration": json.loads(BOARD.to_json())}
    assert alice.post("/machines", machine).json()["flop_per_s"] == BOARD.device.flop_per_s
    assert upload_model(alice, "mine").status_code == 201
    picture = send(alice, "/models/tiny-vit/picture", "cat.png", file_of(30, 20)).json()
    assert size_of(picture["image"]) == (24, 24)
    drawing = topologies.dump_toml(topologies.load("lab-3"))
    assert alice.post("/clusters/import", {"text": drawing}).json()["spec"]["name"] == "lab-3"
    assert (
        alice.post("/clusters/import", {"text": "graph [ node [ id 1 ] ]", "kind": "gml"}).status_code == 200
    )
    assert send(alice, "/scenarios", "mine.toml", b"").json() == {"changes": []}
    rows = b"at_s,prompt_tokens,new_tokens\n0,8,4\n"
    assert len(send(alice, "/requests", "mine.csv", rows).json()["requests"]) == 1
    prompts = send(alice, "/prompts", "mine.jsonl", b"{", model="demo-lm", new_tokens="4").json()
    assert prompts["detail"].startswith("mine.jsonl, line 1: is no JSON")
    assert alice.post("/experiments", {"toml": "title = 7"}).status_code == 422
    assert send(alice, "/experiments/study", "study.zip", b"").status_code == 422


def header_of(shape: str) -> bytes:
    text = ('{"wte": {"dtype": "F32", "shape": ' + shape + ', "data_offsets": [0, 4]}}').encode()
    return len(text).to_bytes(8, "little") + text + bytes(4)


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ("[" + ",".join(["9" * 4000] * 4000) + "]", "has 4000 axes, expected at most 8"),
        ("[" + "9" * 4000 + "]", "does not say where wte is"),
        ("[" * DEEP + "]" * DEEP, "nested too deeply"),
    ],
    ids=["a product of 64 million digits", "a large number", "nested"],
)
def test_a_header_that_would_take_hours_is_refused_before_anything_is_multiplied(
    alice: Browser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shape: str, why: str
) -> None:
    monkeypatch.setattr(headers, "prod", lambda shape: pytest.fail("multiplied"))
    (tmp_path / "model.safetensors").write_bytes(header_of(shape))
    with pytest.raises(headers.SpecError, match=why):
        headers.header(tmp_path / "model.safetensors")
    answer = upload_model(alice, "mine", **{"model.safetensors": header_of(shape)})
    assert answer.status_code == 422 and why in answer.json()["detail"]
    assert answer.json()["detail"].startswith("model.safetensors: ")


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "model.safetensors"])
def test_what_is_wrong_with_an_upload_names_no_path_of_the_server(
    alice: Browser, settings: Any, tmp_path: Path, name: str
) -> None:
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    answer = upload_model(alice, "mine", **{name: b"x"})
    assert str(tmp_path) not in answer.content.decode()
    assert answer.status_code == (201 if name == "tokenizer_config.json" else 422)


@pytest.mark.parametrize("name", ["deep.toml", "deep.json"])
def test_a_deeply_nested_scenario_is_refused(alice: Browser, name: str) -> None:
    deep = b"[" * DEEP + b"]" * DEEP
    answer = send(alice, "/scenarios", name, deep if name.endswith("json") else b"a = " + deep)
    assert answer.status_code == 422 and "nested too deeply" in answer.json()["detail"]


def test_a_start_removes_the_uploads_of_ended_processes_and_no_others(settings: Any, tmp_path: Path) -> None:
    settings.STATE_DIR = tmp_path
    left, used = tmp_path / "edgeloom-upload-left", tmp_path / "edgeloom-upload-used"
    for folder in (left, used):
        folder.mkdir()
        (folder / "model.safetensors").touch()
    held = os.open(used, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    uploads.begin()
    mine = Path(settings.FILE_UPLOAD_TEMP_DIR)
    uploads.begin()
    assert mine.parent == tmp_path and mine.exists()
    assert not left.exists() and (used / "model.safetensors").exists()
    os.close(held)


def test_processes_that_start_at_the_same_time_remove_nothing_of_each_other(
    settings: Any, tmp_path: Path
) -> None:
    """Threads stand for processes: a lock belongs to what opened the directory."""
    settings.STATE_DIR = tmp_path
    with ThreadPoolExecutor(8) as starts:
        for each in [starts.submit(uploads.begin) for _ in range(200)]:
            each.result()
    assert len(list(tmp_path.glob(f"{uploads.PREFIX}*"))) == 200
