"""Choose AdaptLink's roles: the primary, secondaries and backups, and what each of them has. Pure.

Hu et al., "AdaptLink" (AAAI 2025 workshop), sections "Dynamic Allocation Strategy" and "Stability Assurance
Mechanism". The paper gives no rule for roles; here the primary is the fastest of the devices with the
most memory, secondaries are the first few by T = F/P + O/B that have enough memory together, and all others
are inactive and can be backups. Ties go to the lower rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Axis, Part, Placement, Slice
from engine.domain.units import human, needs_and_has, transfer_s
from engine.ops.core import FeedForward
from engine.ops.sizes import weight_bytes
from engine.ops.tensors import payload_bytes
from engine.strategies.adaptlink.shares import FfnTime, Primary, Split, split_layers
from engine.strategies.shared.demand import (
    Demand,
    SizedOp,
    block_ops,
    end_ops,
    hidden,
    weights_bytes,
    working_bytes,
)
from engine.strategies.shared.messages import fixed_s
from engine.strategies.shared.shares import op_s


class ColumnShard(NamedTuple):
    """Columns [start, stop) of every split feed-forward part, on `device` (rank)."""

    device: int
    start: int
    stop: int


class HeadShare(NamedTuple):
    """Query heads [start, stop) of `layer`, with their KV cache, on `device` (rank)."""

    layer: int
    device: int
    start: int
    stop: int


class Roles(NamedTuple):
    """What every device has. `shards` begin with the primary's; `backups` are by the secondary's rank."""

    primary: int
    grid: int
    num_split: int
    shards: tuple[ColumnShard, ...]
    heads: tuple[HeadShare, ...]
    backups: Mapping[int, tuple[ColumnShard, ...]]

    def coverage(self) -> float:
        """Share of the secondaries' columns that some backup has."""
        columns = sum(shard.stop - shard.start for shard in self.shards[1:])
        saved = sum(piece.stop - piece.start for pieces in self.backups.values() for piece in pieces)
        return saved / columns if columns else 1.0


class Spare(NamedTuple):
    """Memory for further copies: see `SharesLayout`."""

    rooms_bytes: Mapping[int, float]
    column_bytes: float
    rest_bytes: float


@dataclass(frozen=True)
class MemoryBudget:
    """Bytes that a device may use, that it needs besides layers, and that layers need."""

    cluster: ClusterSpec
    model: ModelSpec
    demand: Demand
    ends: Placement
    beta: float

    def usable_bytes(self, rank: int) -> float:
        return self.beta * self.cluster.devices[rank].usable_bytes

    def besides_bytes(self, rank: int, ops: Sequence[SizedOp]) -> int:
        """Bytes of the source's ends, and of the working set of `ops`."""
        source = rank == self.cluster.source_rank
        all_ops = [*ops, *(end_ops(self.model, self.demand) if source else ())]
        weights = weights_bytes(self.ends, self.model, rank) if source else 0
        return weights + working_bytes(self.model, all_ops)

    def rest_bytes(self, part: Part) -> int:
        """Bytes of norm and output bias, which every slice of `part` includes."""
        return weight_bytes(self.model, _piece(part, 0, 0))

    @property
    def ffn_bytes(self) -> int:
        """Bytes of one feed-forward part that can move to another device."""
        return weight_bytes(self.model, Slice(layer=0, part="ffn")) - self.rest_bytes("ffn")

    @property
    def group_bytes(self) -> int:
        """One KV head of one layer with its query heads and its KV cache."""
        weights = weight_bytes(self.model, _piece("attention", 0, self.model.group_size))
        return weights - self.rest_bytes("attention") + self.demand.kv_bytes(self.model, 1)

    def primary(self, rank: int) -> Primary:
        model, ops = self.model, block_ops(self.model, self.demand)
        fixed = self.besides_bytes(rank, ops) + model.num_layers * (
            weight_bytes(model, Slice(layer=0, part="attention"))
            + self.demand.kv_bytes(model, model.num_kv_heads)
            + self.rest_bytes("ffn")
        )
        return Primary(fixed, self.ffn_bytes, model.num_layers, self.usable_bytes(rank))

    def server_bytes(self, rank: int) -> float:
        """Bytes for slices of layers on a device that computes for the primary."""
        ops = block_ops(self.model, self.demand)
        rests = self.model.num_layers * self.rest_bytes("ffn")
        return self.usable_bytes(rank) - self.besides_bytes(rank, ops) - rests


def ffn_ops(model: ModelSpec, demand: Demand) -> Counter[SizedOp]:
    """A whole feed-forward part over the prompt, then over every further token, and how often."""
    op = FeedForward(0, 0, model.intermediate_size, True, normed=True)
    ops = Counter([SizedOp(op, (hidden(model, demand.batch, demand.rows),))])
    ops[SizedOp(op, (hidden(model, demand.batch, 1),))] += max(0, demand.new_tokens - 1)
    return +ops


def ffn_time(
    cluster: ClusterSpec, model: ModelSpec, ops: Mapping[SizedOp, int], rank: int, primary: int
) -> FfnTime:
    """Seconds that `ops` take on device `rank`, and that their outputs take to `primary`."""
    device = cluster.devices[rank]
    compute_s = sum(times * op_s(device, model, one) for one, times in ops.items())
    if rank == primary:
        return FfnTime(compute_s)
    path = cluster.path(rank, primary)
    rate = min(cluster.links[hop.link].rate(hop.forward) for hop in path)
    besides_s = fixed_s(cluster, rank, primary)
    output_s = sum(
        times * (transfer_s(payload_bytes(one.inputs[0]), rate) + besides_s) for one, times in ops.items()
    )
    return FfnTime(compute_s, output_s)


def primary_of(cluster: ClusterSpec, model: ModelSpec, demand: Demand) -> int:
    """The fastest of the workers with the most memory."""
    most = max(cluster.devices[rank].usable_bytes for rank in cluster.workers)
    largest = [rank for rank in cluster.workers if cluster.devices[rank].usable_bytes == most]
    ops = ffn_ops(model, demand)
    return min(largest, key=lambda rank: (ffn_time(cluster, model, ops, rank, rank).compute_s, rank))


def roles_of(
    room: MemoryBudget,
    primary: int,
    grid: int,
    share: float | None,
    max_secondaries: int,
    backups: bool,
    heads: bool = True,
) -> Roles:
    """The paper's roles: the fewest secondaries, and both sides balanced by equation 5. Raises `PlanError`
    if memory is too small for any.

    `share` is the primary's share of a split part, None for a balanced one; `heads` allows attention heads
    to move.
    """
    cluster, model, demand = room.cluster, room.model, room.demand
    mine = room.primary(primary)
    if mine.over_bytes <= 0:
        return alone_on(room, primary, grid)
    ops = ffn_ops(model, demand)
    times = {rank: ffn_time(cluster, model, ops, rank, primary) for rank in cluster.workers}
    candidates = sorted(
        (rank for rank in cluster.workers if rank != primary), key=lambda rank: (times[rank].total_s, rank)
    )
    rooms = {rank: room.server_bytes(rank) for rank in candidates}
    for count in range(1, min(max_secondaries or len(candidates), len(candidates)) + 1):
        chosen = candidates[:count]
        times_s = [times[rank].total_s for rank in (primary, *chosen)]
        split = split_layers(mine, [rooms[rank] for rank in chosen], times_s, grid, share)
        if split is None:
            continue
        used = {rank: size for rank, size in zip(chosen, split.blocks[1:], strict=True) if size}
        block_bytes = split.num_split * mine.ffn_bytes / grid
        left = {rank: rooms[rank] - size * block_bytes for rank, size in used.items()}
        over_bytes = mine.over_bytes - (grid - split.blocks[0]) * block_bytes
        moved = place_heads(room, over_bytes, left) if heads else () if over_bytes <= 0 else None
        if moved is not None:
            return roles_with_backups(room, (primary, *chosen), split, grid, moved, backups)
    raise too_small(room, primary)


def alone_on(room: MemoryBudget, primary: int, grid: int) -> Roles:
    """The primary computes everything."""
    return Roles(primary, grid, 0, (ColumnShard(primary, 0, room.model.intermediate_size),), (), {})


def roles_with_backups(
    room: MemoryBudget,
    ranks: Sequence[int],
    split: Split,
    grid: int,
    heads: tuple[HeadShare, ...],
    backups: bool,
) -> Roles:
    """The roles of a split among `ranks`, the primary first, with copies on inactive devices if `backups`."""
    primary, model = ranks[0], room.model
    shards = shards_of(model, ranks, split, grid)
    saved: dict[int, tuple[ColumnShard, ...]] = {}
    if backups:
        ops, used = ffn_ops(model, room.demand), {shard.device for shard in shards}
        idle = [rank for rank in room.cluster.workers if rank not in used]
        idle.sort(key=lambda one: (ffn_time(room.cluster, model, ops, one, primary).total_s, one))
        column_bytes = split.num_split * room.ffn_bytes / model.intermediate_size
        rests = split.num_split * room.rest_bytes("ffn")
        rooms = {rank: room.server_bytes(rank) for rank in idle}
        saved = place_backups(shards, rooms, column_bytes, rests, model.intermediate_size // grid)
    return Roles(primary, grid, split.num_split, shards, heads, saved)


def spare_of(room: MemoryBudget, roles: Roles) -> Spare:
    """What every worker but the primary has left besides shards, heads and copies; the fastest of those that
    have nothing to serve come first. Nothing if no layer is split.
    """
    column_bytes = roles.num_split * room.ffn_bytes / room.model.intermediate_size
    rest_bytes = roles.num_split * room.rest_bytes("ffn")
    others = [rank for rank in room.cluster.workers if rank != roles.primary]
    left = {rank: room.server_bytes(rank) for rank in others} if roles.num_split else {}
    for piece in (*roles.shards[1:], *(one for pieces in roles.backups.values() for one in pieces)):
        left[piece.device] -= (piece.stop - piece.start) * column_bytes + rest_bytes
    for share in roles.heads:
        groups = (share.stop - share.start) // room.model.group_size
        left[share.device] -= groups * room.group_bytes + room.rest_bytes("attention")
    serving = {shard.device for shard in roles.shards}
    ops = ffn_ops(room.model, room.demand)

    def order(rank: int) -> tuple[bool, float, int]:
        total_s = ffn_time(room.cluster, room.model, ops, rank, roles.primary).total_s
        return rank in serving, total_s, rank

    enough = column_bytes * room.model.intermediate_size // roles.grid + rest_bytes
    rooms = {rank: left[rank] for rank in sorted(left, key=order) if left[rank] >= enough}
    return Spare(rooms, column_bytes, float(rest_bytes))


def shards_of(model: ModelSpec, ranks: Sequence[int], split: Split, grid: int) -> tuple[ColumnShard, ...]:
    """The columns of every device: consecutive, the primary's first, though it may have none; no other shard
    is empty.
    """
    width, shards, at = model.intermediate_size // grid, [], 0
    for number, (rank, size) in enumerate(zip(ranks, split.blocks, strict=True)):
        if size or not number:
            shards.append(ColumnShard(rank, at, at + size * width))
            at += size * width
    return tuple(shards)


def place_heads(
    room: MemoryBudget, over_bytes: float, left_bytes: Mapping[int, float]
) -> tuple[HeadShare, ...] | None:
    """Whole KV groups for secondaries, last layer first, until `over_bytes` are moved; None without room."""
    model, left, shares = room.model, dict(left_bytes), []
    groups = max(0, -int(-over_bytes // room.group_bytes))
    for layer in reversed(range(model.num_layers)):
        at = model.num_kv_heads - min(groups, model.num_kv_heads)
        groups -= model.num_kv_heads - at
        for rank in left:
            free = int((left[rank] - room.rest_bytes("attention")) // room.group_bytes)
            taken = max(0, min(free, model.num_kv_heads - at))
            if taken:
                heads = (at * model.group_size, (at + taken) * model.group_size)
                shares.append(HeadShare(layer, rank, *heads))
                left[rank] -= taken * room.group_bytes + room.rest_bytes("attention")
                at += taken
        if at < model.num_kv_heads:
            return None
        if not groups:
            return tuple(shares)
    return None


def place_backups(
    shards: Sequence[ColumnShard],
    idle_bytes: Mapping[int, float],
    column_bytes: float,
    rest_bytes: float,
    width: int,
) -> dict[int, tuple[ColumnShard, ...]]:
    """Copies of the secondaries' shards on inactive devices, the largest shard first.

    The first device with room for a whole shard gets it, so that a failover changes no bit. Without such a
    device the shard is divided in whole blocks of `width` columns. `rest_bytes` come with each piece.
    """
    left, backups = dict(idle_bytes), {}
    for shard in sorted(shards[1:], key=lambda one: (one.start - one.stop, one.device)):
        need = (shard.stop - shard.start) * column_bytes + rest_bytes
        whole = [rank for rank in left if left[rank] >= need][:1]
        pieces, at = [], shard.start
        for rank in whole or left:
            fits = int((left[rank] - rest_bytes) // (column_bytes * width)) * width
            stop = min(shard.stop, at + max(0, fits))
            if whole:
                stop = shard.stop
            if stop > at:
                pieces.append(ColumnShard(rank, at, stop))
                left[rank] -= (stop - at) * column_bytes + rest_bytes
                at = stop
        if pieces:
            backups[shard.device] = tuple(pieces)
    return backups


def _piece(part: Part, start: int, stop: int) -> Slice:
    axis: Axis = "heads" if part == "attention" else "columns"
    return Slice(layer=0, part=part, axis=axis, start=start, stop=stop)


def too_small(room: MemoryBudget, primary: int) -> PlanError:
    """The error that `primary` lacks memory, with what all others have room for."""
    mine, device = room.primary(primary), room.cluster.devices[primary]
    rooms = {rank: room.server_bytes(rank) for rank in room.cluster.workers if rank != primary}
    need = mine.usable_bytes + mine.over_bytes
    others = ", ".join(
        f"{room.cluster.devices[rank].name} has room for {human(max(0.0, free), 'B')}"
        for rank, free in rooms.items()
    )
    needs = needs_and_has(need, device.usable_bytes, f" for {room.model.name}")
    return PlanError(
        f"{room.ends.strategy}: {device.name} as primary {needs}, "
        f"{100 * room.beta:.3g}% of which may be used; "
        f"{others or 'it is alone'}: add devices or memory, raise beta, or shorten prompt and answer."
    )
