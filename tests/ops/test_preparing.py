"""The database is prepared when it is new, when the code changes, and whenever others may have changed it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from webapp.ops import up


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """One entry for each time that the database was prepared; its file is made by the first."""
    times: list[str] = []

    begin = subprocess.Popen

    def prepare(command: Any, **options: Any) -> subprocess.Popen[str]:
        times.append("prepared")
        (tmp_path / "edgeloom.sqlite3").touch()
        return begin(("echo", "Administrator admin"), **options)

    monkeypatch.setenv("LOOM_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr(up.subprocess, "Popen", prepare)
    return times


def test_a_second_start_of_the_same_code_prepares_nothing(prepared: list[str]) -> None:
    assert up.prepare_database({}) == ["Administrator admin"]
    assert up.prepare_database({}) == []
    assert len(prepared) == 1


def test_changed_code_prepares_again(
    prepared: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lock = tmp_path / "runtime.txt"
    lock.write_text("Django==1\n")
    monkeypatch.setattr(up, "RUNTIME_LOCK", lock)
    up.prepare_database({})
    lock.write_text("Django==2\n")
    up.prepare_database({})
    assert len(prepared) == 2


def test_a_database_that_was_removed_is_prepared_again(prepared: list[str], tmp_path: Path) -> None:
    up.prepare_database({})
    (tmp_path / "edgeloom.sqlite3").unlink()
    up.prepare_database({})
    assert len(prepared) == 2


def test_a_database_of_several_machines_is_prepared_at_every_start(
    prepared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://localhost/edgeloom")
    up.prepare_database({})
    up.prepare_database({})
    assert len(prepared) == 2
