"""Single device: every layer on one worker. The reference that all others are measured against.

Also the paper's baseline of a terminal that hands its input to one edge device: Hu, Li, "When the Edge
Meets Transformers: Distributed Inference with Transformer Models" (ICDCS 2024), section VI.
"""

from __future__ import annotations

from pydantic import Field

from engine.cluster import ClusterSpec
from engine.ctx import Ctx
from engine.errors import SpecError
from engine.models.ops import Block
from engine.models.spec import ModelSpec
from engine.plan import Holding, Plan, Work
from engine.strategies.contract import Params, Step, Strategy
from engine.strategies.demand import Demand, block_passes, check_memory, demand_of, end_passes
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
from engine.strategies.shares import fastest
from engine.tensors import Tensor
from engine.values import Value
from engine.workload import Workload


class SingleParams(Params):
    device: str = Field(
        default="", description="Worker that computes; empty: the source, or the fastest if that is none."
    )


class Single(Strategy):
    name = "single"
    title = "Single device"
    paper = ""
    summary = "One worker holds and computes the whole model; nothing is distributed."
    Params = SingleParams

    def plan(self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: Value) -> Plan:
        assert isinstance(params, SingleParams)
        demand = demand_of(model, workload, self.batches_bursts)
        rank = _chosen(cluster, model, demand, params.device)
        layers = [piece for layer in range(model.num_layers) for piece in layer_slices(layer)]
        plan = Plan(
            strategy=self.name,
            holdings=(*end_holdings(cluster, model), *(Holding(device=rank, slice=s) for s in layers)),
            work=(*end_work(cluster, model), *(Work(device=rank, slice=s) for s in layers)),
            extra={"device": rank},
        )
        kv_bytes = {rank: model.num_layers * demand.kv_bytes(model, model.num_kv_heads)}
        passes = {cluster.source_rank: [*end_passes(model, demand)]}
        passes.setdefault(rank, []).extend(block_passes(model, demand))
        check_memory(
            cluster, model, plan, kv_bytes, passes,
            "give it more memory, or choose a strategy that splits the weights (gpipe, megatron)",
        )
        return plan

    async def forward(self, ctx: Ctx, plan: Plan, step: Step, tokens: Tensor | None) -> Tensor | None:
        rank, source = plan.extra["device"], ctx.cluster.source_rank
        x = await embed(ctx, step, tokens) if ctx.rank == source else None
        if rank == source and ctx.rank == rank:
            return await finish(ctx, step, await _layers(ctx, step, x))
        if ctx.rank == source:
            ctx.send(x, rank, tag(step, "input"))
            return await finish(ctx, step, await ctx.recv(rank, tag(step, "output")))
        if ctx.rank == rank:
            x = await _layers(ctx, step, await ctx.recv(source, tag(step, "input")))
            ctx.send(wanted_rows(step, x), source, tag(step, "output"))
        return None


async def _layers(ctx: Ctx, step: Step, x: Tensor) -> Tensor:
    for layer in range(ctx.model.num_layers):
        x = await ctx.compute(Block(layer, cache_of(step)), x)
    return x


def _chosen(cluster: ClusterSpec, model: ModelSpec, demand: Demand, name: str) -> int:
    """Raises `SpecError` for a device that is unknown or a terminal."""
    if not name:
        return (
            cluster.source_rank
            if cluster.source_rank in cluster.workers
            else fastest(cluster, cluster.workers, model, demand)
        )
    rank = cluster.rank(name)
    if rank not in cluster.workers:
        raise SpecError(f"parameters of single, device: {name} is a terminal: name a worker.")
    return rank
