"""AdaptLink's 2D partition with SUMMA: the same results as by columns, with more messages.

Hu et al., "AdaptLink" (AAAI 2025 workshop), section "Model FfnPartition for Parallel Inference", Fig. 3; its
equation 4 has the factors the other way round, which does not fit their shapes. A device owns the blocks of
its columns in both matrices, and the hidden units of as many blocks of the input and of the output. In round
k the owner of input block k sends it to all; partial outputs go to the owners of their blocks, who add them
up.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.ops.core import Add
from engine.ops.summa import SummaActivate, SummaDown, SummaUp
from engine.ops.tensors import Tensor, concat, narrow
from engine.program.ctx import Ctx
from engine.program.strategy import Step
from engine.strategies.adaptlink.roles import ColumnShard
from engine.strategies.shared.ends import tag


def input_block(ctx: Ctx, member: ColumnShard, h: Tensor) -> Tensor:
    """The hidden units of `h` [B, T, D] that `member` owns."""
    return narrow(h, 2, *_units(ctx, member))


async def feed_forward(
    ctx: Ctx, step: Step, layer: int, members: Sequence[ColumnShard], block: Tensor
) -> Tensor | None:
    """One member's part of a layer; the primary, who is the first, gets the output [B, T, D].

    `block` is the input block that this device owns. Members without blocks have none to send.
    """
    me = next(index for index, member in enumerate(members) if member.device == ctx.rank)
    sums = await _sums(ctx, step, layer, members, me, block)
    mine = members[me]
    activated = await ctx.compute(SummaActivate(layer, mine.start, mine.stop), sums)
    partials = []
    for member in members:
        op = SummaDown(layer, mine.start, mine.stop, *_units(ctx, member), bias=me == 0)
        partials.append(await ctx.compute(op, activated))
        if member is not mine and member.start < member.stop:
            ctx.send(partials[-1], member.device, tag(step, "summa_y", layer))
    output = None
    for index, member in enumerate(members if mine.start < mine.stop else ()):
        partial = partials[me]
        if index != me:
            partial = await ctx.recv(member.device, tag(step, "summa_y", layer))
        output = partial if output is None else await ctx.compute(Add(), output, partial)
    out = tag(step, "summa_out", layer)
    if me:
        ctx.send(output, members[0].device, out)
        return None
    others = [await ctx.recv(member.device, out) for member in members[1:]]
    return concat(others if output is None else [output, *others], 2)


async def _sums(
    ctx: Ctx, step: Step, layer: int, members: Sequence[ColumnShard], me: int, block: Tensor
) -> Tensor:
    """The complete sums of this device's columns, in the order of the input blocks."""
    mine, sums = members[me], None
    for index, member in enumerate(members):
        if member.start == member.stop:
            continue
        x = block
        if index == me:
            for other in members:
                if other is not member:
                    ctx.send(block, other.device, tag(step, "summa_x", layer))
        else:
            x = await ctx.recv(member.device, tag(step, "summa_x", layer))
        part = await ctx.compute(SummaUp(layer, *_units(ctx, member), mine.start, mine.stop), x)
        sums = part if sums is None else await ctx.compute(Add(), sums, part)
    return sums


def _units(ctx: Ctx, member: ColumnShard) -> tuple[int, int]:
    """The hidden units of `member`: as many blocks of them as of columns. The grid divides both widths."""
    model = ctx.model
    first, last = (at * model.hidden_size // model.intermediate_size for at in (member.start, member.stop))
    return first, last
