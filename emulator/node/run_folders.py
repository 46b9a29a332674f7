"""The folders of a node's runs: each is its process's as long as that has it locked, and goes with it."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from engine.domain.cache_directory import cache_directory


def _runs() -> Path:
    return cache_directory() / "node-runs"


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """No other process of this user makes or removes such folders meanwhile: one that was just made is not
    locked yet.
    """
    with _runs().with_suffix(".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def own_folder(within: Path | None = None) -> tuple[Path, BinaryIO]:
    """A folder for this process's run, `within` the folder of this user's runs if no other, and its lock."""
    _runs().mkdir(parents=True, exist_ok=True, mode=0o700)
    with _alone():
        made = Path(tempfile.mkdtemp(dir=within or _runs()))
        lock = (made / "lock").open("wb")
        fcntl.flock(lock, fcntl.LOCK_EX)
    return made, lock


def remove_leftovers() -> None:
    """Remove the folders of runs whose process was killed."""
    if not _runs().exists():
        return
    with _alone():
        for left in _runs().glob("*"):
            with contextlib.suppress(OSError), (left / "lock").open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
