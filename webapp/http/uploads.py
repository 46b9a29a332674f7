"""The directory of this process in which files lie while they are sent. A start removes what a kill left."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from django.conf import settings

PREFIX = "edgeloom-upload-"


def begin() -> None:
    """Remove what processes left that do not run any more, and keep uploads in a new directory.

    A process holds the lock of its directory for as long as it runs, however it ends. That of the state
    directory keeps others from removing a directory between its making and its lock.
    """
    state = os.open(settings.STATE_DIR, os.O_RDONLY)
    try:
        fcntl.flock(state, fcntl.LOCK_EX)
        for path in settings.STATE_DIR.glob(f"{PREFIX}*"):
            _remove_unless_used(path)
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=settings.STATE_DIR)
        fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_SH)
    finally:
        os.close(state)
    settings.FILE_UPLOAD_TEMP_DIR = folder


def _remove_unless_used(path: Path) -> None:
    try:
        opened = os.open(path, os.O_RDONLY)
    except OSError:
        return  # another process has just removed it
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        pass  # its process runs
    finally:
        os.close(opened)
