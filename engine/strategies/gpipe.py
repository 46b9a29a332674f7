"""GPipe: contiguous stages of layers, one per device; micro-batches follow each other through them.

Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism" (NeurIPS
2019); stages by memory as in Lin et al., "LIME" (section V): "allocates layers based on memory capacity".
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from engine.cluster import ClusterSpec
from engine.ctx import Ctx
from engine.models.ops import Block
from engine.models.spec import ModelSpec
from engine.plan import Holding, Plan, Work
from engine.strategies.contract import Done, Params, Step, Strategy
from engine.strategies.demand import demand_of
from engine.strategies.ends import (
    cache_of,
    embed,
    end_holdings,
    end_work,
    finish,
    layer_slices,
    tag,
    wanted_rows,
)
from engine.strategies.stages import Stage, StagesBy, stages_of
from engine.tensors import Tensor
from engine.values import Value
from engine.workload import Workload


class GPipeParams(Params):
    by: StagesBy = Field(
        default="memory",
        description="Layers per device in proportion to its free memory, to its speed, or equal.",
    )


class GPipe(Strategy):
    name = "gpipe"
    title = "Pipeline (GPipe)"
    paper = "Huang et al., GPipe, NeurIPS 2019"
    summary = "Each device holds a run of consecutive layers; requests of a burst follow each other through."
    batches_bursts = False
    Params = GPipeParams

    def plan(self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: Value) -> Plan:
        assert isinstance(params, GPipeParams)
        demand = demand_of(model, workload, self.batches_bursts)
        ends = Plan(strategy=self.name, holdings=end_holdings(cluster, model), work=end_work(cluster, model))
        stages = stages_of(cluster, model, demand, ends, params.by)
        pieces = [
            (rank, piece)
            for rank, start, stop in stages
            for layer in range(start, stop)
            for piece in layer_slices(layer)
        ]
        return Plan(
            strategy=self.name,
            holdings=(*ends.holdings, *(Holding(device=rank, slice=piece) for rank, piece in pieces)),
            work=(*ends.work, *(Work(device=rank, slice=piece) for rank, piece in pieces)),
            extra={"stages": [stage._asdict() for stage in stages]},
        )

    async def forward(self, ctx: Ctx, plan: Plan, step: Step, tokens: Tensor | None) -> Tensor | None:
        results: list[Tensor] = []
        await self.forward_all(ctx, plan, [step], [tokens], lambda _, result: results.append(result))
        return results[0] if results else None

    async def forward_all(
        self, ctx: Ctx, plan: Plan, steps: Sequence[Step], tokens: Sequence[Tensor | None], done: Done
    ) -> None:
        """Up to three programs per device, each of which takes the micro-batches in their order: feed the
        first stage, be a stage, take the last stage's results. Only the source has more than one.
        """
        source = ctx.cluster.source_rank
        stages = [Stage(**stage) for stage in plan.extra["stages"]]
        first, last = stages[0].device, stages[-1].device
        programs = []
        if ctx.rank == source and ctx.rank != first:
            programs.append(_feed(ctx, steps, tokens, first))
        for number, (rank, start, stop) in enumerate(stages):
            if ctx.rank == rank:
                before = stages[number - 1].device if number else source
                after = stages[number + 1].device if number + 1 < len(stages) else source
                programs.append(_stage(ctx, steps, tokens, range(start, stop), before, after, done))
        if ctx.rank == source and ctx.rank != last:
            programs.append(_drain(ctx, steps, last, done))
        others = [ctx.spawn(program) for program in programs[1:]]
        for program in programs[:1]:
            await program
        for handle in others:
            await handle


async def _feed(ctx: Ctx, steps: Sequence[Step], tokens: Sequence[Tensor | None], first: int) -> None:
    for step, ids in zip(steps, tokens, strict=True):
        ctx.at(step.requests[0], step.index)
        ctx.send(await embed(ctx, step, ids), first, tag(step, "hidden"))


async def _stage(
    ctx: Ctx,
    steps: Sequence[Step],
    tokens: Sequence[Tensor | None],
    layers: range,
    before: int,
    after: int,
    done: Done,
) -> None:
    """Layers of one device. A neighbour that is the device itself means: it is the source at this end."""
    for step, ids in zip(steps, tokens, strict=True):
        ctx.at(step.requests[0], step.index)
        if before == ctx.rank:
            x = await embed(ctx, step, ids)
        else:
            x = await ctx.recv(before, tag(step, "hidden", layers.start - 1))
        for layer in layers:
            x = await ctx.compute(Block(layer, cache_of(step)), x)
        if after == ctx.rank:
            done(step, await finish(ctx, step, x))
        else:
            final = layers.stop == ctx.model.num_layers
            ctx.send(wanted_rows(step, x) if final else x, after, tag(step, "hidden", layers.stop - 1))


async def _drain(ctx: Ctx, steps: Sequence[Step], last: int, done: Done) -> None:
    for step in steps:
        ctx.at(step.requests[0], step.index)
        x = await ctx.recv(last, tag(step, "hidden", ctx.model.num_layers - 1))
        done(step, await finish(ctx, step, x))
