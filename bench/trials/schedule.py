"""What happens in one trial, drawn from a seed: when runs are queued, what breaks when and for how long."""

from __future__ import annotations

import random
from typing import Literal

from engine.domain.values import Value

Fault = Literal[
    "kill", "stop", "pause", "rename", "full disk", "redis", "database", "clock", "duplicate", "cancel"
]
FAULTS: tuple[Fault, ...] = (
    "kill",
    "stop",
    "pause",
    "rename",
    "full disk",
    "redis",
    "database",
    "clock",
    "duplicate",
    "cancel",
)
"""kill: SIGKILL to a worker, which is started again after `lasts_s`. stop: the same with SIGTERM. pause:
SIGSTOP, then SIGCONT. rename: a worker ends and starts with the name of the next one: two have the same.
full disk: the database's file system has no free byte. redis: killed, then started empty. database: SQLite
locked, PostgreSQL killed and started again. clock: the database's clock jumps by `lasts_s`, to and fro.
duplicate: three messages more than there are runs. cancel: a person cancels run number `target`.
"""

WORKERS = 3
LAST_RUN_S = 2.0
FAULTS_FROM_S, FAULTS_TO_S = 0.3, 5.0
LONGEST = {
    "kill": 2.0,
    "stop": 1.0,
    "pause": 9.0,
    "rename": 0.5,
    "full disk": 4.0,
    "redis": 3.0,
    "database": 4.0,
    "clock": 12.0,
    "duplicate": 0.0,
    "cancel": 0.0,
}
"""Seconds. Leases last `short_times.LEASE_S`: pauses and jumps of the clock may be shorter or longer."""


class Step(Value):
    """A fault of a trial at its time. `target` is a worker's number, or for `cancel` a run's; other faults
    ignore it.
    """

    at_s: float
    fault: Fault
    target: int = 0
    lasts_s: float = 0.0


class Schedule(Value):
    """What happens in a trial. `runs_s` are the times at which runs are queued; each emulation takes about
    `run_s`.
    """

    seed: int
    number: int
    runs_s: tuple[float, ...]
    run_s: float
    steps: tuple[Step, ...]

    @property
    def title(self) -> str:
        return f"seed {self.seed}, trial {self.number}"


def schedule(seed: int, number: int) -> Schedule:
    draw = random.Random(f"{seed}/{number}")
    runs_s = sorted(round(draw.uniform(0.0, LAST_RUN_S), 2) for _ in range(draw.randint(4, 7)))
    steps = [_step(draw, len(runs_s)) for _ in range(draw.randint(3, 6))]
    return Schedule(
        seed=seed,
        number=number,
        runs_s=tuple(runs_s),
        run_s=round(draw.uniform(0.5, 2.0), 2),
        steps=tuple(sorted(steps, key=lambda step: step.at_s)),
    )


def _step(draw: random.Random, runs: int) -> Step:
    fault = draw.choice(FAULTS)
    target = draw.randrange(runs if fault == "cancel" else WORKERS)
    lasts_s = draw.uniform(0.0, LONGEST[fault])
    if fault == "clock" and draw.random() < 0.5:
        lasts_s = -lasts_s
    at_s = draw.uniform(FAULTS_FROM_S, FAULTS_TO_S)
    return Step(at_s=round(at_s, 2), fault=fault, target=target, lasts_s=round(lasts_s, 2))
