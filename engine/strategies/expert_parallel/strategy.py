"""Expert parallelism: experts are on several devices, and rows travel to those that they choose.

Lepikhin et al., "GShard" (arXiv 2006.16668) place experts so among equal devices that also share the tokens.
Here one device, the host, has all attention and the routers, as the base station of Xue et al., "WDMoE:
Wireless Distributed Mixture of Experts for Large Language Models" (arXiv 2411.06681). Unlike there, all
experts of a row are asked, so the numbers are the model's. Sums are added in the order of the devices, never
in that of arrival.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import PlanAt
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.ops.core import Add, Attention, Residual
from engine.ops.layers import layers
from engine.ops.mixture import Experts, Route, SharedExpert
from engine.ops.operation import Op
from engine.ops.tensors import Tensor, concat, narrow, reshape, shape_of, spread, take
from engine.program.ctx import Ctx
from engine.program.strategy import DivisibleParams, Step, Strategy
from engine.strategies.expert_parallel.choices import Call, Choices, calls_of
from engine.strategies.expert_parallel.plan import (
    ExpertsBy,
    ExpertsLayout,
    experts_plan,
    given_counts,
    of_experts,
)
from engine.strategies.expert_parallel.report import USED, ExpertsReport
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.ends import caches_of, embed, finish, tag, wanted_rows
from engine.strategies.shared.shares import named_worker
from engine.strategies.single import by_request_time, first_that_fits

END = -1


class ExpertParallelParams(DivisibleParams):
    units = ("experts",)
    host: str = Field(
        default="",
        description="Worker with attention and routers; empty: of those under which all fits, the one that "
        "is estimated to be fastest.",
    )
    by: ExpertsBy = Field(
        default="flops",
        description="Experts per device: in proportion to its speed or to its free memory, equal, as "
        "many as fit on the host and the rest by speed, or such that the rows that chose them in a recorded "
        "run take all devices equally long.",
    )


class ExpertParallel(Strategy[ExpertParallelParams, ExpertsLayout]):
    name = "expert_parallel"
    title = "Expert parallel"
    paper = "Lepikhin et al., GShard, 2020; Xue et al., WDMoE, 2024"
    summary = "One device has attention, all have experts; rows go where their experts are, and back."
    rule = (
        "All devices have experts, by one device's time for one row: a better device or link can be slower."
    )
    Params = ExpertParallelParams
    Layout = ExpertsLayout
    Report = ExpertsReport

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: ExpertParallelParams
    ) -> Plan[ExpertsLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        named = named_worker(cluster, params.host, f"parameters of {self.name}, host")
        hosts = by_request_time(cluster, model, demand) if named is None else [named]
        if model.num_experts:
            return experts_plan(self.name, cluster, model, demand, hosts, params.by, params.plan)
        if params.plan is not None:
            given_counts(self.name, cluster, model, params.plan)
        host, placement = first_that_fits(hosts, self.name, cluster, model, demand)
        return placement.with_layout(ExpertsLayout(host=host, group=(host,), experts=(0, 0)))

    def partners(self, cluster: ClusterSpec, plan: Plan[ExpertsLayout]) -> frozenset[tuple[int, int]]:
        """Which devices are asked, the data tell."""
        host = plan.layout.host
        asked = [rank for rank in plan.layout.asked if rank != host]
        return frozenset([(host, rank) for rank in asked] + [(rank, host) for rank in asked])

    def summarise(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        plans: Sequence[PlanAt],
        trace: Sequence[Span | Mark],
    ) -> ExpertsReport | None:
        return ExpertsReport.of(cluster, plans, trace)

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[ExpertsLayout]) -> PlanByHand:
        return of_experts(cluster, plan.layout)

    def why_not_ragged(self, plan: Plan[ExpertsLayout]) -> str | None:
        if not any(plan.layout.experts):
            return None
        return "expert_parallel records which experts a token asks, and parts of prompts have no token."

    async def forward(
        self, ctx: Ctx, plan: Plan[ExpertsLayout], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        host, source = plan.layout.host, ctx.cluster.source_rank
        x = await embed(ctx, step, tokens) if ctx.rank == source else None
        if host != source and ctx.rank == source:
            ctx.send(x, host, tag(step, "input"))
        if ctx.rank == host:
            if host != source:
                x = await ctx.recv(source, tag(step, "input"))
            x = await _layers(ctx, plan.layout, step, x)
            if host == source:
                return await finish(ctx, step, x)
            ctx.send(wanted_rows(step, x), source, tag(step, "output"))
        elif ctx.rank in plan.layout.asked:
            await _serve(ctx, plan.layout, step)
        if host == source or ctx.rank != source:
            return None
        return await finish(ctx, step, await ctx.recv(host, tag(step, "output")))


async def _layers(ctx: Ctx, layout: ExpertsLayout, step: Step, x: Tensor) -> Tensor:
    """All layers, on the host."""
    model, cache = ctx.model, caches_of(step)
    if not model.num_experts:
        return await ctx.compute_layers(layers(0, model.num_layers, cache), x)
    used = ctx.memory.get("experts_used")
    if used is None or used[0] is not layout:
        used = ctx.memory["experts_used"] = (layout, [0] * len(layout.group))
    for layer in range(model.num_layers):
        total = await ctx.compute(Attention(layer, 0, model.num_heads, True, cache), x)
        x = await ctx.compute(Residual(layer, "attention"), x, total)
        routed = await ctx.compute(Route(layer), x)
        total = await _sum_of_experts(ctx, layout, step, layer, routed, used[1])
        x = await ctx.compute(Residual(layer, "ffn"), x, reshape(total, shape_of(x)))
    for rank in layout.asked:
        if rank != ctx.rank:
            ctx.send(narrow(x, 1, 0, 0), rank, tag(step, "rows"), (END, 0, 0))
    ctx.mark(USED, group=list(layout.group), pairs=list(used[1]))
    return x


async def _sum_of_experts(
    ctx: Ctx, layout: ExpertsLayout, step: Step, layer: int, routed: Tensor, used: list[int]
) -> Tensor:
    """What the experts of all devices, and the shared one, add to every row, [1, N, D]; counts in `used`, by
    member, how many experts of a row that are.
    """
    model, *_, width = ctx.model, *shape_of(routed)
    flat = reshape(routed, (1, -1, width))
    num_rows = shape_of(flat)[1]
    choices = Choices(model, layout.experts, step.start * model.num_layers + layer)
    # After a failure the same token is computed again, from other rows and by another group.
    here = "-".join(map(str, (*layout.group, *layout.experts, step.start, num_rows)))
    answer = ctx.decide(f"{tag(step, 'experts', layer)} {here}", choices, flat)
    calls = dict(zip(layout.group, calls_of(answer), strict=True))
    for at, call in enumerate(calls.values()):
        used[at] += call.pairs
    others = {rank: call for rank, call in calls.items() if call.rows and rank != ctx.rank}
    for rank, call in others.items():
        note = (layer, call.pairs, call.chosen)
        ctx.send(_rows_for(ctx, layout, rank, call, flat), rank, tag(step, "rows"), note)
    sums = []
    own = calls.get(ctx.rank)
    if own is not None and own.rows:
        rows = _rows_for(ctx, layout, ctx.rank, own, flat)
        sums.append(spread(await ctx.compute(_op(layout, ctx.rank, layer, own), rows), 1, own.rows, num_rows))
    if model.shared_intermediate_size:
        sums.append(await ctx.compute(SharedExpert(layer), flat))
    for rank, call in others.items():
        part = await ctx.recv(rank, tag(step, "sums", layer))
        sums.append(spread(part, 1, call.rows, num_rows))
    total = sums[0]
    for one in sums[1:]:
        total = await ctx.compute(Add(), total, one)
    return total


def _rows_for(ctx: Ctx, layout: ExpertsLayout, rank: int, call: Call, flat: Tensor) -> Tensor:
    """The rows of a call, each with its weights of the experts of device `rank`: [1, n, D + experts]."""
    hidden = ctx.model.hidden_size
    start, stop = layout.experts_of(rank)
    rows = take(flat, 1, call.rows)
    weights = narrow(rows, 2, hidden + start, hidden + stop)
    return concat([narrow(rows, 2, 0, hidden), weights], 2)


def _op(layout: ExpertsLayout, rank: int, layer: int, call: Call) -> Op:
    return Experts(layer, *layout.experts_of(rank), call.pairs, call.chosen)


async def _serve(ctx: Ctx, layout: ExpertsLayout, step: Step) -> None:
    """A device's part of a step: its experts, for the rows that the host sends, until there are no more."""
    while True:
        (layer, pairs, chosen), rows = await ctx.recv_noted(layout.host, tag(step, "rows"))
        if layer == END:
            return
        op = _op(layout, ctx.rank, layer, Call((), pairs, chosen))
        ctx.send(await ctx.compute(op, rows), layout.host, tag(step, "sums", layer))
