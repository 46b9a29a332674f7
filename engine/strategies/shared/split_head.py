"""Run the output matrix cut by rows of the vocabulary, one part per member of a tensor-parallel group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Placement, Slice
from engine.domain.sampling import candidates_of_part
from engine.ops.core import Head
from engine.ops.head_columns import Best, Candidates, Choose, DrawAmong, HeadColumns
from engine.ops.operation import Op
from engine.ops.tensors import Meta, Tensor
from engine.ops.tokens import Draw
from engine.program.ctx import Ctx
from engine.program.strategy import Step
from engine.strategies.shared.demand import Demand, SizedOp, hidden
from engine.strategies.shared.ends import keep_logits, tag, wanted_rows


async def finish_split(
    ctx: Ctx, step: Step, last: Tensor | None, group: Sequence[int], bounds: Sequence[int]
) -> Tensor | None:
    """Ids [B] of the next tokens at the source, None elsewhere. Member i of `group` has the tokens
    [bounds[i], bounds[i + 1]) and gives `last`, the last layer's rows; the source need not be a member.
    """
    source, mine = ctx.cluster.source_rank, None
    group, bounds = _members(group, bounds)
    if ctx.rank in group:
        me = group.index(ctx.rank)
        start, stop = bounds[me], bounds[me + 1]
        logits = await ctx.compute(HeadColumns(start, stop), wanted_rows(step, last))
        keep_logits(ctx, step, start, logits)
        finds = _finds(step, start, stop)
        mine = logits if finds is None else await ctx.compute(finds, logits)
    if ctx.rank != source:
        if mine is not None:
            ctx.send(mine, source, tag(step, "best"))
        return None
    started = [None if peer == source else ctx.recv(peer, tag(step, "best")) for peer in group]
    found = [mine if handle is None else await handle for handle in started]
    return await ctx.compute(_chooses(step), *found)


def _finds(step: Step, start: int, stop: int) -> Op | None:
    """The operation that finds what decides about the tokens [start, stop) of the vocabulary; None: all of
    their logits do. Of the fewest tokens with some probability together, no part knows how many are its own.
    """
    if not step.draws:
        return Best(start)
    count = candidates_of_part(step.draws)
    return Candidates(start, min(count, stop - start), step.draws) if count else None


def _chooses(step: Step) -> Op:
    """The operation that chooses tokens from what all parts have found."""
    if not step.draws:
        return Choose()
    return DrawAmong(step.draws) if candidates_of_part(step.draws) else Draw(step.draws, True)


def _members(group: Sequence[int], bounds: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    """The members that have tokens, and the bounds of their parts."""
    parts = [(rank, part) for rank, part in zip(group, pairwise(bounds), strict=True) if part[0] < part[1]]
    return [rank for rank, _ in parts], [0, *(stop for _, (_, stop) in parts)]


def with_split_head(placement: Placement, group: Sequence[int], bounds: Sequence[int]) -> Placement:
    """`placement` with the head cut among the members in place of the source's whole one. Pure."""
    members, cuts = _members(group, bounds)
    pieces = [
        (rank, Slice(layer=-1, part="lm_head", axis="columns", start=start, stop=stop))
        for rank, (start, stop) in zip(members, pairwise(cuts), strict=True)
    ]
    holdings = [item for item in placement.holdings if item.slice.part != "lm_head"]
    work = [item for item in placement.work if item.slice.part != "lm_head"]
    return Placement(
        strategy=placement.strategy,
        holdings=(*holdings, *(HeldSlice(device=rank, slice=piece) for rank, piece in pieces)),
        work=(*work, *(ComputedSlice(device=rank, slice=piece) for rank, piece in pieces)),
    )


def with_split_ops(
    ops: Mapping[int, Sequence[SizedOp]],
    model: ModelSpec,
    demand: Demand,
    group: Sequence[int],
    bounds: Sequence[int],
) -> dict[int, list[SizedOp]]:
    """The largest operations of every device with the head cut, by rank. Pure."""
    split = {rank: [one for one in ones if not isinstance(one.op, Head)] for rank, ones in ops.items()}
    members, cuts = _members(group, bounds)
    for rank, (start, stop) in zip(members, pairwise(cuts), strict=True):
        logits = Meta((demand.batch, stop - start), model.dtype)
        split[rank].append(SizedOp(HeadColumns(start, stop), (hidden(model, demand.batch, 1),)))
        split[rank].append(SizedOp(Best(start), (logits,)))
    return split


def source_draws(model: ModelSpec, demand: Demand) -> SizedOp:
    """The largest operation of the source where tokens may be drawn: from all logits. Pure."""
    return SizedOp(Draw((), True), (Meta((demand.batch, model.vocab_size), model.dtype),))
