"""Changes of a real run, timed or live: applied to the network and the processes, told to the devices."""

from __future__ import annotations

import math
import os
import signal
from typing import TYPE_CHECKING

from engine.domain.scenario import (
    Change,
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

if TYPE_CHECKING:
    from engine.runs.supervisor import Launch

TICK_S = 0.02
"""Wall seconds after which the supervisor looks at live commands and its clock again."""

PRECISE_S = 0.003
"""Wall seconds before a timed change from which the supervisor sleeps until it is due: `epoll` rounds its
timeout up to whole milliseconds.
"""


def poll_timeout_s(due_in_s: float) -> float:
    """How long (wall) to wait for messages when the next timed change is due in `due_in_s`."""
    return min(TICK_S, max(0.0, due_in_s - PRECISE_S))


class Changing:
    """The scenario of one run. `done` are the changes that were applied, in virtual time."""

    def __init__(self, launch: Launch):
        self.launch = launch
        self.waiting: list[Change] = list(launch.spec.scenario.changes)
        self.done: list[Change] = []
        self.live_rate_changes = 0
        self.frozen: set[int] = set()

    @property
    def next_at_s(self) -> float:
        """Virtual time of the next timed change; infinite if there is none."""
        return self.waiting[0].at_s if self.waiting else math.inf

    def apply_due(self, now_s: float) -> None:
        while self.waiting and self.waiting[0].at_s <= now_s and self.launch.outcome is None:
            self.apply(self.waiting.pop(0))

    def apply(self, change: Change, measured: bool = False) -> None:
        """Apply a change and say so, with what the kernel reads back, when it is in force.

        Whoever moves a slider wants to see the link `measured`, which takes some of it; timed changes,
        replays among them, stay undisturbed: what the kernel reads back must do.
        """
        launch = self.launch
        if isinstance(change, LinkChange):
            link = launch.cluster.link_index(change.link)
            facts = change.model_dump(exclude={"kind", "at_s"}) | launch.network.apply(change)
            by_value = isinstance(change, SetRate | SetDelay | SetLoss)
            self._happened(change, "link_changed" if by_value else change.kind, "", facts)
            if isinstance(change, SetRate) and measured:
                self.live_rate_changes += 1
                launch.network.measure([link])
            launch.watch_links()
            return
        rank = launch.cluster.rank(change.device)
        match change:
            case SlowDevice():
                self._happened(change, "device_changed", change.device, {"factor": change.factor})
            case DropDevice():
                self._happened(change, "device_lost", change.device, {})
                self._signal(rank, signal.SIGKILL)
                launch.network.apply(change)
            case FreezeDevice():
                self.frozen.add(rank)
                self._happened(change, "device_frozen", change.device, {})
                self._signal(rank, signal.SIGSTOP)
            case JoinDevice():
                self._happened(change, "device_joined", change.device, {})
                launch.network.apply(change)
                self.frozen.discard(rank)
                if rank in launch.children:
                    self._signal(rank, signal.SIGCONT)
                else:
                    launch.failover.join(rank)

    def _happened(self, change: Change, name: str, device: str, facts: dict[str, object]) -> None:
        self.done.append(change)
        launch = self.launch
        launch.conditions.apply(change)
        launch.happened(Mark(launch.now_s, name, device, facts))
        launch.tell_all(type="change", change=change.model_dump(mode="json"))

    def _signal(self, rank: int, number: signal.Signals) -> None:
        if rank in self.launch.children:
            os.kill(self.launch.children[rank].pid, number)
