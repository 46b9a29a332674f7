"""Every layer split by heads and columns, partial sums joined by two all-reduces: what all tensor-parallel
strategies share. They differ in who gets how many heads and columns, and in the all-reduce.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Axis, Holding, Part, Plan, Slice, Work
from engine.ops.core import FeedForward, Residual
from engine.ops.layout import kv_heads
from engine.ops.operation import Op
from engine.ops.tensors import Tensor
from engine.program.collectives import AllReduce, all_reduce, broadcast
from engine.program.ctx import Ctx
from engine.program.strategy import Step, Strategy
from engine.strategies.shared.demand import (
    Demand,
    Pass,
    attention_passes,
    beside_rows,
    check_memory,
    end_passes,
)
from engine.strategies.shared.ends import end_holdings, end_work, finish, tag, wanted_rows
from engine.strategies.shared.kv_disk import disk_rows
from engine.strategies.shared.kv_pressure import attention_op, embed_rows
from engine.strategies.shared.shares import bounds_of

PartialSum = Callable[[Op, Tensor], Awaitable[Tensor]]
"""How a device computes its share of a part: `ctx.compute`, unless the weights must be fetched first."""


class TensorParallel(Strategy):
    """Runs `group`, `heads`, `columns` and `all_reduce` of a plan's `extra`."""

    async def forward(self, ctx: Ctx, plan: Plan, step: Step, tokens: Tensor | None) -> Tensor | None:
        return await split_pass(ctx, plan, step, tokens, ctx.compute)


async def split_pass(
    ctx: Ctx, plan: Plan, step: Step, tokens: Tensor | None, partial_sum: PartialSum
) -> Tensor | None:
    """One step on this device; the result at the source, None elsewhere."""
    group, source = tuple(plan.extra["group"]), ctx.cluster.source_rank
    rows = None
    if ctx.rank in group:
        me, heads = group.index(ctx.rank), plan.extra["heads"]
        rows = disk_rows(ctx, plan, step, (heads[me], heads[me + 1]), partial_sum)
        rows.begin()
    x = await embed_rows(ctx, plan, step, tokens) if ctx.rank == source else None
    if ctx.rank in group or ctx.rank == source:
        x = await broadcast(ctx, x, source, group, tag(step, "input"))
    if rows is not None:
        x = await _layers(ctx, plan, step, x, group, rows.compute)
        await rows.settle()
    if source not in group and ctx.rank == group[0]:
        ctx.send(wanted_rows(step, x), source, tag(step, "output"))
    if ctx.rank != source:
        return None
    if source not in group:
        x = await ctx.recv(group[0], tag(step, "output"))
    return await finish(ctx, step, x)


def split_plan(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    heads: Sequence[int],
    columns: Sequence[int],
    how: AllReduce,
) -> Plan:
    """The workers' shares (heads and columns of each) as a plan; raises `PlanError` if memory is short."""
    plan = plan_of_shares(name, cluster, model, cluster.workers, heads, columns)
    plan = plan.model_copy(update={"extra": {**plan.extra, "all_reduce": how}})
    check_memory(
        cluster,
        model,
        plan,
        kv_bytes_of(plan, model, demand),
        passes_of(cluster, plan, model, demand),
        "give it more memory, or add devices that take a share",
    )
    return plan


def plan_of_shares(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    group: Sequence[int],
    heads: Sequence[int],
    columns: Sequence[int],
) -> Plan:
    """Shares of the group's members as holdings and work; `extra` has `group` and the bounds of both."""
    heads, columns = bounds_of(heads), bounds_of(columns)
    pieces = [
        (rank, piece)
        for layer in range(model.num_layers)
        for part, axis, bounds in (("attention", "heads", heads), ("ffn", "columns", columns))
        for rank, piece in _pieces(group, layer, part, axis, bounds)  # type: ignore[arg-type]
    ]
    return Plan(
        strategy=name,
        # an empty piece holds the norms that every device computes
        holdings=(*end_holdings(cluster, model), *(Holding(device=rank, slice=p) for rank, p in pieces)),
        work=(
            *end_work(cluster, model),
            *(Work(device=rank, slice=p) for rank, p in pieces if p.start < p.stop),
        ),
        extra={"group": list(group), "heads": list(heads), "columns": list(columns)},
    )


def kv_bytes_of(plan: Plan, model: ModelSpec, demand: Demand) -> dict[int, int]:
    """Of each member's finished KV caches, by rank."""
    heads = plan.extra["heads"]
    kv_bytes = {}
    for i, rank in enumerate(plan.extra["group"]):
        first, last = kv_heads(model, heads[i], heads[i + 1])
        kv_bytes[rank] = model.num_layers * demand.kv_bytes(model, last - first)
    return kv_bytes


def passes_of(cluster: ClusterSpec, plan: Plan, model: ModelSpec, demand: Demand) -> dict[int, list[Pass]]:
    """Every device's largest operations, by rank."""
    heads, columns = plan.extra["heads"], plan.extra["columns"]
    passes = {
        rank: share_passes(model, demand, (heads[i], heads[i + 1]), (columns[i], columns[i + 1]))
        for i, rank in enumerate(plan.extra["group"])
    }
    passes.setdefault(cluster.source_rank, []).extend(end_passes(model, demand))
    return passes


async def _layers(
    ctx: Ctx, plan: Plan, step: Step, x: Tensor, group: tuple[int, ...], partial_sum: PartialSum
) -> Tensor:
    me, how = group.index(ctx.rank), plan.extra["all_reduce"]
    heads, columns = plan.extra["heads"], plan.extra["columns"]
    # the first device with a share adds the output bias, once
    adds_bias = [bounds[me] == 0 < bounds[me + 1] for bounds in (heads, columns)]
    for layer in range(ctx.model.num_layers):
        attention = attention_op(plan, step, layer, heads[me], heads[me + 1], adds_bias[0])
        partial = await partial_sum(attention, x)
        total = await all_reduce(ctx, partial, group, tag(step, "attention", layer), how)
        x = await ctx.compute(Residual(layer, "attention"), x, total)
        partial = await partial_sum(FeedForward(layer, columns[me], columns[me + 1], adds_bias[1]), x)
        total = await all_reduce(ctx, partial, group, tag(step, "ffn", layer), how)
        x = await ctx.compute(Residual(layer, "ffn"), x, total)
    return x


def _pieces(
    group: Sequence[int], layer: int, part: Part, axis: Axis, bounds: Sequence[int]
) -> list[tuple[int, Slice]]:
    return [
        (rank, Slice(layer=layer, part=part, axis=axis, start=bounds[i], stop=bounds[i + 1]))
        for i, rank in enumerate(group)
    ]


def share_passes(
    model: ModelSpec, demand: Demand, heads: tuple[int, int], columns: tuple[int, int]
) -> list[Pass]:
    """One device's operations over the prompt, and over the last token that is fed back."""
    passes = []
    for attention in attention_passes(model, demand, *heads):
        (x,) = attention.inputs
        passes.append(attention)
        passes.append(Pass(Residual(0, "attention"), (x, x)))
        passes.append(Pass(FeedForward(0, *columns, True), (x,)))
    first, last = kv_heads(model, *heads)
    return beside_rows(model, demand, last - first, passes)
