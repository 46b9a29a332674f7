"""`python -m bench.nodes.taker CORE`: takes a core for half of every 200 µs, as root, until it is killed.

What else runs there then has a core of half the speed, whether it has just begun or computes all the time.
A quota, which the kernel takes off in milliseconds, lets what has waited begin at full speed.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from webapp.ops.places import ROOT

TURN_S = 200e-6


@contextmanager
def half_of(core: int) -> Iterator[None]:
    """Within the block the core has half its speed."""
    process = subprocess.Popen((sys.executable, "-m", __spec__.name, str(core)), cwd=ROOT)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main(core: int) -> None:
    gc.disable()
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    ends_s = time.monotonic()
    while True:
        ends_s = max(ends_s, time.monotonic() - TURN_S) + TURN_S
        while time.monotonic() < ends_s - TURN_S / 2:
            pass
        time.sleep(max(0.0, ends_s - time.monotonic()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
