"""EdgeFormer's owner of a block: project, send some heads to neighbours, attend the others, join.

Messages to a neighbour go under one tag per pass, with a note that says what to do: ATTEND (layer, heads),
REGROUP (layer, number of KV heads it has, these, the ones it gets), END.
"""

from __future__ import annotations

from engine.ops.core import FeedForward, Residual
from engine.ops.heads import Attend, Heads, Join, Project, Recall, kv_of
from engine.ops.tensors import Tensor, concat, narrow, shape_of, take
from engine.program.ctx import Ctx
from engine.program.strategy import Step
from engine.strategies.edgeformer.allocation import HeadAllocation
from engine.strategies.edgeformer.assignment import ATTEND, END, HeadAssignment
from engine.strategies.edgeformer.conditions import neighbours_of, sites_now
from engine.strategies.edgeformer.costs import AttentionRows
from engine.strategies.edgeformer.importance import BlockImportance, Projected
from engine.strategies.edgeformer.lent_heads import LentHeads
from engine.strategies.edgeformer.state import OwnerState
from engine.strategies.shared.ends import tag


class Owner:
    """One pass over the blocks of this device. `cache` is None where every pass starts from scratch."""

    def __init__(self, ctx: Ctx, state: OwnerState, step: Step, cache: str | None):
        self.ctx, self.state, self.step, self.cache = ctx, state, step, cache
        self.assignment = HeadAssignment(ctx, state, step, cache)
        self.model = ctx.model
        self.heads: Heads = tuple(range(ctx.model.num_heads))
        self.kv_heads: Heads = tuple(range(ctx.model.num_kv_heads))

    async def block(self, layer: int, x: Tensor) -> Tensor:
        """Hidden rows [B, T, D] → those after the block."""
        ctx, num_heads = self.ctx, len(self.heads)
        first_row = self.step.start if self.cache else 0
        packed = await ctx.compute(Project(layer, 0, num_heads, first_row), x)
        q, kv = narrow(packed, 1, 0, num_heads), narrow(packed, 1, num_heads, shape_of(packed)[1])
        batch, new = shape_of(x)[:2]
        rows = AttentionRows(batch, new, first_row + new)
        measures = BlockImportance(ctx, self.state, self.step, layer, Projected(packed, q, kv))
        if self.step.phase == "decode":
            allocation = await self.assignment.reuse(layer, rows, q)
        else:
            allocation = await self.assignment.assign(layer, rows, measures)
        total = await self._attend(layer, allocation, measures, rows)
        x = await ctx.compute(Residual(layer, "attention"), x, total)
        total = await ctx.compute(FeedForward(layer, 0, self.model.intermediate_size, True), x)
        return await ctx.compute(Residual(layer, "ffn"), x, total)

    def end(self, x: Tensor) -> None:
        """Send END to all neighbours: this pass has no more work for them."""
        for rank in neighbours_of(self.ctx, self.state):
            self.ctx.send(narrow(x, 1, 0, 0), rank, tag(self.step, "heads"), (END,))

    async def _attend(
        self, layer: int, allocation: HeadAllocation, measures: BlockImportance, rows: AttentionRows
    ) -> Tensor:
        """The attention output [B, T, D]. Neighbours compute their heads while the owner attends its own."""
        ctx, step, (_, q, kv) = self.ctx, self.step, measures.x
        sites = {site.rank: site for site in sites_now(ctx, self.state, rows)}
        shares = [
            (rank, heads) for rank in sites if rank != ctx.rank and (heads := allocation.heads_of(rank))
        ]
        shares.sort(key=lambda share: (-sites[share[0]].busy_s(len(share[1])), share[0]))
        measure = LentHeads(ctx, self.state, layer, rows, allocation)
        replies = []
        for rank, heads in shares:
            packed = concat((take(q, 1, heads), self._keys_values(kv, kv_of(self.model, heads))), 1)
            ctx.send(packed, rank, tag(step, "heads"), (ATTEND, layer, *heads))
            replies.append((rank, heads, measure.arrival(rank, ctx.recv(rank, tag(step, "context", layer)))))
        own = allocation.heads_of(ctx.rank)
        order, contexts = await measures.mixed(own)
        rest = tuple(head for head in own if head not in order)
        if rest or self.cache or not contexts:
            stored = self.kv_heads if self.cache else kv_of(self.model, rest)
            attend = Attend(layer, rest, stored, self.cache)
            contexts.append(await ctx.compute(attend, take(q, 1, rest), self._keys_values(kv, stored)))
            order += rest
        for rank, heads, reply in replies:
            lent = await reply
            if lent is None:
                ctx.mark("heads_recomputed", layer=layer, owner=ctx.rank, lost=rank, heads=list(heads))
                contexts += await self._recompute_heads(layer, heads, q, kv, rows.batch)
            else:
                contexts.append(lent)
            order += heads
        measure.learn(step)
        join = Join(layer, 0, len(self.heads), order, True)
        return await ctx.compute(join, concat(contexts, 1))

    async def _recompute_heads(
        self, layer: int, heads: Heads, q: Tensor, kv: Tensor, batch: int
    ) -> list[Tensor]:
        """Attend the heads of a failed neighbour, as many at a time as fit in memory."""
        contexts = []
        room = max(1, self.state.rooms.own[self.ctx.rank])
        for start in range(0, len(heads), room):
            some = heads[start : start + room]
            stored = kv_of(self.model, some)
            if self.cache:
                recall = Recall(layer, stored, self.kv_heads, batch, self.cache)
                keys_values = await self.ctx.compute(recall)
            else:
                keys_values = self._keys_values(kv, stored)
            contexts.append(
                await self.ctx.compute(Attend(layer, some, stored), take(q, 1, some), keys_values)
            )
        return contexts

    def _keys_values(self, kv: Tensor, stored: Heads) -> Tensor:
        """K and V of some KV heads, out of those of all."""
        return take(kv, 1, (*stored, *(len(self.kv_heads) + head for head in stored)))
