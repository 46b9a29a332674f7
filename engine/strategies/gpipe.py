"""GPipe: contiguous stages of layers, one per device; micro-batches follow each other through them.

Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism" (NeurIPS
2019); stages by memory as in Lin et al., "LIME" (section V): "allocates layers based on memory capacity".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from engine.cluster import ClusterSpec
from engine.ctx import Ctx
from engine.errors import PlanError
from engine.models.ops import Block
from engine.models.sizes import weight_bytes
from engine.models.spec import ModelSpec
from engine.plan import Holding, Plan, Work
from engine.strategies.contract import Done, Params, Step, Strategy
from engine.strategies.demand import (
    Demand,
    block_passes,
    check_memory,
    demand_of,
    end_passes,
    weights_bytes,
    working_bytes,
)
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
from engine.strategies.shares import bounds_of, largest_remainder, layer_s
from engine.tensors import Tensor
from engine.values import Value
from engine.workload import Workload


class GPipeParams(Params):
    by: Literal["memory", "flops", "even"] = Field(
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
        ranks = _order(cluster)
        ends = Plan(strategy=self.name, holdings=end_holdings(cluster, model), work=end_work(cluster, model))
        passes = {rank: [*block_passes(model, demand)] for rank in ranks}
        passes.setdefault(cluster.source_rank, []).extend(end_passes(model, demand))
        # what a device cannot give to layers: the two ends at the source, and one operation's working set
        check_memory(cluster, model, ends, {}, passes, "the source needs room for embedding and head")
        rooms = [
            cluster.devices[rank].memory_bytes
            - weights_bytes(ends, model, rank)
            - working_bytes(model, passes[rank])
            for rank in ranks
        ]
        caps = [max(0, int(room // layer_bytes(model, demand))) for room in rooms]
        if sum(caps) < model.num_layers:
            raise _too_small(cluster, model, demand, ranks, caps)
        weights = {
            "memory": [max(0.0, room) for room in rooms],
            "flops": [1 / layer_s(cluster.devices[rank], model, demand) for rank in ranks],
            "even": [1.0] * len(ranks),
        }[params.by]
        sizes = fill(largest_remainder(model.num_layers, weights), caps)
        bounds = bounds_of(sizes)
        stages = [(ranks[i], bounds[i], bounds[i + 1]) for i in range(len(ranks)) if sizes[i]]
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
            extra={"stages": [{"device": rank, "start": a, "stop": b} for rank, a, b in stages]},
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
        stages = [(stage["device"], stage["start"], stage["stop"]) for stage in plan.extra["stages"]]
        first, last = stages[0][0], stages[-1][0]
        programs = []
        if ctx.rank == source and ctx.rank != first:
            programs.append(_feed(ctx, steps, tokens, first))
        for number, (rank, start, stop) in enumerate(stages):
            if ctx.rank == rank:
                before = stages[number - 1][0] if number else source
                after = stages[number + 1][0] if number + 1 < len(stages) else source
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


def _order(cluster: ClusterSpec) -> tuple[int, ...]:
    """Workers by rank, but the source first: its own layers then need no message."""
    return tuple(sorted(cluster.workers, key=lambda rank: (rank != cluster.source_rank, rank)))


def layer_bytes(model: ModelSpec, demand: Demand) -> int:
    """Weights of one layer and all KV caches that it will have."""
    weights = sum(weight_bytes(model, piece) for piece in layer_slices(0))
    return weights + demand.kv_bytes(model, model.num_kv_heads)


def fill(sizes: Sequence[int], caps: Sequence[int]) -> tuple[int, ...]:
    """Cap `sizes`; what is over goes to those with room, lowest index first."""
    filled = [min(size, cap) for size, cap in zip(sizes, caps, strict=True)]
    excess = sum(sizes) - sum(filled)
    for index, cap in enumerate(caps):
        moved = min(excess, cap - filled[index])
        filled[index] += moved
        excess -= moved
    return tuple(filled)


def _too_small(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, ranks: Sequence[int], caps: Sequence[int]
) -> PlanError:
    rooms = ", ".join(
        f"{cluster.devices[rank].name} has {cluster.devices[rank].memory_bytes / 1e6:.1f} MB for {cap}"
        for rank, cap in zip(ranks, caps, strict=True)
    )
    return PlanError(
        f"gpipe: {model.name} needs {model.num_layers} layers of {layer_bytes(model, demand) / 1e6:.1f} MB "
        f"(weights and KV cache) and {rooms}: add devices or memory, or shorten prompt and answer."
    )
