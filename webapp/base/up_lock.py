"""The file whose lock says that `up` runs in a state directory; the kernel releases it when `up` ends."""

from __future__ import annotations

import fcntl
from contextlib import suppress
from pathlib import Path

UP_LOCK = "up.lock"


def holder(directory: Path) -> str:
    """What the `up` that runs there has written of itself; "" if none runs."""
    with suppress(FileNotFoundError), (directory / UP_LOCK).open(encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return lock.read().strip()
    return ""
