"""Changes of a real run, timed or live: applied to the network and the processes, sent to the devices."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable

from engine.domain.network import Network
from engine.domain.scenario import (
    Change,
    DeviceChange,
    DropDevice,
    FreezeDevice,
    JoinDevice,
    LinkChange,
    SetDelay,
    SetLoss,
    SetRate,
    SlowDevice,
)
from engine.domain.trace import Mark
from engine.runs.active_run import ActiveRun
from engine.runs.pool import DevicePool

TICK_S = 0.02
"""Wall seconds after which the supervisor looks at live commands and its clock again."""

PRECISE_S = 0.003
"""Wall seconds before a timed change from which the supervisor sleeps until it is due: `epoll` rounds its
timeout up to whole milliseconds.
"""


def poll_timeout_s(due_in_s: float) -> float:
    """How long (wall) to wait for messages when the next timed change is due in `due_in_s`."""
    return min(TICK_S, max(0.0, due_in_s - PRECISE_S))


class ChangeApplier:
    """Applies the scenario of one run, and live changes. `applied` are the changes so far, with their times.

    `sample_links` emits the state of the links, so that a page shows a change at once.
    """

    def __init__(self, run: ActiveRun, pool: DevicePool, network: Network, sample_links: Callable[[], None]):
        self.run, self.pool, self.network, self.sample_links = run, pool, network, sample_links
        self.waiting: list[Change] = list(run.spec.scenario.changes)
        self.applied: list[Change] = []
        self.live_rate_changes = 0

    @property
    def next_at_s(self) -> float:
        """Virtual time of the next timed change; infinite if there is none."""
        return self.waiting[0].at_s if self.waiting else math.inf

    def apply_due(self) -> None:
        """Apply the timed changes that are due."""
        while self.next_at_s <= self.run.now_s and self.run.outcome is None:
            self.apply(self.waiting.pop(0))

    def apply(self, change: Change, measured: bool = False) -> None:
        """Apply a change; once it is in force, record it with what the kernel reads back.

        A rate that a person changes live is `measured` on the link, which disturbs the run a little. Timed
        changes are not measured, so that a replay is undisturbed.
        """
        if isinstance(change, LinkChange):
            self._apply_to_link(change, measured)
        else:
            self._apply_to_device(change)

    def _apply_to_link(self, change: LinkChange, measured: bool) -> None:
        link = self.run.cluster.link_index(change.link)
        facts = change.model_dump(exclude={"kind", "at_s"}) | self.network.apply(change)
        by_value = isinstance(change, SetRate | SetDelay | SetLoss)
        self._record(change, "link_changed" if by_value else change.kind, "", facts)
        if isinstance(change, SetRate) and measured:
            self.live_rate_changes += 1
            self.network.measure([link])
        self.sample_links()

    def _apply_to_device(self, change: DeviceChange) -> None:
        rank = self.run.cluster.rank(change.device)
        match change:
            case SlowDevice():
                self._record(change, "device_changed", change.device, {"factor": change.factor})
            case DropDevice():
                self._record(change, "device_lost", change.device, {})
                self.pool.signal(rank, signal.SIGKILL)
                self.network.apply(change)
            case FreezeDevice():
                self.run.frozen.add(rank)
                self._record(change, "device_frozen", change.device, {})
                self.pool.signal(rank, signal.SIGSTOP)
            case JoinDevice():
                self._record(change, "device_joined", change.device, {})
                self.network.apply(change)
                self.run.frozen.discard(rank)
                if rank in self.pool.children:
                    self.pool.signal(rank, signal.SIGCONT)
                else:
                    self.pool.fork_empty(rank, self.run.plan)
                    self.run.joining.add(rank)

    def _record(self, change: Change, name: str, device: str, facts: dict[str, object]) -> None:
        self.applied.append(change)
        self.run.conditions.apply(change)
        self.run.record(Mark(self.run.now_s, name, device, facts))
        self.pool.send_all(type="change", change=change.model_dump(mode="json"))
