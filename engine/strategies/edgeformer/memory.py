"""Compute how many attention heads each device has room for, so that no run exceeds its memory. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement
from engine.ops.core import FeedForward, Residual
from engine.ops.heads import (
    Attend,
    Features,
    Importance,
    Join,
    Mix,
    Project,
    Recall,
    Regroup,
    Statistics,
    Weigh,
    kv_of,
)
from engine.ops.sizes import kv_bytes_per_row
from engine.ops.tensors import Meta
from engine.strategies.edgeformer.layout import OwnedBlocks
from engine.strategies.edgeformer.table_size import FEATURE_POINTS, entry_bytes
from engine.strategies.shared.demand import (
    Demand,
    SizedOp,
    check_memory,
    end_ops,
    hidden,
    weights_bytes,
    working_bytes,
)


class HeadRooms(NamedTuple):
    """Heads that a device has room for, by rank: in a block of its own, and in each block of others.

    `weighed` and `entries` are what memory is left for on owners: heads whose attention weights are kept
    until they are attended, and entries of every block's mapping table.
    """

    own: tuple[int, ...]
    lent: tuple[int, ...]
    weighed: tuple[int, ...] = ()
    entries: tuple[int, ...] = ()

    def hold_all(self, owner: int, num_heads: int) -> bool:
        """Whether all heads of a block of `owner` find room somewhere."""
        return self.own[owner] + sum(self.lent) - self.lent[owner] >= num_heads


def rooms_for_heads(
    cluster: ClusterSpec,
    model: ModelSpec,
    placement: Placement,
    owned: Sequence[OwnedBlocks],
    demand: Demand,
    caches: bool,
    max_entries: int,
) -> HeadRooms:
    """How many heads every device can attend, such that no run of the plan can exceed its memory.

    Blocks of its own come first. What a device lends to others' blocks includes, with `caches`, K and V of
    its heads in every block that it does not own. Of what is left, a mapping table of each block gets room
    for up to `max_entries`, then the attention weights of measured heads. Raises `PlanError` if an owner has
    no room for the rest of its blocks' operations.
    """
    blocks = {rank: stop - start for rank, start, stop in owned}
    kv_of_head = demand.sequences * demand.cached_rows * kv_bytes_per_row(model, 1) if caches else 0
    kv_bytes = {
        rank: blocks.get(rank, 0) * model.num_kv_heads * kv_of_head for rank in range(len(cluster.devices))
    }
    ops: dict[int, list[SizedOp]] = {rank: owner_ops(model, demand, caches) for rank in blocks}
    ops.setdefault(cluster.source_rank, []).extend(end_ops(model, demand))
    check_memory(
        cluster,
        model,
        placement,
        kv_bytes,
        ops,
        "give it more memory, or add devices that own some blocks",
    )
    own, lent, weighed, entries = [], [], [], []
    own_needs, lent_needs = (
        [
            working_bytes(model, attend_ops(model, demand, heads, caches, owns))
            for heads in range(model.num_heads + 1)
        ]
        for owns in (True, False)
    )
    weigh_needs = [working_bytes(model, weigh_ops(model, demand, h)) for h in range(model.num_heads + 1)]
    for rank, device in enumerate(cluster.devices):
        free = device.usable_bytes - weights_bytes(placement, model, rank) - kv_bytes[rank]
        mine = _most(own_needs, free) if rank in blocks else 0
        busy = max(own_needs[mine] if rank in blocks else 0, working_bytes(model, ops.get(rank, ())))
        foreign = (model.num_layers - blocks.get(rank, 0)) * kv_of_head
        needs = [max(busy, need) + foreign * min(m, model.num_kv_heads) for m, need in enumerate(lent_needs)]
        own.append(mine)
        lent.append(_most(needs, free) if rank in cluster.workers else 0)
        left = free - needs[lent[-1]]
        table_bytes = blocks.get(rank, 0) * entry_bytes(model)
        entries.append(max(0, min(max_entries, int(left // table_bytes))) if table_bytes else 0)
        kept = foreign * min(lent[-1], model.num_kv_heads) + entries[-1] * table_bytes
        weighed.append(_most(weigh_needs, free - kept) if rank in blocks else 0)
    return HeadRooms(tuple(own), tuple(lent), tuple(weighed), tuple(entries))


def _most(needs: Sequence[int], free: float) -> int:
    """The largest number of heads whose need is no more than `free`; 0 if there is none."""
    return max((heads for heads, need in enumerate(needs) if need <= free), default=0)


def owner_ops(model: ModelSpec, demand: Demand, caches: bool) -> list[SizedOp]:
    """An owner's operations in the prefill except attention; those of a decode step are smaller."""
    batch, rows, wide = demand.batch, demand.rows, model.head_dim
    heads, keys = tuple(range(model.num_heads)), tuple(range(model.num_kv_heads))
    x = hidden(model, batch, rows)
    queries = Meta((batch, len(heads), rows, wide), model.dtype)
    keys_only = Meta((batch, len(keys), rows, wide), model.dtype)
    packed = Meta((batch, len(heads) + 2 * len(keys), rows, wide), model.dtype)
    ops = [
        SizedOp(Project(0, 0, len(heads)), (x,)),
        SizedOp(Features(0, FEATURE_POINTS), (packed,)),
        SizedOp(Importance(0, heads, keys), (queries, keys_only)),
        SizedOp(Join(0, 0, len(heads), heads, True), (queries,)),
        SizedOp(Residual(0, "attention"), (x, x)),
        SizedOp(FeedForward(0, 0, model.intermediate_size, True), (x,)),
    ]
    if caches and demand.new_tokens > 1:
        ops.append(SizedOp(Recall(0, keys, keys, batch, "plan"), (), demand.cached_rows))
    return ops


def weigh_ops(model: ModelSpec, demand: Demand, heads: int) -> list[SizedOp]:
    """Measuring `heads` heads of the prompt and attending them by the same attention weights."""
    if not heads:
        return []
    batch, rows, numbers = demand.batch, demand.rows, tuple(range(heads))
    stored = kv_of(model, numbers)
    queries, keys = (Meta((batch, len(h), rows, model.head_dim), model.dtype) for h in (numbers, stored))
    weights = Meta((batch, heads, rows, rows), model.dtype)
    return [
        SizedOp(Weigh(0, numbers, stored), (queries, keys)),
        SizedOp(Statistics(0), (weights,)),
        SizedOp(Mix(0, numbers, stored), (weights, keys)),
    ]


def attend_ops(model: ModelSpec, demand: Demand, heads: int, caches: bool, owns: bool) -> list[SizedOp]:
    """Attending `heads` heads over the prompt and over the last token, and taking cached heads over.

    An owner with caches passes K and V of all heads in, a neighbour those of its heads: one each at most.
    """
    numbers, every = tuple(range(heads)), tuple(range(model.num_kv_heads))
    stored = every if owns and caches else every[: min(heads, model.num_kv_heads)]
    sizes = [(demand.rows, 0)]
    if caches and demand.new_tokens > 1:
        sizes.append((1, demand.cached_rows - 1))
    ops = []
    for rows, cached in sizes:
        queries = Meta((demand.batch, heads, rows, model.head_dim), model.dtype)
        keys_values = Meta((demand.batch, 2 * len(stored), rows, model.head_dim), model.dtype)
        attend = Attend(0, numbers, stored, "plan" if caches else None)
        ops.append(SizedOp(attend, (queries, keys_values), cached))
    if caches and demand.new_tokens > 1 and not owns:
        moved = Meta((demand.batch, 2 * len(stored), demand.cached_rows, model.head_dim), model.dtype)
        ops.append(SizedOp(Regroup(0, (), stored, "plan"), (moved,), demand.cached_rows))
    return ops
