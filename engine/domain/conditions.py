"""Tracks the cluster as it is now: the given one after the changes of the scenario and of live commands."""

from __future__ import annotations

from collections.abc import Iterable

from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec
from engine.domain.outages import Outages, reaches
from engine.domain.scenario import (
    Change,
    DropDevice,
    FreezeDevice,
    JoinDevice,
    LinkDown,
    Scenario,
    SetDelay,
    SetJitter,
    SetLoss,
    SetRate,
    SlowDevice,
)


class Conditions:
    """The cluster as one device or the supervisor sees it now. `cluster` is `drawn` with changed rates,
    delays, packet losses and speeds, and with failed or absent devices as terminals, so planners can use it.
    Paths stay those of `drawn`.
    """

    def __init__(self, drawn: ClusterSpec, absent: Iterable[int] = ()):
        self.drawn = drawn
        self.failed: frozenset[int] = frozenset()
        self.cluster = drawn
        self.outages = Outages(drawn)
        for rank in absent:
            self.mark_failed(rank)

    def apply(self, change: Change) -> None:
        """Apply a change of links or of a speed. `mark_failed` and `join` track failures and joins."""
        self.outages.apply(change)
        if isinstance(change, SetRate | SetDelay | SetLoss | SetJitter):
            index = self.cluster.link_index(change.link)
            self._replace_link(index, changed_link(self.cluster.links[index], change))
        elif isinstance(change, SlowDevice):
            rank = self.cluster.rank(change.device)
            slowed = slowed_device(self.drawn.devices[rank], change.factor)
            self._replace_device(rank, slowed.model_copy(update={"role": self.cluster.devices[rank].role}))

    @property
    def blocked(self) -> frozenset[int]:
        """The links that nothing passes: they are down, or lose all packets of one direction."""
        lost = {
            index
            for index, link in enumerate(self.cluster.links)
            if max(link.loss(True), link.loss(False)) >= 1
        }
        return self.outages.down | lost

    def reaches_source(self, rank: int) -> bool:
        """Whether packets pass between device `rank` and the source, in both directions."""
        return self.reaches(rank, self.drawn.source_rank)

    def reaches(self, a: int, b: int) -> bool:
        """Whether packets pass between devices `a` and `b`, in both directions."""
        return reaches(self.drawn, self.blocked, a, b)

    def mark_failed(self, rank: int) -> None:
        self.failed |= {rank}
        self.cluster = self.cluster.without([rank])

    def join(self, rank: int) -> None:
        self.failed -= {rank}
        role = self.drawn.devices[rank].role
        self._replace_device(rank, self.cluster.devices[rank].model_copy(update={"role": role}))

    def _replace_link(self, index: int, link: LinkSpec) -> None:
        links = (*self.cluster.links[:index], link, *self.cluster.links[index + 1 :])
        self.cluster = self.cluster.without(()).model_copy(update={"links": links})

    def _replace_device(self, rank: int, device: DeviceSpec) -> None:
        devices = (*self.cluster.devices[:rank], device, *self.cluster.devices[rank + 1 :])
        self.cluster = self.cluster.without(()).model_copy(update={"devices": devices})


def changed_link(link: LinkSpec, change: SetRate | SetDelay | SetLoss | SetJitter) -> LinkSpec:
    """`link` after `change` of one direction or both."""
    if isinstance(change, SetJitter):
        return link.model_copy(update={"jitter_s": change.jitter_s})
    if isinstance(change, SetRate):
        names, old, new = ("bit_per_s", "reverse_bit_per_s"), link.rate, change.bit_per_s
    elif isinstance(change, SetDelay):
        names, old, new = ("delay_s", "reverse_delay_s"), link.delay, change.delay_s
    else:
        names, old, new = ("loss_frac", "reverse_loss_frac"), link.loss, change.loss_frac
    forward = old(True) if change.direction == "backward" else new
    backward = old(False) if change.direction == "forward" else new
    return link.model_copy(update=dict(zip(names, (forward, backward), strict=True)))


def slowed_device(device: DeviceSpec, factor: float) -> DeviceSpec:
    """`device` with `factor` times the time for everything that it computes, as beside a busy neighbour."""
    return device.model_copy(
        update={
            "flop_per_s": device.flop_per_s / factor,
            "family_rates": tuple(
                row.model_copy(update={"flop_per_s": row.flop_per_s / factor}) for row in device.family_rates
            ),
            "format_rates": tuple(
                row.model_copy(update={"flop_per_s": row.flop_per_s / factor}) for row in device.format_rates
            ),
            "memory_byte_per_s": device.memory_byte_per_s / factor,
            "op_overhead_s": device.op_overhead_s * factor,
            "dispatch_s": device.dispatch_s * factor,
            "token_s": device.token_s * factor,
            "handover_s": device.handover_s * factor,
            "measured_scale": device.measured_scale * factor,
        }
    )


def absent_at_start(cluster: ClusterSpec, scenario: Scenario) -> frozenset[int]:
    """Devices that join before anything has made them fail: plans do not use them until then.

    A device that was dropped, frozen or cut off from the source before it joins was there at the start.
    """
    if not any(isinstance(change, JoinDevice) for change in scenario.changes):
        return frozenset()
    now, present, absent = Conditions(cluster), set[int](), set[int]()
    for change in scenario.changes:
        now.apply(change)
        if isinstance(change, JoinDevice) and cluster.rank(change.device) not in present:
            absent.add(cluster.rank(change.device))
        if isinstance(change, JoinDevice | DropDevice | FreezeDevice):
            present.add(cluster.rank(change.device))
        if isinstance(change, DropDevice | LinkDown | SetLoss):
            present |= {rank for rank in range(len(cluster.devices)) if not now.reaches_source(rank)}
    return frozenset(absent)
