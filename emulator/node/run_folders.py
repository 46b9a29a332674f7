"""The folders of a node's runs: each is its process's as long as that has it locked, and goes with it."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO

from engine.domain.cache_directory import cache_directory


def _runs() -> Path:
    return cache_directory() / "node-runs"


def own_folder() -> tuple[Path, BinaryIO]:
    """A folder for this process's run, and its lock."""
    _runs().mkdir(parents=True, exist_ok=True, mode=0o700)
    made = Path(tempfile.mkdtemp(dir=_runs()))
    lock = (made / "lock").open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return made, lock


def remove_leftovers() -> None:
    """Remove the folders of runs whose process was killed."""
    for left in _runs().glob("*"):
        with contextlib.suppress(OSError), (left / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
