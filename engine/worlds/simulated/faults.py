"""Applies the scenario of a simulated run to links and devices, and reports failed devices to their peers.

A killed device is detected when its connections close, by each peer after the delay of the path from it.
A frozen device, or one behind a link that is down, is detected after `silence_s` of silence, and only by
devices that need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from engine.domain.errors import PeerFailed
from engine.domain.outages import reaches
from engine.domain.plan import Plan
from engine.domain.scenario import (
    Change,
    DeviceChange,
    DropDevice,
    FreezeDevice,
    JoinDevice,
    LinkChange,
    LinkDown,
)
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.worlds.common.device import takes_part
from engine.worlds.simulated.device import SimulatedDevice
from engine.worlds.simulated.kernel import FAULT, SimulationKernel
from engine.worlds.simulated.message import SimulatedMessage
from engine.worlds.simulated.network import SimulatedNetwork

MARK_NAMES = {"slow_device": "device_changed", "link_down": "link_down", "link_up": "link_up"}
"""Name of the mark for a kind of change; all other changes of links give `link_changed`."""


class DeviceJoined(Exception):
    """A device has joined: stop all programs and plan again with it."""


class FaultInjector:
    """Makes devices fail, freeze and join when the scenario says. `failed` are the ranks that run no programs
    any more, also before their peers detect it.
    """

    def __init__(
        self,
        spec: RunSpec,
        plan: Plan,
        kernel: SimulationKernel,
        network: SimulatedNetwork,
        devices: Sequence[SimulatedDevice],
        emit: Callable[[Span | Mark], None],
    ):
        self.plan = plan
        self.changes = spec.scenario.changes
        self.cluster = spec.cluster
        self.silence_s = spec.silence_s
        self.kernel, self.network, self.devices, self.emit = kernel, network, devices, emit
        self.failed: set[int] = set()
        self.lost_s: dict[int, float] = {}  # when a device was killed last
        self.unsent: list[SimulatedMessage] = []  # to failed devices
        self.interrupt_on_join = False

    def schedule_scenario(self, interrupt_on_join: bool) -> None:
        """Schedule all changes. `interrupt_on_join`: raise `DeviceJoined` when a device joins."""
        self.interrupt_on_join = interrupt_on_join
        for change in self.changes:
            self.kernel.schedule(change.at_s, partial(self.apply, change), FAULT)

    def is_frozen(self, rank: int) -> bool:
        return self.devices[rank].frozen_since_s is not None

    def _frozen_and_not_failed(self) -> list[int]:
        ranks = range(len(self.devices))
        return [rank for rank in ranks if self.is_frozen(rank) and rank not in self.failed]

    def watch_frozen_devices(self, plan: Plan) -> None:
        """Watch the frozen devices that `plan` needs, which the run follows from now on."""
        self.plan = plan
        for rank in self._frozen_and_not_failed():
            self._watch_frozen(rank)

    def schedule_detection_of_frozen_devices(self) -> bool:
        """Declare a frozen device that a program may wait for failed after `silence_s`. False if no device is
        frozen.
        """
        frozen = self._frozen_and_not_failed()
        for rank in frozen:
            self.kernel.schedule(self.kernel.now_s + self.silence_s, partial(self._give_up, rank), FAULT)
        return bool(frozen)

    def schedule_reachability_check(self) -> None:
        """After `silence_s`, declare a device failed if a link that is down still holds up a message."""
        self.kernel.schedule(self.kernel.now_s + self.silence_s, self._check_reachability, FAULT)

    def _check_reachability(self) -> None:
        """Declare one end of the stalled message failed: the one that the source does not reach."""
        stalled = self.network.stalled()
        if stalled:
            flow, links = stalled[0], self.network.conditions
            src, dst = flow.ends
            rank = dst if reaches(self.cluster, links.blocked, self.cluster.source_rank, src) else src
            since_s = links.outages.since_s(link for link, _ in flow.route)
            self._stop(rank)
            self._announce_failure(rank, "unreachable", self.kernel.now_s if since_s is None else since_s)

    # changes of the scenario

    def apply(self, change: Change) -> None:
        """Apply `change` now, unless it would change nothing."""
        if isinstance(change, DeviceChange) and self._has_no_effect(change):
            return
        for device in self.devices:
            device.change(change)
        if isinstance(change, LinkChange | DropDevice | JoinDevice):
            self.network.change(change)
        match change:
            case DropDevice():
                self._kill(self.cluster.rank(change.device))
                self.schedule_reachability_check()
            case FreezeDevice():
                self._freeze(self.cluster.rank(change.device))
            case JoinDevice():
                self._join(self.cluster.rank(change.device))
            case _:
                facts = change.model_dump(exclude={"kind", "at_s"})
                name = MARK_NAMES.get(change.kind, "link_changed")
                self.emit(Mark(self.kernel.now_s, name, facts.get("device", ""), facts))
                if isinstance(change, LinkDown):
                    self.schedule_reachability_check()

    def _is_away(self, rank: int) -> bool:
        """Whether device `rank` is absent or has failed, detected or not."""
        return rank in self.failed or rank in self.devices[self.cluster.source_rank].failed

    def _has_no_effect(self, change: DeviceChange) -> bool:
        """Whether a device that is away would leave, a frozen one freeze, or a present one join."""
        rank = self.cluster.rank(change.device)
        match change:
            case DropDevice():
                return self._is_away(rank)
            case FreezeDevice():
                return self._is_away(rank) or self.is_frozen(rank)
            case JoinDevice():
                return not self._is_away(rank) and not self.is_frozen(rank)
        return False

    def _mark(self, name: str, rank: int) -> None:
        self.emit(Mark(self.kernel.now_s, name, self.cluster.devices[rank].name))

    def _kill(self, rank: int) -> None:
        """Stop the device at once; each peer sees its connection closed after the delay of the path from it.

        The delay is that of the path at present, also where a link of it is down: the routes stay.
        """
        self._mark("device_lost", rank)
        self.devices[rank].frozen_since_s = None
        self._stop(rank)
        self.lost_s[rank] = at_s = self.kernel.now_s
        for peer in [peer for peer in range(len(self.devices)) if peer != rank] or [rank]:
            seen_s = at_s + self.network.delay_s(rank, peer)
            self.kernel.schedule(seen_s, partial(self._announce_kill, rank, at_s, peer), FAULT)

    def _announce_kill(self, rank: int, at_s: float, peer: int) -> None:
        """Tell `peer` of the failure of a device killed at `at_s`, unless it has joined since."""
        if self.lost_s[rank] == at_s:
            self._announce_failure(rank, "killed", at_s, [peer])

    def _freeze(self, rank: int) -> None:
        self._mark("device_frozen", rank)
        self.devices[rank].freeze()
        self._watch_frozen(rank)

    def _watch_frozen(self, rank: int) -> None:
        since_s = self.devices[rank].frozen_since_s
        due_s = self.kernel.now_s + self.silence_s
        self.kernel.schedule(due_s, lambda: self._give_up_if_needed(rank, since_s), FAULT)

    def _give_up_if_needed(self, rank: int, since_s: float | None) -> None:
        """Declare a device failed that is frozen since `since_s`, if a peer or the plan needs it."""
        was_sent_to = any(rank in device.message_numbers for device in self.devices)
        needed = was_sent_to or takes_part(self.cluster, self.plan, rank)
        if needed and self.devices[rank].frozen_since_s == since_s:
            self._give_up(rank)

    def _give_up(self, rank: int) -> None:
        since_s = self.devices[rank].frozen_since_s
        if since_s is not None and rank not in self.failed:
            self._stop(rank)
            self._announce_failure(rank, "frozen", since_s)

    def _join(self, rank: int) -> None:
        """A frozen device that was not declared failed continues; any other starts with empty memory, if the
        run may plan again. If it may not, the device stays away.
        """
        self._mark("device_joined", rank)
        device = self.devices[rank]
        if self.is_frozen(rank) and not self._is_away(rank):
            device.thaw()
            return
        if not self.interrupt_on_join:
            return
        if rank in self.failed and rank not in device.failed:  # its peers have not seen it end
            self._mark_detected(rank, "killed", self.lost_s[rank])
        self.failed.discard(rank)
        for other in self.devices:
            other.conditions.join(rank)
        device.restart()
        raise DeviceJoined(f"{device.device.name} joined at {self.kernel.now_s:.3f} s.")

    # failures

    def _stop(self, rank: int) -> None:
        """End the programs of device `rank`, which has failed, and drop its messages and those to it."""
        self.kernel.close_programs(rank)
        self.failed.add(rank)
        self.unsent += self.network.drop_messages_of(rank)

    def _announce_failure(
        self, rank: int, how: str, since_s: float, peers: Sequence[int] | None = None
    ) -> None:
        """Tell `peers` (all devices) that `rank` has failed: sends to it end, receives raise `PeerFailed`.

        Raises `PeerFailed` if it is the source. Does nothing if the device has joined again.
        """
        if rank not in self.failed:
            return
        now_s, name = self.kernel.now_s, self.cluster.devices[rank].name
        self.unsent += self.network.drop_messages_of(rank)  # what was sent since it stopped
        self._mark_detected(rank, how, since_s)
        if rank == self.cluster.source_rank:
            raise PeerFailed(f"{name} failed at {now_s:.3f} s, and it is the source.", name, now_s)
        told = [peer for peer in range(len(self.devices)) if peer != rank] if peers is None else peers
        for peer in told:
            self.devices[peer].conditions.mark_failed(rank)
        for message in self.unsent:
            if message.dst == rank and message.src in told:
                self.kernel.finish(message.handle, None)
        for peer in told:
            if peer != rank:
                self.devices[peer].fail_waiting(rank, now_s)

    def _mark_detected(self, rank: int, how: str, since_s: float) -> None:
        """Record that a first device knows of the failure of `rank`, unless that is recorded."""
        itself = self.devices[rank]
        if rank not in itself.failed:
            facts = {"how": how, "since_s": since_s}
            self.emit(Mark(self.kernel.now_s, "loss_detected", itself.device.name, facts))
            itself.conditions.mark_failed(rank)

    def tell_all(self) -> None:
        """Let every device know of all failures that a first device knows of: a new plan is made."""
        for rank in self.detected:
            for device in self.devices:
                device.conditions.mark_failed(rank)

    @property
    def detected(self) -> set[int]:
        """The failed devices that a first device knows of: plans leave these out."""
        return {rank for rank in self.failed if rank in self.devices[rank].failed}
