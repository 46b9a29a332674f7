"""Run tensor parallelism: every layer is split by heads and columns, two all-reduces add the partial sums.

The tensor-parallel strategies share this program and the helpers that plan it. They differ in how many heads
and columns each device gets, and in the all-reduce algorithm.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from typing_extensions import TypeVar

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Axis, ComputedSlice, HeldSlice, Part, Placement, Plan, Slice
from engine.domain.values import Count
from engine.ops.core import FeedForward, Residual
from engine.ops.layout import kv_heads
from engine.ops.operation import Op
from engine.ops.tensors import Tensor, payload_bytes
from engine.program.collectives import AllReduce, all_reduce, broadcast
from engine.program.ctx import Ctx
from engine.program.strategy import ParamsT, Step, Strategy
from engine.strategies.shared.all_reduce_time import AllReduceChoice, chosen_all_reduce
from engine.strategies.shared.demand import (
    Demand,
    SizedOp,
    attention_ops,
    beside_rows,
    check_memory,
    end_ops,
    hidden,
)
from engine.strategies.shared.embedding import (
    EmbeddingChoice,
    check_choice,
    is_worth_a_table,
    with_table_ops,
    with_tables,
)
from engine.strategies.shared.ends import end_holdings, end_work, finish, tag, wanted_rows
from engine.strategies.shared.kv_disk import disk_rows
from engine.strategies.shared.kv_layout import KVLayout
from engine.strategies.shared.kv_pressure import attention_op, embed_rows, rows_kept_elsewhere
from engine.strategies.shared.shares import bounds_of, largest_remainder
from engine.strategies.shared.split_head import (
    finish_split,
    source_draws,
    with_split_head,
    with_split_ops,
)

PartialSum = Callable[[Op, Tensor], Awaitable[Tensor]]
"""Computes a device's share of a part: `ctx.compute`, or a function that loads the weights before."""


class ShareLayout(KVLayout):
    """Base of the layouts that split every layer by heads and columns.

    Member i of `group` (ranks) has query heads [heads[i], heads[i + 1]) and feed-forward columns
    [columns[i], columns[i + 1]).
    """

    group: tuple[Count, ...]
    heads: tuple[Count, ...]
    columns: tuple[Count, ...]

    def heads_of(self, rank: int) -> tuple[int, int]:
        """Query heads [start, stop) of a member."""
        me = self.group.index(rank)
        return self.heads[me], self.heads[me + 1]

    def columns_of(self, rank: int) -> tuple[int, int]:
        """Feed-forward columns [start, stop) of a member."""
        me = self.group.index(rank)
        return self.columns[me], self.columns[me + 1]


class AllReduceLayout(ShareLayout):
    """Base of the layouts whose partial sums are added up by an all-reduce: `all_reduce` in a pass over a
    prompt, `decode_all_reduce` in one over a single token (None: the same).
    """

    all_reduce: AllReduce
    decode_all_reduce: AllReduce | None = None
    vocabulary: tuple[Count, ...] | None = None
    """Bounds of the vocabulary: member i has the tokens [vocabulary[i], vocabulary[i + 1]) of the head; None:
    the source has all.
    """
    members_embed: bool = False
    """Every member has the table and gets token ids; else the source embeds and sends hidden rows."""

    def all_reduce_of(self, step: Step) -> AllReduce:
        """The algorithm of the sums in `step`."""
        decodes = step.phase == "decode" and self.decode_all_reduce is not None
        return self.decode_all_reduce or self.all_reduce if decodes else self.all_reduce


class TensorParallelLayout(AllReduceLayout):
    """The layout of Megatron and DeepSpeed."""

    kind: Literal["tensor_parallel"] = "tensor_parallel"


AllReduceLayoutT = TypeVar("AllReduceLayoutT", bound=AllReduceLayout, default=Any)


class TensorParallel(Strategy[ParamsT, AllReduceLayoutT]):
    """Runs `group`, `heads`, `columns` and `all_reduce` of a plan's layout."""

    def why_not_ragged(self, plan: Plan[AllReduceLayoutT]) -> str | None:
        return rows_kept_elsewhere(self.name, plan)

    async def forward(
        self, ctx: Ctx, plan: Plan[AllReduceLayoutT], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        return await split_pass(ctx, plan, step, tokens, ctx.compute)


async def split_pass(
    ctx: Ctx, plan: Plan[AllReduceLayout], step: Step, tokens: Tensor | None, partial_sum: PartialSum
) -> Tensor | None:
    """One step on this device, from `tokens` [B, T] at the source; the result there, None elsewhere. Every
    share of a layer is computed by `partial_sum`, which is `ctx.compute` or loads the weights before.
    """
    group, source = plan.layout.group, ctx.cluster.source_rank
    rows = None
    if ctx.rank in group:
        rows = disk_rows(ctx, plan, step, plan.layout.heads_of(ctx.rank), partial_sum)
        rows.begin()
    x = await _hidden_rows(ctx, plan, step, tokens) if ctx.rank in group or ctx.rank == source else None
    if rows is not None:
        x = await _layers(ctx, plan, step, x, group, rows.compute)
        await rows.settle()
    if plan.layout.vocabulary is not None and step.answered:  # else parts of prompts only
        return await finish_split(ctx, step, x, group, plan.layout.vocabulary)
    if source not in group and ctx.rank == group[0]:
        ctx.send(wanted_rows(step, x), source, tag(step, "output"))
    if ctx.rank != source:
        return None
    if source not in group:
        x = await ctx.recv(group[0], tag(step, "output"))
    return await finish(ctx, step, x)


async def _hidden_rows(
    ctx: Ctx, plan: Plan[AllReduceLayout], step: Step, tokens: Tensor | None
) -> Tensor | None:
    """The rows that enter the first layer, on every member."""
    group, source, at_source = plan.layout.group, ctx.cluster.source_rank, tokens
    if ctx.rank == source and not plan.layout.members_embed:
        at_source = await embed_rows(ctx, plan, step, tokens)
    rows = await broadcast(ctx, at_source, source, group, tag(step, "input"))
    if plan.layout.members_embed:
        return await embed_rows(ctx, plan, step, rows) if ctx.rank in group else None
    return rows


def split_plan(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    heads: Sequence[int],
    columns: Sequence[int],
    how: AllReduceChoice,
    splits_head: bool = False,
    embedding: EmbeddingChoice = "source",
) -> Plan[TensorParallelLayout]:
    """The workers' shares (heads and columns of each, of the head too if it `splits_head`) as a plan; raises
    `PlanError` if memory is short.
    """
    bounds = Bounds(cluster.workers, bounds_of(heads), bounds_of(columns))
    return bounds_plan(name, cluster, model, demand, bounds, how, splits_head, embedding)


def bounds_plan(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    bounds: Bounds,
    how: AllReduceChoice | tuple[AllReduce, AllReduce],
    splits_head: bool = False,
    embedding: EmbeddingChoice = "source",
) -> Plan[TensorParallelLayout]:
    """The plan with these shares; raises `PlanError` if memory is short. `how` is a choice, or what was
    chosen for prompts and for tokens.

    With `splits_head` a model that generates has its head cut as the columns are. An `embedding` that is auto
    has the members embed if that is worth their tables and these fit.
    """
    check_choice(embedding, model)
    if embedding == "auto":
        if is_worth_a_table(cluster, model, demand, bounds.group):
            with contextlib.suppress(PlanError):  # too large a table
                return bounds_plan(name, cluster, model, demand, bounds, how, splits_head, "members")
        embedding = "source"
    placement = shares_placement(name, cluster, model, bounds)
    ops = passes_of(cluster, bounds, model, demand)
    vocabulary = None
    if splits_head and demand.generates:
        columns = [stop - start for start, stop in pairwise(bounds.columns)]
        vocabulary = bounds_of(largest_remainder(model.vocab_size, columns))
        placement = with_split_head(placement, bounds.group, vocabulary)
        ops = with_split_ops(ops, model, demand, bounds.group, vocabulary)
        if demand.draws:
            ops.setdefault(cluster.source_rank, []).append(source_draws(model, demand))
    if embedding == "members":
        placement = with_tables(placement, bounds.group)
        ops = with_table_ops(ops, model, demand, bounds.group)
    check_memory(
        cluster,
        model,
        placement,
        kv_bytes_of(bounds, model, demand),
        ops,
        "give it more memory, or add devices that take a share",
    )
    chosen = how if isinstance(how, tuple) else (how, how)
    prompt, token = (
        chosen_all_reduce(cluster, bounds.group, payload_bytes(hidden(model, demand.batch, rows)), one)
        for rows, one in zip((demand.rows, 1), chosen, strict=True)
    )
    return placement.with_layout(
        TensorParallelLayout(
            **bounds._asdict(),
            all_reduce=prompt,
            decode_all_reduce=token,
            vocabulary=vocabulary,
            members_embed=embedding == "members",
        )
    )


class Bounds(NamedTuple):
    """The shares of a group: member i has heads [heads[i], heads[i + 1]), and columns likewise."""

    group: tuple[int, ...]
    heads: tuple[int, ...]
    columns: tuple[int, ...]


def shares_placement(name: str, cluster: ClusterSpec, model: ModelSpec, bounds: Bounds) -> Placement:
    """The placement of tensor parallelism: the ends and the shares of all members."""
    cuts: tuple[tuple[Part, Axis, tuple[int, ...]], ...] = (
        ("attention", "heads", bounds.heads),
        ("ffn", "columns", bounds.columns),
    )
    pieces = [
        (rank, Slice(layer=layer, part=part, axis=axis, start=cut[i], stop=cut[i + 1]))
        for layer in range(model.num_layers)
        for part, axis, cut in cuts
        for i, rank in enumerate(bounds.group)
    ]
    return Placement(
        strategy=name,
        # an empty piece holds the norms that every device computes
        holdings=(*end_holdings(cluster, model), *(HeldSlice(device=rank, slice=p) for rank, p in pieces)),
        work=(
            *end_work(cluster, model),
            *(ComputedSlice(device=rank, slice=p) for rank, p in pieces if p.start < p.stop),
        ),
    )


def kv_bytes_of(bounds: Bounds, model: ModelSpec, demand: Demand) -> dict[int, int]:
    """Bytes of each member's KV caches at the end of the run, by rank."""
    heads, kv_bytes = bounds.heads, {}
    for i, rank in enumerate(bounds.group):
        first, last = kv_heads(model, heads[i], heads[i + 1])
        kv_bytes[rank] = model.num_layers * demand.kv_bytes(model, last - first)
    return kv_bytes


def passes_of(
    cluster: ClusterSpec, bounds: Bounds, model: ModelSpec, demand: Demand
) -> dict[int, list[SizedOp]]:
    """The largest operations of every device, by rank."""
    heads, columns = bounds.heads, bounds.columns
    ops = {
        rank: share_ops(model, demand, (heads[i], heads[i + 1]), (columns[i], columns[i + 1]))
        for i, rank in enumerate(bounds.group)
    }
    ops.setdefault(cluster.source_rank, []).extend(end_ops(model, demand))
    return ops


async def _layers(
    ctx: Ctx,
    plan: Plan[AllReduceLayout],
    step: Step,
    x: Tensor,
    group: tuple[int, ...],
    partial_sum: PartialSum,
) -> Tensor:
    how, heads, columns = (
        plan.layout.all_reduce_of(step),
        plan.layout.heads_of(ctx.rank),
        plan.layout.columns_of(ctx.rank),
    )
    # the first device with a share adds the output bias, once
    adds_bias = [start == 0 < stop for start, stop in (heads, columns)]
    for layer in range(ctx.model.num_layers):
        attention = attention_op(plan, step, layer, *heads, adds_bias[0])
        partial = await partial_sum(attention, x)
        total = await all_reduce(ctx, partial, group, tag(step, "attention", layer), how)
        x = await ctx.compute(Residual(layer, "attention"), x, total)
        partial = await partial_sum(FeedForward(layer, *columns, adds_bias[1]), x)
        total = await all_reduce(ctx, partial, group, tag(step, "ffn", layer), how)
        x = await ctx.compute(Residual(layer, "ffn"), x, total)
    return x


def share_ops(
    model: ModelSpec, demand: Demand, heads: tuple[int, int], columns: tuple[int, int]
) -> list[SizedOp]:
    """The operations of one device's share: in the prefill, and in the last decode step."""
    ops = []
    for attention in attention_ops(model, demand, *heads):
        (x,) = attention.inputs
        ops.append(attention)
        ops.append(SizedOp(Residual(0, "attention"), (x, x)))
        ops.append(SizedOp(FeedForward(0, *columns, True), (x,)))
    first, last = kv_heads(model, *heads)
    return beside_rows(model, demand, last - first, ops)
