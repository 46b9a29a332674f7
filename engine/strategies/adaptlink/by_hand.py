"""Plans of AdaptLink made by hand: the columns of each device, the split layers, and the copies. Pure."""

from __future__ import annotations

from collections import defaultdict

from engine.domain.by_hand import BackupShare, DeviceShare, PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.strategies.adaptlink.choice import Wishes
from engine.strategies.adaptlink.roles import (
    ColumnShard,
    MemoryBudget,
    Roles,
    alone_on,
    place_heads,
    roles_with_backups,
    too_small,
)
from engine.strategies.adaptlink.shares import Split
from engine.strategies.shared.by_hand import check_whole, workers_of


def roles_by_hand(room: MemoryBudget, plan: PlanByHand, wishes: Wishes) -> Roles:
    """Roles by a plan made by hand: the first device is the primary, the others with columns are its
    secondaries.

    Without `split_layers` as few layers are split as the primary's memory needs. Attention heads move where
    the primary has no room for them, as in every plan. Raises `PlanError`.
    """
    name, model = room.ends.strategy, room.model
    width = model.intermediate_size // wishes.grid
    check_whole(name, model, plan.devices, "columns", width)
    first, *others = plan.devices
    given = [first, *(share for share in others if share.columns)]
    ranks = workers_of(name, room.cluster, [share.device for share in given])
    if wishes.primary not in (None, ranks[0]):
        raise PlanError(
            f"{name}: primary is {room.cluster.devices[wishes.primary or 0].name}, and the plan made by hand "
            f"begins with {first.device}: name the same device in both."
        )
    blocks = tuple(share.columns // width for share in given)
    mine = room.primary(ranks[0])
    if len(given) == 1:
        if mine.over_bytes > 0:
            raise too_small(room, ranks[0])
        return alone_on(room, ranks[0], wishes.grid)
    num_split = plan.split_layers
    if num_split is None:
        num_split = min(model.num_layers, max(1, mine.num_split(blocks[0] / wishes.grid)))
    if not 1 <= num_split <= model.num_layers:
        raise PlanError(
            f"{name}: split_layers is {num_split} in the plan made by hand, and {model.name} has "
            f"{model.num_layers} layers: choose 1 to {model.num_layers}."
        )
    block_bytes = num_split * mine.ffn_bytes / wishes.grid
    over_bytes = mine.over_bytes - (wishes.grid - blocks[0]) * block_bytes
    left = {
        rank: room.server_bytes(rank) - size * block_bytes
        for rank, size in zip(ranks[1:], blocks[1:], strict=True)
    }
    heads = place_heads(room, over_bytes, left) if wishes.heads else () if over_bytes <= 0 else None
    if heads is None:
        raise too_small(room, ranks[0])
    split = Split(num_split, blocks)
    roles = roles_with_backups(
        room, ranks, split, wishes.grid, heads, wishes.backups and plan.backups is None
    )
    return roles._replace(backups=_backups(name, room, roles, plan.backups)) if plan.backups else roles


def _backups(
    name: str, room: MemoryBudget, roles: Roles, given: tuple[BackupShare, ...]
) -> dict[int, tuple[ColumnShard, ...]]:
    """Copies of consecutive columns of each secondary, in the order of the plan."""
    shards = {shard.device: shard for shard in roles.shards[1:]}
    found: defaultdict[int, list[ColumnShard]] = defaultdict(list)
    for copy in given:
        rank, holder = workers_of(name, room.cluster, [copy.of, copy.device])
        if rank not in shards or holder in (rank, roles.primary):
            raise PlanError(
                f"{name}: the plan made by hand has a copy of {copy.of}'s columns on {copy.device}: copies "
                "are of secondaries, and not on the primary or on the secondary itself."
            )
        shard = shards[rank]
        start = found[rank][-1].stop if found[rank] else shard.start
        if not 0 < copy.columns <= shard.stop - start:
            raise PlanError(
                f"{name}: the plan made by hand copies {copy.columns} columns of {copy.of} to {copy.device}, "
                f"and {shard.stop - start} of them have no copy yet: give 1 to {shard.stop - start}."
            )
        found[rank].append(ColumnShard(holder, start, start + copy.columns))
    return {rank: tuple(pieces) for rank, pieces in found.items()}


def of_roles(cluster: ClusterSpec, roles: Roles) -> PlanByHand:
    """The primary, then its secondaries."""

    def name(rank: int) -> str:
        return cluster.devices[rank].name

    return PlanByHand(
        devices=tuple(
            DeviceShare(device=name(shard.device), columns=shard.stop - shard.start) for shard in roles.shards
        ),
        split_layers=roles.num_split or None,
        backups=tuple(
            BackupShare(of=name(rank), device=name(piece.device), columns=piece.stop - piece.start)
            for rank, pieces in roles.backups.items()
            for piece in pieces
        ),
    )
