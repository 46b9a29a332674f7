"""AdaptLink's messages: the primary calls secondaries and backups, which reply with partial sums.

A call is a message with the normed rows [B, T, D] and the note (kind, step, layer, epoch, start, stop); its
reply, the partial sum [B, T, D], repeats the note. All calls of a wave of requests have one tag until an END
message, so a backup gets its first call when its secondary fails, without further messages. Partial sums are
added in the order of the shards, so the order of arrival changes no bit.

After a failure the primary may ask a device with memory to spare for a new copy of columns (`coverage.py`).
It loads them from its disk beside its other work, and says when it has them, or that the wave ended before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.domain.errors import PeerFailed
from engine.domain.plan import Slice
from engine.ops.core import Add, Attention, Block, FeedForward, Norm, Residual
from engine.ops.operation import Op
from engine.ops.tensors import Tensor, narrow
from engine.program.ctx import Ctx, Handle, Note
from engine.program.strategy import Step
from engine.strategies.adaptlink import summa
from engine.strategies.adaptlink.coverage import Coverage
from engine.strategies.adaptlink.layout import SharesLayout
from engine.strategies.adaptlink.roles import ColumnShard, HeadShare
from engine.strategies.shared.ends import cache_of, tag

END, FFN, HEADS, SUMMA, COPY, COPIED = range(6)
REPLIES = {FFN: "ffn_out", HEADS: "heads_out"}


async def serve_partial_sums(ctx: Ctx, layout: SharesLayout, steps: Sequence[Step]) -> None:
    """A secondary's or backup's program for a wave of requests."""
    call_tag, number, primary = tag(steps[0], "ask"), -1, layout.primary
    members, copier = layout.shards, Copier(ctx, layout, tag(steps[0], "copied"))
    while True:
        note, x = await ctx.recv_noted(primary, call_tag)
        kind, called_in, layer, _, start, stop = note
        if kind == END:
            await copier.stop()
            return
        if kind == COPY:
            copier.start(note, x)
            continue
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


class Copier:
    """Loads copies of columns on a device while it may serve others."""

    def __init__(self, ctx: Ctx, layout: SharesLayout, reply_tag: str):
        self.ctx, self.layout, self.reply_tag = ctx, layout, reply_tag
        self.stopping = False
        self.running: list[Handle] = []

    def start(self, note: Note, nothing: Tensor) -> None:
        """Begin the copy that the call `note` asks for."""
        self.running.append(self.ctx.spawn(self._load(note, nothing)))

    async def stop(self) -> None:
        """Stop after the layers that are being loaded now."""
        self.stopping = True
        for program in self.running:
            await program

    async def _load(self, note: Note, nothing: Tensor) -> None:
        *_, start, stop = note
        complete = True
        for layer in self.layout.split_layers:
            if self.stopping:
                complete = False
                break
            await self.ctx.load(Slice(layer=layer, part="ffn", axis="columns", start=start, stop=stop))
        self.ctx.send(nothing, self.layout.primary, self.reply_tag, (COPIED if complete else END, *note[1:]))


class PartialSumClient:
    """The primary's side of a wave. What it knows of the coverage stays on the device from wave to wave."""

    def __init__(self, ctx: Ctx, layout: SharesLayout, steps: Sequence[Step]):
        self.ctx = ctx
        self.steps = steps
        self.call_tag, self.copied_tag = tag(steps[0], "ask"), tag(steps[0], "copied")
        self.first_split = ctx.model.num_layers - len(layout.split_layers)
        self.members = layout.shards
        self.by_summa = layout.partition == "summa"
        self.columns = self.members[0].stop
        known, coverage = ctx.memory.get("adaptlink", (None, None))
        self.coverage: Coverage = coverage if known is layout else Coverage(layout)
        ctx.memory["adaptlink"] = (layout, self.coverage)
        self.heads: dict[int, list[HeadShare]] = {}
        for share in layout.heads:
            self.heads.setdefault(share.layer, []).append(share)
        self.servers = layout.servers
        self.nothing: Tensor = None
        self.replies: dict[tuple[int, Note], Tensor] = {}

    async def layers(self, number: int, x: Tensor) -> Tensor:
        """All layers of step `number`."""
        cache = cache_of(self.steps[number])
        self.nothing = narrow(x, 1, 0, 0)
        self._look_for_failures()
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
            self.ctx.send(self.nothing, rank, self.call_tag, (END, 0, 0, self.coverage.epoch, 0, 0))

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
            for shard, pieces in self.coverage.serving.items()
        }
        total = await ctx.compute(FeedForward(layer, 0, self.columns, True, normed=True), h)
        for shard in self.coverage.serving:
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
                    (piece.device, self._call(FFN, number, layer, piece, h))
                    for piece in self.coverage.serving[shard]
                ]

    def _promote(self, shard: ColumnShard, layer: int, failure: PeerFailed) -> None:
        """Give the columns of a failed device to its backups; raises `failure` if they do not have them
        all.
        """
        failed, coverage = self.ctx.cluster.rank(failure.device), self.coverage
        coverage.lose(frozenset({failed}) | self.ctx.failed)
        promoted = coverage.promote(shard, failed)
        if promoted is None:
            raise failure
        self.ctx.mark(
            "promoted",
            lost=failed,
            layer=layer,
            epoch=coverage.epoch,
            columns=[shard.start, shard.stop],
            backups=[list(piece) for piece in promoted],
            **self._covered(),
        )
        self._seek_copies()

    def _look_for_failures(self) -> None:
        """Say before a step which copies failed with their devices, and replace what has none."""
        coverage = self.coverage
        if coverage.lose(self.ctx.failed):
            self.ctx.mark("copies_lost", epoch=coverage.epoch, **self._covered())
        if coverage.failed:
            self._seek_copies()

    def _seek_copies(self) -> None:
        """Ask devices with memory to spare for copies of the columns that have none."""
        for copy in self.coverage.wanted():
            self._call(COPY, 0, 0, copy, self.nothing)
            self.ctx.mark("copy_begun", device=copy.device, columns=[copy.start, copy.stop])
            self.ctx.spawn(self._copied(copy.device))

    async def _copied(self, device: int) -> None:
        """Wait until `device` has a copy; if it fails or the wave ends before, the copy is made later."""
        try:
            (kind, *_, start, stop), _ = await self.ctx.recv_noted(device, self.copied_tag)
        except PeerFailed:
            return
        copy = ColumnShard(device, start, stop)
        if kind != COPIED:
            self.coverage.stopped(copy)
        elif self.coverage.arrived(copy):
            self.ctx.mark(
                "copied",
                device=copy.device,
                columns=[copy.start, copy.stop],
                epoch=self.coverage.epoch,
                **self._covered(),
            )

    def _covered(self) -> dict[str, Any]:
        """Facts of a mark: the share of the secondaries' columns with a copy, and the columns without."""
        coverage = self.coverage
        return {
            "coverage": coverage.fraction(),
            "uncovered": [list(gap) for gap in coverage.uncovered()],
            "serving": [list(piece) for piece in coverage.pieces],
            "copies": sorted(list(piece) for piece in coverage.copies),
        }

    def _call(self, kind: int, number: int, layer: int, piece: tuple[int, int, int], h: Tensor) -> Note:
        device, start, stop = piece
        note = (kind, number, layer, self.coverage.epoch, start, stop)
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
