"""Paced computation: an operation lasts what the device model says, not what this host took.

The real torch operation runs, then the thread sleeps out the rest to an absolute deadline and spins the
last stretch. The next operation starts at the *deadline*, not at the wake-up: a late wake-up is a debt
that the following operation's slack pays back, so errors do not add up. Only a debt that grows past
`MAX_DEBT_S` moves the schedule, and counts as late.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

SPIN_S = 100e-6
MAX_DEBT_S = 2e-3
LATE_FRAC = 0.05
BATCH_S = 2e-3


class PacingStats(NamedTuple):
    """Errors of one device's pacing. `errors` are relative, one per batch of at least `BATCH_S` wall."""

    operations: int
    late: int
    target_s: float
    host_s: float
    errors: tuple[float, ...]


class Pacer:
    """The compute resource of one device. `dilation` None is native: no pacing at all."""

    def __init__(self, dilation: float | None):
        self.dilation = dilation
        self.free_s = 0.0
        self.operations = self.late = 0
        self.target_s = self.host_s = 0.0
        self.errors: list[float] = []
        self._batch_s = 0.0

    def run(
        self, work: Callable[[], Any], ready_s: float, target_virtual_s: float
    ) -> tuple[Any, float, float]:
        """Run `work`, ready since `ready_s` (monotonic wall), to last `target_virtual_s` · D.

        Returns its value and the start and end that the rest of the run shall believe (wall seconds).
        """
        start_s = max(ready_s, self.free_s)
        began_s = time.monotonic()
        value = work()
        done_s = time.monotonic()
        self.operations += 1
        self.host_s += done_s - began_s
        if self.dilation is None:
            self.free_s = done_s
            return value, max(start_s, began_s), done_s
        target_s = target_virtual_s * self.dilation
        deadline_s = start_s + target_s
        woke_s = sleep_until(deadline_s) if done_s < deadline_s else done_s
        debt_s = woke_s - deadline_s
        self._note(target_s, debt_s)
        end_s = deadline_s if debt_s <= MAX_DEBT_S else woke_s
        self.free_s = end_s
        return value, start_s, end_s

    def _note(self, target_s: float, debt_s: float) -> None:
        self.target_s += target_s
        self.late += debt_s > max(MAX_DEBT_S, LATE_FRAC * target_s)
        self._batch_s += target_s
        if self._batch_s >= BATCH_S:
            self.errors.append(debt_s / self._batch_s)
            self._batch_s = 0.0

    def stats(self) -> PacingStats:
        return PacingStats(self.operations, self.late, self.target_s, self.host_s, tuple(self.errors))


def sleep_until(deadline_s: float) -> float:
    """Sleep to an absolute monotonic time, spinning the last `SPIN_S`; returns the time of waking."""
    while True:
        now_s = time.monotonic()
        left_s = deadline_s - now_s
        if left_s <= 0:
            return now_s
        if left_s > SPIN_S:
            time.sleep(left_s - SPIN_S)
