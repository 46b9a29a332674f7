"""The rows of each device in a forward pass of Voltage, and a new partition after a change of speeds.

Hu, Li (ICDCS 2024), section V: the partition can change "without any penalty" from layer to layer, because
all devices hold all weights and all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import inf

from engine.domain.cluster import DeviceSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.program.ctx import Ctx, Note
from engine.strategies.shared.demand import SizedOp, hidden, working_bytes
from engine.strategies.shared.shares import op_s
from engine.strategies.voltage.layout import PositionsLayout
from engine.strategies.voltage.positions import (
    OrderChoice,
    PositionShard,
    ShardTime,
    bounds,
    search,
    shard_of,
)

SPEEDS = (
    "flop_per_s",
    "memory_byte_per_s",
    "op_overhead_s",
    "dispatch_s",
    "handover_s",
    "measured_scale",
)
"""The fields of a device that a change of its speed affects."""


def shards_at(model: ModelSpec, layout: PositionsLayout, ends: Sequence[int]) -> tuple[PositionShard, ...]:
    """The devices' shards at these bounds: one per device of `layout`, some of them empty."""
    return tuple(
        shard_of(
            model,
            device,
            range(ends[i], ends[i + 1]),
            ends[-1],
            layout.order,
            layout.causal_trim,
            device == layout.owner,
        )
        for i, device in enumerate(layout.devices)
    )


def shards_for(model: ModelSpec, layout: PositionsLayout, rows: int) -> tuple[PositionShard, ...]:
    """The planned shares of a pass over `rows` rows."""
    return shards_at(model, layout, bounds(rows, layout.ratios))


def last_layer(
    model: ModelSpec, layout: PositionsLayout, shards: tuple[PositionShard, ...]
) -> tuple[PositionShard, ...]:
    """The shards of the last layer: with `last_layer_rows="needed"` only the row that the answer is read
    from: the last row for a decoder, the first for a classifier.
    """
    num_positions, result = shards[-1].stop, []
    if layout.last_layer_rows == "all" or model.answer_row is None:
        return shards
    row = model.answer_row % num_positions
    for shard in shards:
        rows = range(row, row + 1) if shard.start <= row < shard.stop else range(row, row)
        result.append(
            shard_of(
                model,
                shard.device,
                rows,
                num_positions,
                layout.order,
                layout.causal_trim,
                shard.device == layout.owner,
            )
        )
    return tuple(result)


def shard_time(
    model: ModelSpec,
    devices: Sequence[DeviceSpec],
    batch: int,
    num_positions: int,
    shard: Callable[[int, int, int], PositionShard],
    room_bytes: Sequence[float],
) -> ShardTime:
    """Seconds of a layer's shard by device index and rows; infinite where its working set does not fit."""
    x = hidden(model, batch, num_positions)

    def seconds(index: int, start: int, stop: int) -> float:
        one = SizedOp(shard(index, start, stop).op(0, None), (x,))
        return inf if working_bytes(model, [one]) > room_bytes[index] else op_s(devices[index], model, one)

    return seconds


class Partition:
    """The shards of one forward pass on this device. All devices that compute have the same ones before each
    layer.
    """

    def __init__(self, ctx: Ctx, plan: Plan[PositionsLayout], rows: int, batch: int):
        self.ctx, self.layout, self.batch = ctx, plan.layout, batch
        self.shards = shards_for(ctx.model, plan.layout, rows)
        self.group: tuple[int, ...] = plan.layout.devices
        self.renews: bool = plan.layout.repartition and len(self.group) > 1
        self.known = {rank: _speed(ctx.cluster.devices[rank]) for rank in self.group}
        self.bounds_note: Note = ()
        self.lead()

    @property
    def sizes(self) -> list[int]:
        return [shard.size for shard in self.shards]

    @property
    def senders(self) -> list[int]:
        """Devices that send their rows: those with rows, and the leader."""
        return [shard.device for shard in self.shards if shard.size or shard.device == self.leader]

    def lead(self) -> None:
        """Make the first device with rows the leader. It stays the leader even if it loses all its rows."""
        self.leader = next(shard.device for shard in self.shards if shard.size)

    def adopt(self, note: Note) -> None:
        """Take over the next layer's bounds from `note`; an empty note changes nothing."""
        if note:
            self.bounds_note, self.shards = note, shards_at(self.ctx.model, self.layout, note)

    def end(self) -> None:
        """Switch to the shards of the last layer. Called once per pass."""
        self.shards = last_layer(self.ctx.model, self.layout, self.shards)

    def decide(self, layer: int) -> Note:
        """New bounds from `layer` on if a device's speed has changed and other bounds are faster; else ()."""
        now = self.ctx.cluster_now
        speeds = {rank: _speed(now.devices[rank]) for rank in self.group}
        changed = [rank for rank in self.group if speeds[rank] != self.known[rank]]
        if not changed:
            return ()
        reason = ", ".join(
            f"{now.devices[rank].name} computes {speeds[rank][0] / self.known[rank][0]:.3g} times as fast"
            for rank in changed
        )
        self.known = speeds
        old = tuple(accumulate(self.sizes, initial=0))
        new = best_bounds(
            self.ctx.model,
            tuple(now.devices[rank] for rank in self.group),
            self.batch,
            old,
            self.layout.order,
            self.layout.causal_trim,
            self._owner(),
            self.layout.room_bytes,
        )
        if new == old:
            return ()
        self.ctx.mark("repartitioned", layer=layer, bounds=list(new), reason=reason)
        return new

    def _owner(self) -> int | None:
        """Index of the decode owner in the group."""
        owner = self.layout.owner
        return None if owner is None else self.group.index(owner)


@lru_cache(maxsize=64)
def best_bounds(
    model: ModelSpec,
    devices: tuple[DeviceSpec, ...],
    batch: int,
    old: tuple[int, ...],
    order: OrderChoice,
    trims: bool,
    owner: int | None,
    room_bytes: tuple[int, ...],
) -> tuple[int, ...]:
    """Bounds that minimise the time of the slowest of `devices`, searched from the bounds `old`. With trimmed
    keys `owner`, which fills the KV cache, keeps the last row. The result is cached, because every pass after
    a change needs the same bounds.
    """
    num_positions = old[-1]

    def shard(index: int, start: int, stop: int) -> PositionShard:
        return shard_of(model, index, range(start, stop), num_positions, order, trims, index == owner)

    seconds = shard_time(model, devices, batch, num_positions, shard, room_bytes)
    if not trims or owner is None:
        return search(num_positions, old, seconds)
    ends = search(num_positions, old[: owner + 2], seconds, keeps=owner)
    return (*ends, *old[owner + 2 :])


def _speed(device: DeviceSpec) -> tuple[float, ...]:
    return tuple(getattr(device, name) for name in SPEEDS)
