"""Voltage: every device holds all layers and computes its own positions; one all-gather per layer.

Hu, Li, "When the Edge Meets Transformers: Distributed Inference with Transformer Models" (ICDCS 2024).
The paper computes one forward pass. For generation one device, the decode owner, keeps the full KV
cache, for which the prompt's pass gives it every row that it needs, and decodes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from engine.cluster import ClusterSpec
from engine.collectives import AllGather, all_gather, broadcast, gather
from engine.ctx import Ctx
from engine.errors import PlanError, SpecError
from engine.models.ops import Block
from engine.models.spec import ModelSpec
from engine.plan import Holding, Plan, Slice, Work
from engine.strategies.contract import Params, Step, Strategy
from engine.strategies.demand import Demand, Pass, block_passes, check_memory, demand_of, end_passes, hidden
from engine.strategies.ends import cache_of, embed, end_holdings, end_work, finish, layer_slices, tag
from engine.strategies.positions import OrderChoice, Shard, bounds, search, shard_of
from engine.strategies.shares import fastest, pass_s, prefill_layer_s
from engine.tensors import Tensor
from engine.values import Value
from engine.workload import Workload


class VoltageParams(Params):
    ratio: Literal["even", "proportional", "search"] = Field(
        default="even",
        description="Positions per device: equal (the paper), by speed, or searched for the fastest layer.",
    )
    gather: AllGather = Field(default="direct", description="All-gather: to each peer, or around a ring.")
    order: OrderChoice = Field(
        default="auto", description="Order of matrix products: Theorem 2 decides, or one of the two always."
    )
    causal_trim: bool = Field(
        default=False, description="Compute keys only as far as the causal mask lets a device's rows see."
    )
    decode_owner: str = Field(default="", description="Worker that generates; empty: the fastest.")


class Voltage(Strategy):
    name = "voltage"
    title = "Position partition (Voltage)"
    paper = "Hu, Li, Voltage, ICDCS 2024"
    summary = "Every device holds all layers and computes some positions; one all-gather per layer."
    Params = VoltageParams

    def plan(self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: Value) -> Plan:
        assert isinstance(params, VoltageParams)
        demand = demand_of(model, workload, self.batches_bursts)
        shards = _shards(cluster, model, demand, params)
        owner = _owner(cluster, model, demand, params, shards)
        layers = range(model.num_layers)
        works = [
            Work(device=shard.device, phase="prefill", slice=piece)
            for layer in layers for shard in shards if shard.size for piece in _positions(layer, shard)
        ]
        if owner is not None:
            works += [
                Work(device=owner, phase="decode", slice=piece)
                for layer in layers for piece in layer_slices(layer)
            ]
        plan = Plan(
            strategy=self.name,
            holdings=(
                *end_holdings(cluster, model),
                *(Holding(device=rank, slice=piece)
                  for rank in cluster.workers for layer in layers for piece in layer_slices(layer)),
            ),
            work=(*end_work(cluster, model), *works),
            extra={
                "shards": [shard.model_dump() for shard in shards], "owner": owner,
                "gather": params.gather, "order": params.order, "causal_trim": params.causal_trim,
            },
        )
        _check(cluster, model, demand, plan, shards)
        return plan

    async def forward(self, ctx: Ctx, plan: Plan, step: Step, tokens: Tensor | None) -> Tensor | None:
        source = ctx.cluster.source_rank
        x = await embed(ctx, step, tokens) if ctx.rank == source else None
        run = _prefill if step.phase == "prefill" else _decode
        x = await run(ctx, plan, step, x)
        return await finish(ctx, step, x) if ctx.rank == source else None


async def _prefill(ctx: Ctx, plan: Plan, step: Step, x: Tensor | None) -> Tensor | None:
    """Algorithms 1 and 2: all devices, one all-gather after each layer but the last, whose shards go to
    the source. The input goes to each device in turn over the source's link (the paper's "broadcast").
    """
    shards, source = _shards_for(ctx.model, plan, step.rows), ctx.cluster.source_rank
    group = tuple(shard.device for shard in shards)
    sizes = [shard.size for shard in shards]
    if ctx.rank in group or ctx.rank == source:
        x = await broadcast(ctx, x, source, group, tag(step, "input"))
    rows = None
    if ctx.rank in group:
        mine = shards[group.index(ctx.rank)]
        cache = cache_of(step) if ctx.rank == plan.extra["owner"] else None
        for layer in range(ctx.model.num_layers):
            if layer:
                name = tag(step, "rows", layer - 1)
                x = await all_gather(ctx, rows, sizes, group, name, plan.extra["gather"])
            if mine.size or cache:  # a decode owner without rows still fills its KV cache
                rows = await ctx.compute(mine.op(layer, cache), x)
            if not mine.size:
                rows = None
    if rows is not None or ctx.rank == source:
        return await gather(ctx, rows, sizes, source, group, tag(step, "rows", ctx.model.num_layers - 1))
    return None


def _shards_for(model: ModelSpec, plan: Plan, rows: int) -> list[Shard]:
    """The plan's shards; in the same proportions where a request has other rows (after a loss, say)."""
    shards, extra = [Shard(**shard) for shard in plan.extra["shards"]], plan.extra
    planned = shards[-1].stop
    if rows == planned:
        return shards
    ends = bounds(rows, [shard.size / planned for shard in shards])
    return [
        shard_of(
            model, shard.device, range(ends[i], ends[i + 1]), rows, extra["order"], extra["causal_trim"],
            shard.device == extra["owner"],
        )
        for i, shard in enumerate(shards)
    ]


async def _decode(ctx: Ctx, plan: Plan, step: Step, x: Tensor | None) -> Tensor | None:
    """The owner alone: one row has no positions to divide."""
    owner, source = plan.extra["owner"], ctx.cluster.source_rank
    if ctx.rank not in (owner, source):
        return None
    x = await broadcast(ctx, x, source, (owner,), tag(step, "input"))
    if ctx.rank == owner:
        for layer in range(ctx.model.num_layers):
            x = await ctx.compute(Block(layer, cache_of(step)), x)
    return await broadcast(ctx, x, owner, (source,), tag(step, "output"))


def _positions(layer: int, shard: Shard) -> tuple[Slice, ...]:
    return tuple(
        piece.model_copy(update={"axis": "positions", "start": shard.start, "stop": shard.stop})
        for piece in layer_slices(layer)
    )


def _shards(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, params: VoltageParams
) -> tuple[Shard, ...]:
    """One per worker, some of them empty."""
    ranks = cluster.workers
    devices = [cluster.devices[rank] for rank in ranks]
    x = hidden(model, demand.batch, demand.rows)
    decodes = _free_owner(cluster, model, demand, params)

    def shard(index: int, start: int, stop: int) -> Shard:
        # with trimmed keys only the device with the last rows sees all keys, so it must fill the KV cache
        owns = stop == demand.rows if params.causal_trim else ranks[index] == decodes
        return shard_of(
            model, ranks[index], range(start, stop), demand.rows, params.order, params.causal_trim,
            owns and demand.generates,
        )

    def shard_s(index: int, start: int, stop: int) -> float:
        return pass_s(devices[index], model, Pass(shard(index, start, stop).op(0, None), (x,)))

    speeds = [1.0 if params.ratio == "even" else 1 / prefill_layer_s(d, model, demand) for d in devices]
    ends = bounds(demand.rows, [speed / sum(speeds) for speed in speeds])
    if params.ratio == "search":
        ends = search(demand.rows, ends, shard_s)
    return tuple(shard(index, ends[index], ends[index + 1]) for index in range(len(ranks)))


def _free_owner(cluster: ClusterSpec, model: ModelSpec, demand: Demand, params: VoltageParams) -> int:
    """The worker asked for, or the fastest."""
    if not params.decode_owner:
        return fastest(cluster, cluster.workers, model, demand)
    rank = cluster.rank(params.decode_owner)
    if rank not in cluster.workers:
        name = params.decode_owner
        raise SpecError(f"parameters of voltage, decode_owner: {name} is a terminal: name a worker.")
    return rank


def _owner(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, params: VoltageParams, shards: Sequence[Shard]
) -> int | None:
    """Who generates; with `causal_trim` that is who has the last rows."""
    if not demand.generates:
        return None
    if not params.causal_trim:
        return _free_owner(cluster, model, demand, params)
    last = next(shard.device for shard in reversed(shards) if shard.size)
    if params.decode_owner and cluster.rank(params.decode_owner) != last:
        raise PlanError(
            f"voltage: decode_owner is {params.decode_owner}, but with causal_trim only "
            f"{cluster.devices[last].name}, which has the last positions, fills a whole KV cache: "
            f"name it, or switch causal_trim off."
        )
    return last


def _check(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, plan: Plan, shards: Sequence[Shard]
) -> None:
    x = hidden(model, demand.batch, demand.rows)
    owner = plan.extra["owner"]
    passes = {
        shard.device: [Pass(shard.op(0, "plan" if shard.device == owner else None), (x,))]
        for shard in shards
    }
    passes.setdefault(cluster.source_rank, []).extend(end_passes(model, demand))
    kv_bytes = {}
    if owner is not None:
        kv_bytes[owner] = model.num_layers * demand.kv_bytes(model, model.num_kv_heads)
        passes[owner] += block_passes(model, demand)[1:]
    check_memory(
        cluster, model, plan, kv_bytes, passes,
        "voltage keeps all layers on every worker: give it more memory, take it out, "
        "or choose a strategy that splits the weights (gpipe, megatron)",
    )
