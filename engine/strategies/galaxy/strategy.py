"""Galaxy: tensor parallelism for attention and feed-forward parts, sequence parallelism between them.

Ye et al., "Galaxy: A Resource-Efficient Collaborative Edge AI System for In-situ Transformer Inference"
(INFOCOM 2024). Each all-reduce is split into a reduce-scatter and an all-gather by rows; a device adds the
residual to its own rows and normalises only them. In pre-norm families the residual stream stays divided by
rows and the all-gather carries normalised rows. With `overlap` matrix products run in tiles while other tiles
are transferred. A single row cannot be divided: in decode it belongs to the first device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from engine.domain.by_hand import PlanByHand, Unit
from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import PlanAt
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.ops.core import FeedForward, Norm, Residual
from engine.ops.heads import Attend, Join, Project, kv_of
from engine.ops.operation import LayerPart, Op
from engine.ops.tensors import Tensor, concat, narrow, shape_of
from engine.ops.tiles import Contract, Expand
from engine.program.collectives import (
    Rows,
    all_gather,
    broadcast,
    gather,
    reduce_scatter,
    ring_gather,
    rows_in,
)
from engine.program.ctx import Ctx, Handle
from engine.program.strategy import Step, Strategy
from engine.strategies.galaxy.best import GalaxySearch
from engine.strategies.galaxy.plan import GalaxyLayout, Planner, RowShares, check_shares, galaxy_plan
from engine.strategies.galaxy.report import GalaxyReport
from engine.strategies.planner.choice import PLANNER_HELP, PlannedParams, PlannerChoice
from engine.strategies.shared.by_hand import of_shares
from engine.strategies.shared.demand import Demand, demand_of
from engine.strategies.shared.ends import cache_of, finish, tag
from engine.strategies.shared.kv_disk import disk_rows
from engine.strategies.shared.kv_pressure import (
    KV_PRESSURE_HELP,
    KVPressure,
    attention_op,
    embed_rows,
    plan_under,
)
from engine.strategies.shared.shares import bounds_of, largest_remainder


class GalaxyParams(PlannedParams):
    units = ("heads", "columns", "rows")
    rule = ("division",)
    overlap: bool = Field(
        default=True,
        description="Compute tiles of the prompt's rows while others are on their way; not with experts, "
        "which every tile would read again.",
    )
    planner: PlannerChoice = Field(
        default="paper",
        description=PLANNER_HELP.format(rule="all devices, for the shortest layer over the prompt"),
    )
    division: Planner = Field(
        default="exact",
        description="With planner=paper: exact: the least time of the slowest devices, if there are at most "
        "8; balance: the paper's heuristic, shares by speed and then moved where memory is too small.",
    )
    row_shares: RowShares = Field(
        default="best",
        description="Rows per device between the parts: equal, proportional to speed, or the faster of both.",
    )
    kv_pressure: KVPressure = Field(default="oom", description=KV_PRESSURE_HELP)


class Galaxy(Strategy[GalaxyParams, GalaxyLayout]):
    name = "galaxy"
    splits_heads = True
    title = "Tensor and sequence parallel (Galaxy)"
    paper = "Ye et al., Galaxy, INFOCOM 2024"
    summary = "Heads and columns by speed and memory; rows are added and normed apart, transfers overlapped."
    rule = (
        "All devices take part, in the order of their list: another order, or one better device or link, "
        "can be slower."
    )
    Params = GalaxyParams
    Layout = GalaxyLayout
    Report = GalaxyReport

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: GalaxyParams
    ) -> Plan[GalaxyLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        overlap, row_shares = params.overlap and not model.num_experts, params.row_shares

        def plan_for(demand: Demand) -> Plan[GalaxyLayout]:
            if params.planner == "best" and params.plan is None:
                found = GalaxySearch(self, cluster, model, demand, overlap, row_shares).best_plan()
                if found is not None:
                    return found
            return galaxy_plan(
                self.name, cluster, model, demand, overlap, params.division, row_shares, params.plan
            )

        def check(plan: Plan[GalaxyLayout], demand: Demand) -> None:
            check_shares(cluster, model, demand, plan)

        return plan_under(params.kv_pressure, model, demand, plan_for, check)

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[GalaxyLayout]) -> PlanByHand:
        return of_shares(cluster, plan.layout, plan.layout.row_weights)

    def hand_steps(self, model: ModelSpec, params: GalaxyParams) -> Mapping[Unit, int]:
        return {"heads": model.group_size}

    def summarise(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        plans: Sequence[PlanAt],
        trace: Sequence[Span | Mark],
    ) -> GalaxyReport:
        return GalaxyReport.of(cluster, plans)

    def why_not_ragged(self, plan: Plan[GalaxyLayout]) -> str | None:
        return "galaxy projects rows at positions that follow each other, as those of one sequence do."

    async def forward(
        self, ctx: Ctx, plan: Plan[GalaxyLayout], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        group, source = plan.layout.group, ctx.cluster.source_rank
        sizes, rows = row_sizes(plan.layout, step), None
        member = _Member(ctx, plan, step, sizes) if ctx.rank in group else None
        if member is not None:
            member.rows.begin()
        x = await embed_rows(ctx, plan, step, tokens) if ctx.rank == source else None
        if ctx.rank in group or ctx.rank == source:
            x = await broadcast(ctx, x, source, group, tag(step, "input"))
        if member is not None:
            rows = await member.layers(x)
        if step.generates:  # only the last row is needed
            last = max(i for i, size in enumerate(sizes) if size)
            if ctx.rank != group[last]:
                rows = None
            sizes = [int(i == last) for i in range(len(group))]
            rows = None if rows is None else narrow(rows, 1, shape_of(rows)[1] - 1, shape_of(rows)[1])
        x = await gather(ctx, rows, sizes, source, group, tag(step, "output"))
        return await finish(ctx, step, x) if ctx.rank == source else None


def row_sizes(layout: GalaxyLayout, step: Step) -> Sequence[int]:
    """Number of rows of each member between the parts; a single row belongs to the first member."""
    rows = layout.rows_in_step(step)
    if rows == 1:
        return [int(i == 0) for i, _ in enumerate(layout.group)]
    return largest_remainder(rows, layout.row_weights)


class _Member:
    """One member's part in one step; `sizes` are all members' rows between the parts."""

    def __init__(self, ctx: Ctx, plan: Plan[GalaxyLayout], step: Step, sizes: Sequence[int]):
        self.ctx, self.plan, self.step, self.sizes = ctx, plan, step, sizes
        self.group = plan.layout.group
        self.me = self.group.index(ctx.rank)
        self.bounds = bounds_of(sizes)
        self.heads, self.columns = plan.layout.heads_of(ctx.rank), plan.layout.columns_of(ctx.rank)
        # the first device with a share adds the output bias, once
        self.adds_bias = [start == 0 < stop for start, stop in (self.heads, self.columns)]
        self.divided = sum(sizes) > 1
        self.rows = disk_rows(ctx, plan, step, self.heads)
        # recomputed rows are not at consecutive positions, which `Project` needs: then all rows at once
        self.tiles = plan.layout.overlap and self.divided and not plan.layout.evicted_rows(step)

    async def layers(self, x: Tensor) -> Tensor | None:
        """Compute all layers: from all rows [B, T, D] of the first one's input to this member's rows of the
        last one's output.
        """
        mine = self.sizes[self.me]
        rows = narrow(x, 1, self.bounds[self.me], self.bounds[self.me + 1]) if mine else None
        shard, whole = None, x
        for layer in range(self.ctx.model.num_layers):
            for part in ("attention", "ffn"):
                total = await self._part(layer, part, shard, whole)
                if rows is not None:
                    rows = await self.ctx.compute(Residual(layer, part), rows, total)
                shard, whole = await self._next_input(layer, part, rows), None
        await self.rows.settle()
        return rows

    async def _next_input(self, layer: int, part: LayerPart, rows: Tensor | None) -> Tensor | None:
        """The rows of this member of the input of the part after `part`."""
        after: tuple[int, LayerPart] = (layer, "ffn") if part == "attention" else (layer + 1, "attention")
        if rows is None or not self.ctx.model.norms_inputs or after[0] == self.ctx.model.num_layers:
            return rows
        return await self.ctx.compute(Norm(*after), rows)

    async def _part(
        self, layer: int, part: LayerPart, shard: Tensor | None, whole: Tensor | None
    ) -> Tensor | None:
        """The rows of this member of the part's complete sum. The input is either `whole`, not yet
        normalised, or the `shard` of every member.
        """
        ctx, around = self.ctx, (self.sizes, self.group)
        gathered, summed = (tag(self.step, f"{part}_{what}", layer) for what in ("rows", "sum"))
        if self.tiles:
            addends = await self._in_tiles(layer, part, shard, whole, gathered)
            return await reduce_scatter(ctx, addends, *around, summed)
        # a single row: to its owner and from there to all, in one hop each
        algorithm: Literal["ring", "direct"] = "ring" if self.divided else "direct"
        normed = whole is None
        if normed:
            whole = await all_gather(ctx, shard, *around, gathered, algorithm)
        partial = await self.rows.compute(self._op(layer, part, normed), whole)
        return await reduce_scatter(ctx, rows_in(partial, self.sizes), *around, summed, algorithm)

    def _op(self, layer: int, part: LayerPart, normed: bool) -> Op:
        if part == "ffn":
            return FeedForward(layer, *self.columns, self.adds_bias[1], normed)
        return attention_op(self.plan, self.step, layer, *self.heads, self.adds_bias[0], normed)

    async def _in_tiles(
        self, layer: int, part: LayerPart, shard: Tensor | None, whole: Tensor | None, gathered: str
    ) -> Rows:
        """The part up to its last matrix. Returns a function that multiplies with that one, tile by tile."""
        normed, started = whole is None, dict[int, Handle]()

        def arrived(member: int, tile: Tensor) -> None:
            started[member] = self.ctx.compute(self._first_op(layer, part, member, normed), tile)

        if normed:
            await ring_gather(self.ctx, shard, self.sizes, self.group, gathered, arrived)
        else:
            for member, size in enumerate(self.sizes):
                if size:
                    arrived(member, narrow(whole, 1, self.bounds[member], self.bounds[member + 1]))
        tiles = {member: await started[member] for member in sorted(started)}
        if part == "ffn":
            contract = Contract(layer, *self.columns, self.adds_bias[1])
            return lambda member: self.ctx.compute(contract, tiles[member])
        context = await self._attend(layer, concat([*tiles.values()], 2))
        join = Join(layer, *self.heads, tuple(range(*self.heads)), self.adds_bias[0])
        return lambda member: self.ctx.compute(
            join, narrow(context, 2, self.bounds[member], self.bounds[member + 1])
        )

    def _first_op(self, layer: int, part: LayerPart, member: int, normed: bool) -> Op:
        if part == "ffn":
            return Expand(layer, *self.columns, normed)
        return Project(layer, *self.heads, self.step.start + self.bounds[member], normed)

    async def _attend(self, layer: int, packed: Tensor) -> Tensor:
        """The projection [B, H+2K, T, E] of all rows → the attended heads [B, H, T, E]."""
        heads = tuple(range(*self.heads))
        attend = Attend(layer, heads, kv_of(self.ctx.model, heads), cache_of(self.step))
        queries = narrow(packed, 1, 0, len(heads))
        keys_values = narrow(packed, 1, len(heads), shape_of(packed)[1])
        return await self.rows.compute(attend, queries, keys_values)
