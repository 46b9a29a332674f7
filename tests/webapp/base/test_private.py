"""What the server stores is nobody else's to read: modes of files, sessions by digest, backups."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session

from tests.support.web import Browser
from webapp.operations import backup as backups
from webapp.ops import up
from webapp.ops.places import ROOT, OpsError
from webapp.ops.redis_server import free_port

OTHERS = stat.S_IRWXG | stat.S_IRWXO


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


MAKE = "from webapp.settings import STATE_DIR; (STATE_DIR / 'made').touch()"
"""What server, workers and `webapp.ops.prepare` begin with, and a file that they make then."""


def test_a_start_closes_an_open_directory_says_so_and_makes_only_private_files(
    tmp_path: Path, usual_umask: None
) -> None:
    state = tmp_path / "state"
    (state / "logs").mkdir(parents=True)
    for name in ("edgeloom.sqlite3", "logs/web.log"):
        (state / name).touch(mode=0o644)
    assert f"{state} was open to other users" in begin(state)
    found = [state, *state.glob("*"), *state.glob("logs/*")]
    made = {"edgeloom.sqlite3", "web.log", "secret_key", "static", "made"}
    assert made < {path.name for path in found}
    assert [str(path) for path in found if is_open(path)] == []
    assert "was open" not in begin(state)
    (empty := tmp_path / "new").mkdir()
    assert begin(empty) == "" and not is_open(empty), "nobody could read anything there"


def begin(directory: Path) -> str:
    """What a start says that makes a file in the directory."""
    environment = {**os.environ, "LOOM_STATE_DIR": str(directory)}
    environment.pop("DATABASE_URL", None)
    done = subprocess.run(
        (sys.executable, "-c", MAKE), cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & OTHERS)


@pytest.mark.django_db
def test_what_the_database_has_of_a_session_opens_none(alice: Browser, client: Any) -> None:
    key = alice.client.cookies["edgeloom_session"].value
    (row,) = Session.objects.all()
    assert key not in (row.session_key, row.session_data)
    assert alice.get("/session").status_code == 200
    client.cookies["edgeloom_session"] = row.session_key
    assert client.get("/api/session").status_code == 401


@pytest.mark.django_db
def test_a_session_that_ends_is_deleted(alice: Browser) -> None:
    alice.post("/logout", {})
    assert not Session.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_backup_is_private_from_its_first_byte(
    tmp_path: Path, usual_umask: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    monkeypatch.setattr(backups, "_dump", lambda *_: modes.extend(map(is_open, tmp_path.glob("b*"))) or {})
    backups.backup(tmp_path / "backup")
    assert modes == [False]
    assert not is_open(tmp_path / "backup")


def test_what_the_first_start_installs_can_be_read_without_its_rights(
    tmp_path: Path, usual_umask: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Emulations that root starts are not root: they import what `./loom up` has installed."""

    def set_up(redis: bool) -> bool:
        (tmp_path / "package").mkdir()
        raise OpsError("set up")

    monkeypatch.setenv("LOOM_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(up, "IS_CHECKOUT", True)
    monkeypatch.setattr(up, "set_up", set_up)
    with pytest.raises(OpsError, match="set up"):
        up.up(free_port(), with_model=False)
    (tmp_path / "secret").mkdir()
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("package", "secret")] == [0o755, 0o700]


BEGIN = """
import sys
from pathlib import Path
from engine.domain.errors import HostError
from webapp.ops.up import only_one
try:
    with only_one(Path(sys.argv[1]), "an address"):
        print("it runs")
except HostError as error:
    print(error)
"""
PLACES = {
    "a file": ("rmdir DIR && touch DIR", "File exists"),
    "read-only": ("mount -t tmpfs -o ro none DIR", "Read-only file system"),
    "full": ("mount -t tmpfs -o size=64k none DIR", "No space left on device"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_state_directory_that_cannot_be_used_is_said_in_a_sentence(tmp_path: Path, place: str) -> None:
    state = tmp_path / "state"
    state.mkdir()
    make, why = PLACES[place]
    command = f'{make.replace("DIR", str(state))} && exec "$@"'
    asked = ("unshare", "--map-root-user", "--mount", "sh", "-c", command, "sh")
    said = subprocess.run(
        (*asked, sys.executable, "-c", BEGIN, str(state)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.startswith(f"{state} cannot be the state directory: {why}."), said.stdout
