"""EdgeFormer's neighbour: attend the heads that an owner sends. It needs no weights."""

from __future__ import annotations

from engine.ops.heads import Attend, Regroup, kv_of
from engine.ops.tensors import narrow, shape_of
from engine.program.ctx import Ctx
from engine.program.strategy import Step
from engine.strategies.edgeformer.assignment import ATTEND, END
from engine.strategies.shared.ends import tag


async def attend_for_owner(ctx: Ctx, step: Step, owner: int, cache: str | None) -> None:
    """Serve rank `owner` until it sends END."""
    while True:
        note, x = await ctx.recv_noted(owner, tag(step, "heads"))
        if note[0] == END:
            return
        layer = note[1]
        if note[0] == ATTEND:
            heads = tuple(note[2:])
            queries, keys_values = narrow(x, 1, 0, len(heads)), narrow(x, 1, len(heads), shape_of(x)[1])
            attend = Attend(layer, heads, kv_of(ctx.model, heads), cache)
            context = await ctx.compute(attend, queries, keys_values)
            ctx.send(context, owner, tag(step, "context", layer))
        else:
            assert cache is not None, "only cached heads move"
            size = note[2]
            before, after = tuple(note[3 : 3 + size]), tuple(note[3 + size :])
            await ctx.compute(Regroup(layer, before, after, cache), x)
