"""Backup and restore: every row comes back, and nothing is overwritten by accident."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core import serializers
from safetensors.numpy import load_file, save_file

from engine.domain.errors import HostError, SpecError
from engine.models import catalogue
from tests.support.web import RedisServer, person, recorded, request_body, run_spec
from webapp.base.redis import client
from webapp.clusters import model_library
from webapp.events import stream
from webapp.events.models import EventSegment
from webapp.jobs.announcement import Announcement
from webapp.operations import backup as backups
from webapp.ops.places import ROOT
from webapp.ops.up import only_one
from webapp.runs import services
from webapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def places(settings: Any, tmp_path: Path) -> None:
    settings.MODEL_STORE = str(tmp_path / "store")
    settings.MODEL_CACHE = tmp_path / "cache"
    settings.MACHINES_DIR = tmp_path / "machines"
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # nobody works


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """demo-lm of one narrow layer, all zeros: every test packs it, and most unpack it."""
    demo, folder = Path(catalogue.resolve("demo-lm")[1].directory), tmp_path_factory.mktemp("model")
    smaller = {160: 16, 480: 48, 640: 64}
    tensors = {
        name: np.zeros([smaller.get(size, size) for size in tensor.shape], np.float32)
        for name, tensor in load_file(demo / "model.safetensors").items()
        if ".h." not in name or ".h.0." in name
    }
    save_file(tensors, folder / "model.safetensors")
    config = json.loads((demo / "config.json").read_text()) | {"n_embd": 16, "n_layer": 1}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def full(model: Path, tmp_path: Path, settings: Any) -> dict[str, list[str]]:
    """People, a run with a report and events, a model, a calibrated machine; every row as it is stored."""
    ann = person("ann", "operator")
    report = recorded()[1].model_dump(mode="json")
    run = Run.objects.create(
        owner=ann,
        request=request_body(),
        spec=run_spec().model_dump(mode="json"),
        report=report,
        status="finished",
        tags=["a", "ä"],
        cluster_name="lab-3",
        strategy="voltage",
    )
    EventSegment.objects.create(run=run, first=1, last=2, batches=bytes(range(256)))
    model_library.add(model, "mine", by="ann")
    settings.MACHINES_DIR.mkdir()
    (settings.MACHINES_DIR / "desk.json").write_text("{}")
    return rows()


def rows() -> dict[str, list[str]]:
    found = {}
    for model in backups.tables():
        every = model._base_manager.order_by("pk")
        found[model._meta.label] = [repr(serializers.serialize("python", [row])) for row in every]
    return found


def test_every_row_model_and_machine_comes_back_in_an_empty_database(
    full: dict[str, list[str]], tmp_path: Path, settings: Any
) -> None:
    file = tmp_path / "a.backup"
    counts = backups.backup(file)
    assert counts["runs.Run"] == 1 and counts["auth.User"] == 1
    assert file.stat().st_mode & 0o077 == 0, "others may not read password hashes"
    Run.objects.all().delete()
    User.objects.all().delete()
    digest = model_library.StoredModel.objects.get().digest
    model_library.remove("mine")
    (settings.MACHINES_DIR / "desk.json").unlink()
    backups.restore(file, replace=False)
    assert rows() == full
    assert model_library.directory_of(digest).is_dir()
    assert (settings.MACHINES_DIR / "desk.json").exists()
    assert Run.objects.create(request={}, spec={}).pk == Run.objects.order_by("pk")[0].pk + 1


def test_data_is_replaced_only_when_that_is_asked_for(full: dict[str, list[str]], tmp_path: Path) -> None:
    file = tmp_path / "a.backup"
    backups.backup(file)
    later = Run.objects.create(request={}, spec={})
    with pytest.raises(SpecError, match="--replace"):
        backups.restore(file, replace=False)
    assert Run.objects.filter(pk=later.pk).exists()
    backups.restore(file, replace=True)
    assert rows() == full


def test_a_backup_never_overwrites_a_file(full: dict[str, list[str]], tmp_path: Path) -> None:
    file = tmp_path / "a.backup"
    file.write_text("precious")
    with pytest.raises(SpecError, match="exists"):
        backups.backup(file)
    assert file.read_text() == "precious" and list(tmp_path.glob("*.part")) == []


def changed(file: Path, about: dict[str, Any]) -> Path:
    """The backup with another `backup.json`."""
    folder = unpacked(file, file.with_suffix(".folder"))
    known = json.loads((folder / "backup.json").read_text())
    (folder / "backup.json").write_text(json.dumps(known | about))
    with tarfile.open(file.with_suffix(".changed"), "w:gz") as archive:
        archive.add(folder, ".")
    return file.with_suffix(".changed")


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        ({"format": 99}, "format 99"),
        ({"migrations": ["runs.0999_future"]}, "newer release: it has runs.0999"),
    ],
)
def test_a_backup_of_a_newer_release_changes_nothing(
    full: dict[str, list[str]], tmp_path: Path, about: dict[str, Any], sentence: str
) -> None:
    file = tmp_path / "a.backup"
    backups.backup(file)
    with pytest.raises(SpecError, match=sentence):
        backups.restore(changed(file, about), replace=True)
    assert rows() == full


def test_a_file_that_is_no_backup_or_is_cut_off_changes_nothing(
    full: dict[str, list[str]], tmp_path: Path
) -> None:
    file = tmp_path / "a.backup"
    backups.backup(file)
    short = tmp_path / "short.backup"
    short.write_bytes(file.read_bytes()[:-2000])
    (tmp_path / "text").write_text("no backup")
    for wrong in (short, tmp_path / "text", tmp_path / "nowhere"):
        with pytest.raises(SpecError):
            backups.restore(wrong, replace=True)
    assert rows() == full


def test_a_backup_without_newer_columns_gets_their_defaults(
    full: dict[str, list[str]], tmp_path: Path
) -> None:
    """As one of the release before has none of `need`."""
    file = tmp_path / "a.backup"
    backups.backup(file)
    folder = unpacked(file, tmp_path / "old")
    table = folder / "data" / "runs.run.jsonl"
    row = json.loads(table.read_text())
    del row["fields"]["need"]
    table.write_text(json.dumps(row) + "\n")
    with tarfile.open(tmp_path / "old.backup", "w:gz") as archive:
        archive.add(folder, ".")
    backups.restore(tmp_path / "old.backup", replace=True)
    assert Run.objects.get().need == {}


def unpacked(file: Path, folder: Path) -> Path:
    folder.mkdir()
    subprocess.run(["tar", "--extract", "--gzip", "--file", file, "--directory", folder], check=True)
    return folder


def packed(folder: Path) -> Path:
    file = folder.with_suffix(".backup")
    with tarfile.open(file, "w:gz") as archive:
        archive.add(folder, ".")
    return file


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../outside", tarfile.REGTYPE),
        ("data/../../outside", tarfile.REGTYPE),
        ("{folder}/outside", tarfile.REGTYPE),
        ("outside", tarfile.SYMTYPE),
        ("outside", tarfile.LNKTYPE),
        ("outside", tarfile.FIFOTYPE),
    ],
)
def test_a_backup_writes_nothing_but_files_of_its_own(
    full: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: bytes,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # below which it is unpacked
    file = tmp_path / "a.backup"
    backups.backup(file)
    folder = unpacked(file, tmp_path / "folder")
    entry = tarfile.TarInfo(name.format(folder=tmp_path))
    entry.type, entry.linkname = kind, "backup.json"
    with tarfile.open(file, "w:gz") as archive:
        archive.add(folder, ".")
        archive.addfile(entry)
    with pytest.raises(SpecError, match="is no file of a backup"):
        backups.restore(file, replace=True)
    assert rows() == full
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("damage", ["a table is missing", "a row is missing", "a row is cut", "no such row"])
def test_a_backup_with_a_damaged_table_changes_nothing(
    full: dict[str, list[str]], tmp_path: Path, damage: str
) -> None:
    file = tmp_path / "a.backup"
    backups.backup(file)
    folder = unpacked(file, tmp_path / "damaged")
    table = folder / "data" / "runs.eventsegment.jsonl"
    if damage == "a table is missing":
        table.unlink()
    else:
        row = table.read_text()
        table.write_text({"a row is missing": "", "a row is cut": row[:-90], "no such row": "{}"}[damage])
    with pytest.raises(SpecError, match=r"rows of runs\.EventSegment|cannot be read"):
        backups.restore(packed(folder), replace=True)
    assert rows() == full


def test_a_backup_whose_model_was_changed_changes_nothing(
    full: dict[str, list[str]], tmp_path: Path, settings: Any
) -> None:
    file = tmp_path / "a.backup"
    backups.backup(file)
    folder = unpacked(file, tmp_path / "changed")
    (stored,) = (folder / "models").iterdir()
    (stored / "generation_config.json").write_text('{"other": 1}')
    before = sorted(path.name for path in Path(settings.MODEL_STORE).iterdir())
    with pytest.raises(SpecError, match="is not what its digest says"):
        backups.restore(packed(folder), replace=True)
    assert rows() == full
    assert sorted(path.name for path in Path(settings.MODEL_STORE).iterdir()) == before


def test_a_backup_into_a_directory_that_is_not_there_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for target in (tmp_path / "none" / "a.backup", Path("/dev/null/a.backup")):
        with pytest.raises(HostError, match=f"{target} was not written: .*ot a directory|No such file"):
            backups.backup(target)


def test_nothing_is_replaced_below_an_up_whose_redis_nobody_else_knows(
    full: dict[str, list[str]], tmp_path: Path, settings: Any
) -> None:
    file = tmp_path / "a.backup"
    backups.backup(file)
    settings.STATE_DIR = tmp_path / "state"
    settings.STATE_DIR.mkdir()
    with (
        only_one(settings.STATE_DIR, "http://127.0.0.1:8000"),
        pytest.raises(HostError, match=r"runs here \(process \d+, http://127\.0\.0\.1:8000\): stop it"),
    ):
        backups.restore(file, replace=True)
    assert rows() == full
    backups.restore(file, replace=True)


@pytest.mark.parametrize("command", [["password", "eve"], ["backup", "a.backup"], ["tidy"]])
def test_a_command_where_no_server_has_been_is_refused_in_a_sentence(
    command: list[str], tmp_path: Path
) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "DATABASE_URL"}
    environment["LOOM_STATE_DIR"] = str(tmp_path / "state")
    (tmp_path / "state").mkdir()
    done = subprocess.run(
        (sys.executable, str(ROOT / "loom"), *command),
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "edgeloom.sqlite3 has no data of EdgeLoom: set LOOM_STATE_DIR" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_is_restored_below_running_workers(
    full: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.backup"
    backups.backup(file)
    worker = Announcement(worker="plan@x/h/1/1", place="plan@x/h", node="plan@x", pid=1, queue="plan")
    monkeypatch.setattr(backups, "announced", lambda: [worker])
    with pytest.raises(HostError, match=r"Workers run \(plan@x\)"):
        backups.restore(file, replace=True)
    assert rows() == full


@pytest.mark.redis
def test_restored_runs_do_not_meet_events_of_later_ones(
    full: dict[str, list[str]], tmp_path: Path, own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is made after the restore may have the number of one that was made after the backup."""
    file = tmp_path / "a.backup"
    backups.backup(file)
    later = Run.objects.create(request={}, spec={})
    services.announce(later)
    assert stream.last_added(later.pk) == 1
    backups.restore(file, replace=True)
    assert stream.last_added(later.pk) == 0
    assert not client().exists(stream.fence_of(later.pk))
