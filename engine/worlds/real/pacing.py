"""Pacing: an operation takes the time that the device model says, not the time that this host took.

Every operation gets an absolute deadline when it is submitted: its start (not before the deadline of the
operation before it) plus D times the model's seconds. The host computes as soon as it can. The result is
handed on at the deadline, or up to `LEAD_S` before, and stamped with it; the lead hides the host's wake-up
latencies. When a result misses its deadline, later operations can make up for it, because the host is faster
than the device. Only a result that is more than `MAX_DEBT_S` late moves the schedule; it counts as late.
"""

from __future__ import annotations

from typing import NamedTuple

LEAD_S = 400e-6
MAX_DEBT_S = 2e-3
LATE_FRAC = 0.05
BATCH_S = 10e-3


class PacingStats(NamedTuple):
    """How punctual one device was, in batches of operations with `BATCH_S` wall seconds or more in all.

    `errors`: how late the end of each batch was, relative to the batch's time; `used`: the part of that time
    that the host needed.
    """

    operations: int
    late: int
    target_s: float
    host_s: float
    errors: tuple[float, ...]
    used: tuple[float, ...]


class Pacer:
    """The schedule of one resource (compute or disk). Without `dilation` (native) it paces nothing."""

    def __init__(self, dilation: float | None):
        self.dilation = dilation
        self.free_s = 0.0
        self.resumed_s = 0.0
        self.operations = self.late = 0
        self.target_s = self.host_s = 0.0
        self.errors: list[float] = []
        self.used: list[float] = []
        self._batch_s = self._batch_host_s = 0.0

    def plan(self, ready_s: float, target_virtual_s: float) -> tuple[float, float]:
        """Start and deadline (wall) of an operation that is ready at `ready_s`."""
        start_s = max(ready_s, self.free_s)
        self.free_s = start_s + target_virtual_s * (self.dilation or 0.0)
        return start_s, self.free_s

    def settle(self, start_s: float, deadline_s: float, now_s: float, host_s: float) -> float:
        """The time at which an operation ends in the run, if its result is handed on at `now_s`. All wall."""
        self.operations += 1
        self.host_s += host_s
        if self.dilation is None:
            self.free_s = now_s
            return now_s
        target_s = deadline_s - start_s
        deadline_s = max(deadline_s, self.resumed_s)
        debt_s = max(0.0, now_s - deadline_s)
        late = debt_s > max(MAX_DEBT_S, LATE_FRAC * target_s)
        self.late += late
        self.target_s += target_s
        self._batch_s += target_s
        self._batch_host_s += host_s
        if self._batch_s >= BATCH_S:
            self.errors.append(debt_s / self._batch_s)
            self.used.append(self._batch_host_s / self._batch_s)
            self._batch_s = self._batch_host_s = 0.0
        end_s = now_s if late else deadline_s
        self.free_s = max(self.free_s, end_s)
        return end_s

    def reset(self, now_s: float) -> None:
        """Cancel what was planned after `now_s`."""
        self.free_s = min(self.free_s, now_s)

    def resume(self, now_s: float) -> None:
        """Go on after the device was frozen until `now_s`: what was due earlier is due now."""
        self.resumed_s = now_s

    def stats(self) -> PacingStats:
        return PacingStats(
            self.operations, self.late, self.target_s, self.host_s, tuple(self.errors), tuple(self.used)
        )
