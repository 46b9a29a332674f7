"""Run the output matrix on the last stage of a pipeline, which chooses tokens and sends ids to the source.

Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM" (SC 2021),
section 2.2: the first stage has the embedding, the last one the output matrix.
"""

from __future__ import annotations

from typing import Literal

from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Placement, Slice
from engine.ops.core import Head
from engine.ops.tensors import Meta, Tensor
from engine.ops.tokens import Greedy
from engine.program.ctx import Ctx
from engine.program.strategy import Step
from engine.strategies.shared.demand import Demand, SizedOp, hidden
from engine.strategies.shared.ends import choice_op, keep_logits, wanted_rows

HeadPlace = Literal["source", "last"]
"""The parameter `head`: who computes logits."""

HEAD_HELP = (
    "Which device computes logits: the source, to which the last stage sends a hidden row, or the last "
    "stage, which sends the chosen token's id of 8 bytes and keeps the logits for the comparison."
)
"""Description of the parameter `head`."""

HEAD = Slice(layer=-1, part="lm_head")


async def choose_and_send(ctx: Ctx, step: Step, x: Tensor, dst: int, tag: str) -> None:
    """Send ids [B] of the next tokens, from the last layer's rows `x` [B, T, D], to rank `dst`; then keep the
    logits.
    """
    rows = wanted_rows(step, x)
    if not step.answered:  # parts of prompts only
        ctx.send(rows, dst, tag)
        return
    logits = await ctx.compute(Head(), rows)
    ctx.send(await ctx.compute(choice_op(step), logits), dst, tag)
    keep_logits(ctx, step, 0, logits)


def with_last_head(placement: Placement, rank: int) -> Placement:
    """`placement` with the output matrix and its norm on device `rank` in place of the source. Pure."""
    holdings = [item for item in placement.holdings if item.slice != HEAD]
    work = [item for item in placement.work if item.slice != HEAD]
    return placement.model_copy(
        update={
            "holdings": (*holdings, HeldSlice(device=rank, slice=HEAD)),
            "work": (*work, ComputedSlice(device=rank, slice=HEAD)),
        }
    )


def last_head_ops(model: ModelSpec, demand: Demand) -> tuple[SizedOp, ...]:
    """The operations of the last stage after its layers. Pure."""
    logits = Meta((demand.batch, model.vocab_size), model.dtype)
    return SizedOp(Head(), (hidden(model, demand.batch, 1),)), SizedOp(Greedy(), (logits,))
