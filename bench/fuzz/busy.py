"""Keeps the cores of this machine busy, as other programs do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BUSY_LOOPS = 2
BUSY_LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
"""Ends with the process that started it, however that ends."""


@contextmanager
def busy_machine(loops: int = BUSY_LOOPS) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Inside this block so many processes compute without a pause."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(loops)]
    try:
        yield busy
    finally:
        for process in busy:
            process.kill()
            process.wait()
