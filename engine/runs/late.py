"""What device processes do that do not get ready: the processor time they used, where their threads are."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.runs.children import Child
from engine.runs.pool import DevicePool

STACKS_S = 1.0
"""Wall seconds in which processes write their stacks: nothing tells which line is the last."""


def processor_s(pid: int) -> float:
    """Seconds of processor time of a process that has not been waited for, since its fork; see proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user_and_system = int(fields[11]) + int(fields[12])
    return user_and_system / os.sysconf("SC_CLK_TCK")


def used(late: Sequence[Child]) -> str:
    """How much processor time each has used: one that hangs in a lock none, one that spins all."""
    return ", ".join(f"{child.name} {processor_s(child.pid):.1f} s" for child in late)


def log_stacks(pool: DevicePool, late: Sequence[Child], read: Callable[[float], None]) -> None:
    """Let every thread of `late` write where it is; `read` reads their output for up to so many seconds."""
    for child in late:
        pool.signal(child.rank, signal.SIGUSR1)
    deadline_s = time.monotonic() + STACKS_S
    while (left_s := deadline_s - time.monotonic()) > 0:
        read(left_s)
