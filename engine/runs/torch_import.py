"""Imports torch in the parent of all devices, beside other work, and leaves a process that can be forked."""

from __future__ import annotations

import threading
import time
from pathlib import Path

CHECK_S = 0.0005


class TorchImport:
    """Imports torch in a thread from now on, until `finish`."""

    def __init__(self) -> None:
        self._thread = threading.Thread(target=_import_torch, name="import")
        self._thread.start()

    def finish(self) -> None:
        """Wait until torch is imported and the thread has ended."""
        wait_for_end(self._thread)


def wait_for_end(thread: threading.Thread) -> None:
    """Wait until the system's thread has ended too, which `join` does not: it ends somewhat later.

    On its way out, the thread that imported torch holds a lock of MKL's table of threads. A process forked at
    that moment inherits the lock as taken, and its first product waits for it for ever: 2 of 100 processes
    that were forked right after `join` on a busy machine.
    """
    thread.join()
    task = Path(f"/proc/self/task/{thread.native_id}")
    while task.exists():
        time.sleep(CHECK_S)


def _import_torch() -> None:
    import torch

    torch.set_num_threads(1)  # a process with OpenMP threads cannot be forked safely
