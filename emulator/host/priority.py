"""Gives emulations priority over other processes of this host, since a late wake-up distorts a report.

Lateness of a sleeping thread on two cores under a load of ten (95 %, longest): unchanged 2.8 and 27 ms; nice
2.6 and 41; nice with short slices 1.7 and 9; real time 0.08 and 0.4. Therefore the first thread of a paced
device, which moves messages and keeps the time, runs in real time. Threads that compute do not: the kernel
stops real-time threads that fill a core for 50 ms of each second (sched_rt_runtime_us), which made every
fourth operation of 65 ms take 115. They are nice, which leaves them nearly all of a core that others use too.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from emulator.host.leftovers import children

NICENESS = -20
LOOP_PRIORITY = 1


def raise_priority() -> None:
    """Raise the priority of this process and its future children, and of its autogroup if the kernel has
    these.
    """
    os.nice(NICENESS)
    autogroup = Path("/proc/self/autogroup")
    if autogroup.exists():
        autogroup.write_text(str(NICENESS))


def run_in_real_time(pid: int) -> None:
    """Give the first thread of process `pid` real-time priority."""
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(LOOP_PRIORITY))


def children_in_real_time(but: frozenset[int]) -> None:
    """Give the first thread of every child of this process real-time priority, except `but`."""
    for child in children(os.getpid()):
        if child.pid not in but:
            run_in_real_time(child.pid)
