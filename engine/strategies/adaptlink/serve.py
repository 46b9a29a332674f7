"""AdaptLink's messages: the primary calls secondaries and backups, which reply with partial sums.

A call is a message with the normed rows [B, T, D] and the note (kind, step, layer, epoch, start, stop); its
reply, the partial sum [B, T, D], repeats the note. All calls of a wave of requests have one tag until an END
message, so a backup gets its first call when its secondary fails, without further messages. Partial sums are
added in the order of the shards, so the order of arrival changes no bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.errors import PeerFailed
from engine.ops.core import Add, Attention, Block, FeedForward, Norm, Residual
from engine.ops.operation import Op
from engine.ops.tensors import Tensor, narrow
from engine.program.ctx import Ctx, Note
from engine.program.strategy import Step
from engine.strategies.adaptlink import summa
from engine.strategies.adaptlink.layout import SharesLayout
from engine.strategies.adaptlink.roles import ColumnShard, HeadShare
from engine.strategies.shared.ends import cache_of, tag

END, FFN, HEADS, SUMMA = range(4)
REPLIES = {FFN: "ffn_out", HEADS: "heads_out"}


async def serve_partial_sums(ctx: Ctx, layout: SharesLayout, steps: Sequence[Step]) -> None:
    """A secondary's or backup's program for a wave of requests."""
    call_tag, number, primary = tag(steps[0], "ask"), -1, layout.primary
    members = layout.shards
    while True:
        note, x = await ctx.recv_noted(primary, call_tag)
        kind, called_in, layer, _, start, stop = note
        if kind == END:
            return
        step = steps[called_in]
        if number != called_in:
            number = called_in
            ctx.at(step.requests[0], step.index)
        if kind == SUMMA:
            await summa.feed_forward(ctx, step, layer, members, x)
            continue
        op: Op = FeedForward(layer, start, stop, False, normed=True)
        if kind == HEADS:
            op = Attention(layer, start, stop, False, cache_of(step), normed=True)
        ctx.send(await ctx.compute(op, x), primary, tag(step, REPLIES[kind], layer), note)


class PartialSumClient:
    """The primary's side of a wave. `serving` has who computes each secondary's shard now."""

    def __init__(self, ctx: Ctx, layout: SharesLayout, steps: Sequence[Step]):
        self.ctx = ctx
        self.steps = steps
        self.call_tag = tag(steps[0], "ask")
        self.first_split = ctx.model.num_layers - len(layout.split_layers)
        self.members = layout.shards
        self.by_summa = layout.partition == "summa"
        mine, *others = self.members
        self.columns = mine.stop
        self.serving: dict[ColumnShard, tuple[ColumnShard, ...]] = {shard: (shard,) for shard in others}
        self.backups = layout.backups
        self.heads: dict[int, list[HeadShare]] = {}
        for share in layout.heads:
            self.heads.setdefault(share.layer, []).append(share)
        self.servers = layout.servers
        self.epoch = 0
        self.replies: dict[tuple[int, Note], Tensor] = {}
        for shard in others:
            if shard.device in ctx.failed and self._is_saved(shard):
                self._hand_over(shard)

    async def layers(self, number: int, x: Tensor) -> Tensor:
        """All layers of step `number`."""
        cache = cache_of(self.steps[number])
        for layer in range(self.ctx.model.num_layers):
            if layer < self.first_split:
                x = await self.ctx.compute(Block(layer, cache), x)
            else:
                x = await self._attention(number, layer, x)
                x = await (self._summa if self.by_summa else self._feed_forward)(number, layer, x)
        return x

    def end(self) -> None:
        """End the wave: send END to all servers."""
        for rank in self.servers:
            self.ctx.send(self.nothing, rank, self.call_tag, (END, 0, 0, self.epoch, 0, 0))

    async def _attention(self, number: int, layer: int, x: Tensor) -> Tensor:
        """The attention part. Moved heads have their KV cache on their device: if that fails, a new plan is
        needed.
        """
        ctx, cache, shares = self.ctx, cache_of(self.steps[number]), self.heads.get(layer, ())
        if not shares:
            total = await ctx.compute(Attention(layer, 0, ctx.model.num_heads, True, cache), x)
            return await ctx.compute(Residual(layer, "attention"), x, total)
        h = await ctx.compute(Norm(layer, "attention"), x)
        calls = [(one.device, self._call(HEADS, number, layer, one[1:], h)) for one in shares]
        total = await ctx.compute(Attention(layer, 0, shares[0].start, True, cache, normed=True), h)
        for device, note in calls:
            total = await ctx.compute(Add(), total, await self._reply(device, note))
        return await ctx.compute(Residual(layer, "attention"), x, total)

    async def _feed_forward(self, number: int, layer: int, x: Tensor) -> Tensor:
        ctx = self.ctx
        self.replies.clear()
        h = await ctx.compute(Norm(layer, "ffn"), x)
        calls = {
            shard: [(piece.device, self._call(FFN, number, layer, piece, h)) for piece in pieces]
            for shard, pieces in self.serving.items()
        }
        total = await ctx.compute(FeedForward(layer, 0, self.columns, True, normed=True), h)
        for shard in self.serving:
            for partial in await self._partials(number, layer, h, shard, calls[shard]):
                total = await ctx.compute(Add(), total, partial)
        return await ctx.compute(Residual(layer, "ffn"), x, total)

    async def _summa(self, number: int, layer: int, x: Tensor) -> Tensor:
        ctx, members = self.ctx, self.members
        h = await ctx.compute(Norm(layer, "ffn"), x)
        for member in members[1:]:
            self._call(SUMMA, number, layer, member, summa.input_block(ctx, member, h))
        mine = summa.input_block(ctx, members[0], h)
        total = await summa.feed_forward(ctx, self.steps[number], layer, members, mine)
        return await ctx.compute(Residual(layer, "ffn"), x, total)

    async def _partials(
        self, number: int, layer: int, h: Tensor, shard: ColumnShard, calls: list[tuple[int, Note]]
    ) -> list[Tensor]:
        """The shard's partial sums; from its backups if its device fails: then `h` is sent to them."""
        while True:
            try:
                return [await self._reply(device, note) for device, note in calls]
            except PeerFailed as failure:
                self._promote(shard, layer, failure)
                calls = [
                    (piece.device, self._call(FFN, number, layer, piece, h)) for piece in self.serving[shard]
                ]

    def _promote(self, shard: ColumnShard, layer: int, failure: PeerFailed) -> None:
        """Give the columns of a failed secondary to its backups; raises `failure` if they do not have them
        all.
        """
        if self.serving[shard] != (shard,) or not self._is_saved(shard):
            raise failure
        self._hand_over(shard)
        self.ctx.mark(
            "promoted",
            lost=shard.device,
            layer=layer,
            epoch=self.epoch,
            columns=[shard.start, shard.stop],
            backups=[list(piece) for piece in self.serving[shard]],
        )

    def _is_saved(self, shard: ColumnShard) -> bool:
        """Whether backups can replace the shard's device: they have all its columns, and it had no heads."""
        saved = sum(piece.stop - piece.start for piece in self.backups.get(shard.device, ()))
        has_heads = any(share.device == shard.device for shares in self.heads.values() for share in shares)
        return saved == shard.stop - shard.start and not has_heads

    def _hand_over(self, shard: ColumnShard) -> None:
        self.epoch += 1
        self.serving[shard] = self.backups[shard.device]

    def _call(self, kind: int, number: int, layer: int, piece: tuple[int, int, int], h: Tensor) -> Note:
        device, start, stop = piece
        note = (kind, number, layer, self.epoch, start, stop)
        self.nothing = narrow(h, 1, 0, 0)
        self.ctx.send(h, device, self.call_tag, note)
        return note

    async def _reply(self, device: int, note: Note) -> Tensor:
        """Wait for the reply to exactly this call. Replies to other calls are stored; those of an older epoch
        are never read.
        """
        kind, number, layer = note[:3]
        reply_tag = tag(self.steps[number], REPLIES[kind], layer)
        while (device, note) not in self.replies:
            replied, partial = await self.ctx.recv_noted(device, reply_tag)
            self.replies[device, replied] = partial
        return self.replies.pop((device, note))
