"""Move KV rows of LIME between two devices: the programs of both sides.

Sun et al., "LIME" (arXiv 2512.21835), Algorithm 2. Its `continue` would skip the fetch of the next segment,
and its first test delete rows that were not sent: here either side deletes rows only after the other has
acknowledged them, so that each row is always on one of them. A segment's rows leave before the next segment's
rows return: the caches of two segments are never complete at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from engine.domain.errors import RunError
from engine.ops.kv_cache import DropRows, PutRows, TakeRows
from engine.ops.tensors import Tensor, concat, flatten, narrow
from engine.program.ctx import Ctx, Handle, Note
from engine.program.strategy import Step
from engine.strategies.lime.transfer import Transfer
from engine.strategies.shared.ends import cache_of


class MessageKind(IntEnum):
    """The kind of a message; its note continues with request, segment and rows [start, stop)."""

    PUT = 0
    PUT_DONE = 1
    GET = 2
    GET_DONE = 3
    END = 4


def empty(x: Tensor) -> Tensor:
    """A tensor without elements, of the type of `x`, for messages that are only a note."""
    return narrow(flatten(x), 0, 0, 0)


class Parking:
    """The source's side of a transfer: of every segment's caches, `rows` wait elsewhere."""

    def __init__(self, ctx: Ctx, transfer: Transfer, bounds: Sequence[tuple[int, int]], wave: int):
        self.ctx = ctx
        self.transfer = transfer
        self.bounds = bounds
        self.tags = tags_of(wave)
        self.rows = 0
        self.away: dict[tuple[int, int], tuple[int, int]] = {}  # (request, segment) → rows [start, stop)
        self.swapping: Handle | None = None

    async def ready(self) -> None:
        """Wait until the rows of the next segment are back."""
        if self.swapping is not None:
            await self.swapping
            self.swapping = None

    def swap(self, segment: int, following: int, steps: Sequence[Step], x: Tensor) -> None:
        """Start to send the newest rows of `segment` away and to fetch those of `following`."""
        back = [step for step in steps if (step.requests[0], following) in self.away]
        leaving = [(step, self.rows) for step in steps if self.rows]  # the next step may choose otherwise
        if leaving or back:
            self.swapping = self.ctx.spawn(self._swap(segment, following, leaving, back, empty(x)))

    async def _swap(
        self,
        segment: int,
        following: int,
        leaving: Sequence[tuple[Step, int]],
        back: Sequence[Step],
        nothing: Tensor,
    ) -> None:
        for step, rows in leaving:
            await self._put(step, segment, rows)
        for step in back:
            await self._get(step, following, nothing)

    def end(self, x: Tensor) -> None:
        self._send(empty(x), (MessageKind.END, 0, 0, 0, 0))

    async def _put(self, step: Step, segment: int, rows: int) -> None:
        cache, request = cache_of(step), step.requests[0]
        assert cache, "only sequences that are generated have rows to park"
        stop = step.start + step.rows
        start = stop - min(rows, stop)
        layers = range(*self.bounds[segment])
        taken = [await self.ctx.compute(TakeRows(layer, start, stop, step.batch, cache)) for layer in layers]
        self._send(stacked(taken), (MessageKind.PUT, request, segment, start, stop))
        await self._answer((MessageKind.PUT_DONE, request, segment, start, stop))
        for layer in layers:
            await self.ctx.compute(DropRows(layer, start, stop, step.batch, cache))
        self.away[request, segment] = start, stop

    async def _get(self, step: Step, segment: int, nothing: Tensor) -> None:
        cache, request = cache_of(step), step.requests[0]
        assert cache, "only sequences that are generated have rows to park"
        start, stop = self.away.pop((request, segment))
        self._send(nothing, (MessageKind.GET, request, segment, start, stop))
        rows = await self._answer((MessageKind.GET, request, segment, start, stop))
        for number, layer in enumerate(range(*self.bounds[segment])):
            await self.ctx.compute(PutRows(layer, cache), unstacked(rows, number))
        self._send(nothing, (MessageKind.GET_DONE, request, segment, start, stop))

    def _send(self, x: Tensor, note: Note) -> None:
        self.ctx.send(x, self.transfer.target, self.tags[0], note)

    async def _answer(self, expected: Note) -> Tensor:
        note, x = await self.ctx.recv_noted(self.transfer.target, self.tags[1])
        if note != expected:
            raise RunError(f"{self.ctx.device.name}: KV rows {note} came, expected {expected}.")
        return x


async def keep_rows(
    ctx: Ctx, transfer: Transfer, bounds: Sequence[tuple[int, int]], steps: Sequence[Step]
) -> None:
    """The target's side, until the source's last message. `bounds` are the source's layers per segment."""
    to_target, to_source = tags_of(steps[0].requests[0])
    sequences = {step.requests[0]: step for step in steps}
    while True:
        note, x = await ctx.recv_noted(transfer.source, to_target)
        kind, request, segment, start, stop = note
        if kind == MessageKind.END:
            return
        layers, step = range(*bounds[segment]), sequences[request]
        if kind == MessageKind.PUT:
            for number, layer in enumerate(layers):
                await ctx.compute(PutRows(layer, step.cache), unstacked(x, number))
            ctx.send(empty(x), transfer.source, to_source, (MessageKind.PUT_DONE, *note[1:]))
        elif kind == MessageKind.GET:
            kept = [
                await ctx.compute(TakeRows(layer, 0, stop - start, step.batch, step.cache))
                for layer in layers
            ]
            ctx.send(stacked(kept), transfer.source, to_source, note)
        else:
            for layer in layers:
                await ctx.compute(DropRows(layer, 0, stop - start, step.batch, step.cache))


def tags_of(wave: int) -> tuple[str, str]:
    """Tags of the messages to the target and back, for the requests from `wave` on."""
    return f"kv.r{wave}", f"kv_back.r{wave}"


def stacked(rows: Sequence[Tensor]) -> Tensor:
    """Rows of each layer, keys and values, as one message: [2 · layers, B, K, rows, E]."""
    return concat(rows, 0)


def unstacked(x: Tensor, number: int) -> Tensor:
    """Rows of the message's layer `number`."""
    return narrow(x, 0, 2 * number, 2 * number + 2)
