"""A pipeline of groups: each group has consecutive layers, and its devices divide them by heads and columns.

Few large messages go from group to group, over slow links; the many sums stay inside a group, on fast ones.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgeloom.method import (
    ClusterSpec,
    ComputedSlice,
    Count,
    Ctx,
    HeldSlice,
    Layout,
    ModelSpec,
    Params,
    Placement,
    Plan,
    Slice,
    Step,
    Strategy,
    Tensor,
    Value,
    Workload,
)
from edgeloom.method.collectives import all_reduce, broadcast
from edgeloom.method.demand import Demand, SizedOp, check_memory, demand_of, end_ops
from edgeloom.method.operations import Attention, FeedForward, Residual, kv_heads
from edgeloom.method.planning import bounds_of, head_shares, largest_remainder, layer_s, source_first
from edgeloom.method.running import (
    cache_of,
    embed,
    end_holdings,
    end_work,
    finish,
    share_ops,
    tag,
    wanted_rows,
)


class TwoLevelParams(Params):
    width: int = Field(default=2, ge=1, le=16, description="Devices of a group; the last one may have fewer.")


class Group(Value):
    """Layers [start, stop) on `ranks`: member i has heads [heads[i], heads[i + 1]), and columns likewise."""

    ranks: tuple[Count, ...]
    start: Count
    stop: Count
    heads: tuple[Count, ...]
    columns: tuple[Count, ...]


class TwoLevelLayout(Layout):
    """The groups in the order of computation."""

    kind: Literal["two_level"] = "two_level"
    groups: tuple[Group, ...]


class TwoLevel(Strategy[TwoLevelParams, TwoLevelLayout]):
    name = "two_level"
    title = "Pipeline of groups"
    summary = "Groups of devices have consecutive layers, and divide each of them by heads and columns."
    Params = TwoLevelParams
    Layout = TwoLevelLayout

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: TwoLevelParams
    ) -> Plan[TwoLevelLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        groups = groups_of(cluster, model, demand, params.width)
        pieces = [(rank, piece) for group in groups for rank, piece in pieces_of(group)]
        placement = Placement(
            strategy=self.name,
            holdings=(*end_holdings(cluster, model), *(HeldSlice(device=r, slice=p) for r, p in pieces)),
            work=(
                *end_work(cluster, model),
                *(ComputedSlice(device=r, slice=p) for r, p in pieces if p.start < p.stop),
            ),
        )
        kv_bytes: dict[int, int] = {}
        ops: dict[int, list[SizedOp]] = {}
        for group in groups:
            for i, rank in enumerate(group.ranks):
                heads, columns = group.heads[i : i + 2], group.columns[i : i + 2]
                first, last = kv_heads(model, *heads)
                kv_bytes[rank] = (group.stop - group.start) * demand.kv_bytes(model, last - first)
                ops[rank] = share_ops(model, demand, (heads[0], heads[1]), (columns[0], columns[1]))
        ops.setdefault(cluster.source_rank, []).extend(end_ops(model, demand))
        check_memory(cluster, model, placement, kv_bytes, ops, "give it more memory, or raise `width`")
        return placement.with_layout(TwoLevelLayout(groups=groups))

    async def forward(
        self, ctx: Ctx, plan: Plan[TwoLevelLayout], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        source = at = ctx.cluster.source_rank
        x = await embed(ctx, step, tokens) if ctx.rank == source else None
        for group in plan.layout.groups:
            if ctx.rank == at or ctx.rank in group.ranks:
                x = await broadcast(ctx, x, at, group.ranks, tag(step, "input", group.start))
            at = group.ranks[0]
            if ctx.rank in group.ranks:
                x = await layers_of(ctx, group, step, x)
        if ctx.rank == at != source:
            ctx.send(wanted_rows(step, x), source, tag(step, "output"))
        if ctx.rank != source:
            return None
        return await finish(ctx, step, x if at == source else await ctx.recv(at, tag(step, "output")))


def groups_of(cluster: ClusterSpec, model: ModelSpec, demand: Demand, width: int) -> tuple[Group, ...]:
    """Layers go to groups, and shares to their devices, in proportion to speed. A slow group may get none."""
    ranks = source_first(cluster)
    speeds = {rank: 1 / layer_s(cluster.devices[rank], model, demand) for rank in ranks}
    members = [ranks[first : first + width] for first in range(0, len(ranks), width)]
    sizes = largest_remainder(model.num_layers, [sum(speeds[rank] for rank in group) for group in members])
    cuts = bounds_of(sizes)
    return tuple(
        Group(
            ranks=group,
            start=cuts[i],
            stop=cuts[i + 1],
            heads=bounds_of(head_shares(model, [speeds[rank] for rank in group])),
            columns=bounds_of(largest_remainder(model.intermediate_size, [speeds[rank] for rank in group])),
        )
        for i, group in enumerate(members)
        if sizes[i]
    )


def pieces_of(group: Group) -> list[tuple[int, Slice]]:
    """What every member holds; a piece without heads has the norms, which all compute."""
    return [
        (rank, Slice(layer=layer, part=part, axis=axis, start=cut[i], stop=cut[i + 1]))
        for layer in range(group.start, group.stop)
        for part, axis, cut in (("attention", "heads", group.heads), ("ffn", "columns", group.columns))
        for i, rank in enumerate(group.ranks)
    ]


async def layers_of(ctx: Ctx, group: Group, step: Step, x: Tensor) -> Tensor:
    """The group's layers on one of its members: its share of each, and the sum of all shares."""
    me = group.ranks.index(ctx.rank)
    heads, columns = group.heads[me : me + 2], group.columns[me : me + 2]
    for layer in range(group.start, group.stop):
        share = Attention(layer, *heads, heads[0] == 0 < heads[1], cache_of(step))
        total = await all_reduce(ctx, await ctx.compute(share, x), group.ranks, tag(step, "attention", layer))
        x = await ctx.compute(Residual(layer, "attention"), x, total)
        share = FeedForward(layer, *columns, columns[0] == 0 < columns[1])
        total = await all_reduce(ctx, await ctx.compute(share, x), group.ranks, tag(step, "ffn", layer))
        x = await ctx.compute(Residual(layer, "ffn"), x, total)
    return x
