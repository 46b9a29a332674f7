"""Changes of a real run, timed or live: applied to the network and the processes, sent to the devices."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable

from engine.domain.errors import SpecError
from engine.domain.events import Logged
from engine.domain.network import Network
from engine.domain.scenario import (
    Change,
    DeviceChange,
    DropDevice,
    FreezeDevice,
    JoinDevice,
    LinkChange,
    SetDelay,
    SetJitter,
    SetLoss,
    SetRate,
    SlowDevice,
)
from engine.domain.trace import Mark
from engine.runs.active_run import ActiveRun
from engine.runs.failures import FailureDetector
from engine.runs.on_nodes import why_not_on_nodes
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
    """Applies the scenario of one run, and live changes.

    `sample_links` emits the state of the links, so that a page shows a change at once. `recovering` is set
    while programs are halted for a new plan: devices that join wait until that plan has started. `by` is the
    person whose live change is being applied; empty for changes of the scenario.
    """

    def __init__(
        self,
        run: ActiveRun,
        pool: DevicePool,
        network: Network,
        failures: FailureDetector,
        sample_links: Callable[[], None],
    ):
        self.run, self.pool, self.network, self.sample_links = run, pool, network, sample_links
        self.failures = failures
        self.waiting: list[Change] = list(run.spec.scenario.changes)
        self.live_rate_changes = 0
        self.recovering = False
        self.by = ""

    @property
    def next_at_s(self) -> float:
        """Virtual time of the next timed change; infinite if there is none."""
        return next((change.at_s for change in self.waiting if not self._must_wait(change)), math.inf)

    def apply_due(self) -> None:
        """Apply the timed changes that are due."""
        waits: set[str] = set()  # devices whose changes keep their order
        for change in list(self.waiting):
            if change.at_s > self.run.now_s or self.run.outcome is not None:
                return
            device = change.device if isinstance(change, DeviceChange) else ""
            if device in waits or self._must_wait(change):
                waits.add(device)
                continue
            self.waiting.remove(change)
            self.apply(change)

    def _must_wait(self, change: Change) -> bool:
        """Whether `change` is a join during a recovery, or of a device whose old process has not ended."""
        if not isinstance(change, JoinDevice):
            return False
        return self.recovering or self.pool.is_ending(self.run.cluster.rank(change.device))

    def apply_live(self, change: Change, by: str = "") -> None:
        """Apply a change that the person `by` makes, whom its mark names. A changed rate is measured, which
        disturbs the run a little.

        Raises `SpecError` if it would change nothing, and `HostError` if the network cannot make it.
        """
        if self._must_wait(change):
            self.waiting.insert(0, change)
            return
        reason = self._why_without_effect(change)
        if reason:
            raise SpecError(reason)
        self.by = by
        try:
            self.apply(change, measured=True)
        finally:
            self.by = ""

    def apply(self, change: Change, measured: bool = False) -> None:
        """Apply a change; once it is in force, record it with what the kernel reads back.

        Timed changes are not measured, so that a replay is undisturbed. One that would change nothing is
        logged and left out.
        """
        reason = self._why_without_effect(change)
        if reason:
            self.run.emit(Logged(level="warning", text=f"{change.kind} at {change.at_s:g} s: {reason}"))
        elif isinstance(change, LinkChange):
            self._apply_to_link(change, measured)
        else:
            self._apply_to_device(change)

    def _why_without_effect(self, change: Change) -> str:
        """Why a change is none now, as a sentence; empty if it is one."""
        if self.run.spec.on_nodes and (why := why_not_on_nodes(change, self.run.spec)):
            return why
        if not isinstance(change, DropDevice | FreezeDevice | JoinDevice):
            return ""
        name, rank = change.device, self.run.cluster.rank(change.device)
        away, frozen = rank in self.run.away, rank in self.run.frozen
        if isinstance(change, JoinDevice):
            return "" if away or frozen else f"{name} is present: only a device that has left can join."
        if away:
            return f"{name} is not present: let it join first."
        return f"{name} is frozen already." if frozen and isinstance(change, FreezeDevice) else ""

    def _apply_to_link(self, change: LinkChange, measured: bool) -> None:
        link = self.run.cluster.link_index(change.link)
        facts = change.model_dump(exclude={"kind", "at_s"}) | self.network.apply(change)
        by_value = isinstance(change, SetRate | SetDelay | SetLoss | SetJitter)
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
                self.run.away.add(rank)
                self.run.frozen.discard(rank)
                has_process = rank in self.pool.children
                self.pool.kill(rank)
                self.network.apply(change)
                if not has_process:  # the plan does not use it: no process will end
                    self.failures.lose(rank)
            case FreezeDevice():
                self.run.frozen.add(rank)
                self._record(change, "device_frozen", change.device, {})
                self.pool.signal(rank, signal.SIGSTOP)
            case JoinDevice():
                self._record(change, "device_joined", change.device, {})
                self.network.apply(change)
                if rank in self.run.frozen:
                    self.run.frozen.discard(rank)
                    self.pool.signal(rank, signal.SIGCONT)
                elif self.run.spec.failover == "replan":  # without a new plan nothing could use it
                    self.run.away.discard(rank)
                    self.pool.fork_empty(rank, self.run.plan, self.run.applied)
                    self.run.joining.add(rank)

    def _record(self, change: Change, name: str, device: str, facts: dict[str, object]) -> None:
        self.run.applied.append(change)
        self.run.conditions.apply(change)
        who = {"by": self.by} if self.by else {}
        self.run.record(Mark(self.run.now_s, name, device, facts | who))
        self.pool.send_all(type="change", change=change.model_dump(mode="json"))
