"""What one emulation may take of its machine: wall time, memory, processor time of its start, and time
until its devices are ready.

Variable              default                        what for
LOOM_READY_S          120                            wall seconds until devices are ready, plus 2 for each
                                                     device and 1 for each 20 MB of weights
LOOM_RUN_START_S      40                             wall seconds that the start of its devices may keep all
                                                     cores busy, by arithmetic
LOOM_RUN_HOURS        12                             wall hours of one emulation
LOOM_RUN_MEMORY_GB    80 % of the machine's memory   of all processes of one emulation together; where
                                                     several runs at once are allowed, a share each
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from emulator.host.memory import MemoryGroup, machine_bytes
from emulator.session.turns import runs_at_once
from engine.domain.errors import HostError, RunError

READY_VARIABLE = "LOOM_READY_S"
START_VARIABLE = "LOOM_RUN_START_S"
HOURS_VARIABLE = "LOOM_RUN_HOURS"
MEMORY_VARIABLE = "LOOM_RUN_MEMORY_GB"
HOURS = 12.0
START_S = 40.0
"""While so many processes start, a service answers nobody: beside 256 on two cores for minutes."""
MEMORY_SHARE = 0.8
LOOK_S = 0.5


class Limits(NamedTuple):
    """The limits of a session: `wall_s` from the start of the session; `memory_bytes` of all of its processes
    together; `start_s` is how long the start of devices may keep its cores busy.
    """

    wall_s: float
    memory_bytes: int
    start_s: float = START_S


def limits_here() -> Limits:
    """The limits of emulations on this machine, as the environment says. Raises `HostError` for a value that
    is no positive number.
    """
    share_gb = MEMORY_SHARE * machine_bytes() / runs_at_once() / 1e9
    hours, memory_gb = number_from(HOURS_VARIABLE, HOURS), number_from(MEMORY_VARIABLE, share_gb)
    return Limits(3600 * hours, int(1e9 * memory_gb), number_from(START_VARIABLE, START_S))


class Guard:
    """Looks whether one emulation is within its limits; `clock` gives wall seconds."""

    def __init__(self, limits: Limits, group: MemoryGroup, clock: Callable[[], float] = time.monotonic):
        self.limits, self.group, self.clock = limits, group, clock
        self.ends_s = clock() + limits.wall_s
        self.looks_s = clock()

    def check(self) -> None:
        """Check memory and time, often; reads the group's file every `LOOK_S`. Raises `RunError`."""
        now_s = self.clock()
        if now_s > self.ends_s:
            raise RunError(
                f"The emulation was ended after {self.limits.wall_s / 3600:g} h, the longest that one may "
                f"take here: ask for fewer tokens or requests, or set {HOURS_VARIABLE}."
            )
        if now_s >= self.looks_s:
            self.looks_s = now_s + LOOK_S
            self.check_memory()

    def check_memory(self) -> None:
        """Check that the kernel has killed no process for want of memory; raises `RunError` if it has."""
        if self.group.is_exceeded():
            raise RunError(
                f"The emulation needed more than {self.limits.memory_bytes / 1e9:.1f} GB of memory, the most "
                "that one may have here, and was ended: choose a smaller model or fewer tokens, or set "
                f"{MEMORY_VARIABLE}."
            )


def number_from(variable: str, default: float) -> float:
    """A positive number of the environment, `default` if it is not set. Raises `HostError`."""
    text = os.environ.get(variable, "")
    try:
        number = float(text) if text else default
    except ValueError:
        number = 0.0
    if not 0.0 < number < math.inf:
        raise HostError(f"{variable} is {text!r}, expected a positive number: set it, or leave it out.")
    return number
