"""What device processes do that do not get ready: the processor time they used, where their threads are."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence

from engine.runs.children import Child
from engine.runs.pool import DevicePool

STACKS_S = 1.0
"""Wall seconds in which processes write their stacks: nothing tells which line is the last."""


def used(late: Sequence[Child]) -> str:
    """How much processor time each has used: one that hangs in a lock none, one that spins all."""
    return ", ".join(f"{child.name} {child.processor_s():.1f} s" for child in late)


def log_stacks(pool: DevicePool, late: Sequence[Child], read: Callable[[float], None]) -> None:
    """Let every thread of `late` write where it is; `read` reads their output for up to so many seconds."""
    for child in late:
        pool.signal(child.rank, signal.SIGUSR1)
    deadline_s = time.monotonic() + STACKS_S
    while (left_s := deadline_s - time.monotonic()) > 0:
        read(left_s)
