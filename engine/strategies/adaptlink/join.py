"""Give a device that joins AdaptLink a role: backup, or secondary in place of a slower one. Pure.

Hu et al., "AdaptLink" (AAAI 2025 workshop), section "Stability Assurance Mechanism": a new device gets
"unassigned sub-blocks and [is] evaluated against the performance of the original device"; if it is better it
becomes secondary and the original device a backup. Shares do not change. The paper does not say how much
better it must be; the margin here keeps two devices of equal speed from swapping repeatedly.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.strategies.adaptlink.roles import ColumnShard, MemoryBudget, Roles, ffn_ops, ffn_time

SWAP_MARGIN = 0.9


def roles_with(room: MemoryBudget, roles: Roles, joiner: int, margin: float = SWAP_MARGIN) -> Roles:
    """`roles` with device `joiner` as secondary, as backup, or with nothing to do.

    What is compared is T = F/P + O/B of both, as the cluster is now: the emulated devices keep to it.
    """
    target = target_of(room, roles, joiner)
    if target is None:
        return roles
    copy = target._replace(device=joiner)
    times_s = _times_s(room, roles, [joiner, target.device])
    if swaps(times_s[joiner], times_s[target.device], margin):
        shards = tuple(copy if shard == target else shard for shard in roles.shards)
        backups = {rank: pieces for rank, pieces in roles.backups.items() if rank != target.device}
        return roles._replace(shards=shards, backups=backups | {joiner: (target,)})
    if is_saved(roles, target):
        return roles
    return roles._replace(backups={**roles.backups, target.device: (copy,)})


def target_of(room: MemoryBudget, roles: Roles, joiner: int) -> ColumnShard | None:
    """The shard that a joiner gets: one without a complete backup, else the slowest secondary's.

    None if it has no room for any, or none can be given: heads stay where their KV cache is.
    """
    keep_heads = {share.device for share in roles.heads}
    shards = [
        shard
        for shard in roles.shards[1:]
        if shard.device not in keep_heads and _bytes_of(room, roles, shard) <= room.server_bytes(joiner)
    ]
    if not shards:
        return None
    times_s = _times_s(room, roles, [shard.device for shard in shards])
    return max(shards, key=lambda one: (not is_saved(roles, one), times_s[one.device], -one.device))


def swaps(joiner_s: float, owner_s: float, margin: float = SWAP_MARGIN) -> bool:
    """Whether a joiner replaces a shard's owner: only if it is faster by the margin."""
    return joiner_s < margin * owner_s


def is_saved(roles: Roles, shard: ColumnShard) -> bool:
    """Whether backups have all of its columns."""
    saved = sum(piece.stop - piece.start for piece in roles.backups.get(shard.device, ()))
    return saved == shard.stop - shard.start


def _times_s(room: MemoryBudget, roles: Roles, ranks: list[int]) -> Mapping[int, float]:
    ops = ffn_ops(room.model, room.demand)
    return {rank: ffn_time(room.cluster, room.model, ops, rank, roles.primary).total_s for rank in ranks}


def _bytes_of(room: MemoryBudget, roles: Roles, shard: ColumnShard) -> float:
    columns = (shard.stop - shard.start) / room.model.intermediate_size
    return roles.num_split * columns * room.ffn_bytes
