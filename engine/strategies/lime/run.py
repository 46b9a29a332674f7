"""Run LIME: hidden states pass around the ring once per segment while streamed blocks are loaded and evicted.

Sun et al., "LIME" (arXiv 2512.21835), sections IV-A and IV-D. Every device takes (step, segment, micro-batch)
strictly in this order: a request starts its next token once its result is back and its turn has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from engine.domain.errors import OutOfMemory
from engine.domain.model import ModelSpec
from engine.ops.core import Attention, Block, FeedForward, Residual
from engine.ops.layers import layers
from engine.ops.sizes import kv_bytes_per_row, weight_bytes
from engine.ops.tensors import Tensor, narrow, shape_of
from engine.ops.vision import ImagePrompt
from engine.program.ctx import Ctx
from engine.program.strategy import Done, Step
from engine.strategies.lime.blocks import streamed_online
from engine.strategies.lime.cost import longest_idle_s
from engine.strategies.lime.layout import SegmentsLayout
from engine.strategies.lime.parking import Parking
from engine.strategies.lime.ring import step_times
from engine.strategies.lime.slots import Slots, piece_at
from engine.strategies.lime.transfer import ParkedRows, num_rows, round_trip, rows_to_park
from engine.strategies.shared.demand import Demand
from engine.strategies.shared.ends import cache_of, embed, finish, tag, wanted_rows


class Turn(NamedTuple):
    """A step, or a part of one that runs a prompt in parts, and the step's number among all steps, under
    which its tokens are found. Only the `last` part of a prompt has a result.
    """

    number: int
    step: Step
    last: bool = True


class StreamedLayer(NamedTuple):
    """A layer as one operation and as four."""

    block: Block
    parts: tuple[Attention, Residual, FeedForward, Residual]


def turns_of(steps: Sequence[Step], chunk_rows: int) -> list[Turn]:
    """`steps` in order, prompts in parts of `chunk_rows` tokens (0: at once)."""
    turns = []
    for number, step in enumerate(steps):
        size = chunk_rows if chunk_rows and step.phase == "prefill" else step.rows
        for start in range(step.start, step.start + step.rows, size):
            stop = min(start + size, step.start + step.rows)
            part = step.model_copy(update={"start": start, "rows": stop - start})
            turns.append(Turn(number, part, stop == step.start + step.rows))
    return turns


async def embed_turn(ctx: Ctx, turn: Turn, tokens: Sequence[Tensor | None]) -> Tensor:
    """Embed a turn's rows of its tokens."""
    prompt, rows = tokens[turn.number], turn.step.rows
    if isinstance(prompt, ImagePrompt) or prompt is None or shape_of(prompt)[1] == rows:
        return await embed(ctx, turn.step, prompt)
    return await embed(ctx, turn.step, narrow(prompt, 1, turn.step.start, turn.step.start + rows))


async def feed(
    ctx: Ctx, layout: SegmentsLayout, steps: Sequence[Step], tokens: Sequence[Tensor | None], done: Done
) -> None:
    """The program of a source without layers: send prompts and tokens into the ring, receive results."""
    before: dict[int, Step] = {}
    for turn in turns_of(steps, layout.chunk_rows):
        step = turn.step
        await _take(ctx, before.pop(step.requests[0], None), layout.ranks[-1], done)
        ctx.at(step.requests[0], step.index)
        ctx.send(await embed_turn(ctx, turn, tokens), layout.ranks[0], tag(step, "hidden"))
        if turn.last:
            before[step.requests[0]] = step
    for step in before.values():
        await _take(ctx, step, layout.ranks[-1], done)


async def _take(ctx: Ctx, step: Step | None, last: int, done: Done) -> None:
    """Receive the result of `step` from the last device of the ring; None: nothing to wait for."""
    if step is not None:
        ctx.at(step.requests[0], step.index)
        x = await ctx.recv(last, tag(step, "hidden", ctx.model.num_layers - 1))
        done(step, await finish(ctx, step, x))


class Member:
    """One device of the ring for one wave of requests."""

    def __init__(
        self,
        ctx: Ctx,
        layout: SegmentsLayout,
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ):
        self.ctx, self.layout, self.tokens, self.done = ctx, layout, tokens, done
        turns = turns_of(steps, layout.chunk_rows)
        self.rounds = [list(group) for _, group in groupby(turns, key=lambda turn: turn.step.index)]
        self.ranks = layout.ranks
        self.place = self.ranks.index(ctx.rank)
        self.bounds = layout.stages_of(ctx.rank)
        self.slots = Slots(ctx, self.bounds, layout.streamed[ctx.rank])
        self.online = layout.online[ctx.rank][0]
        self.parking = next(
            (
                Parking(ctx, one, self.bounds, steps[0].requests[0])
                for one in layout.transfers
                if one.source == ctx.rank
            ),
            None,
        )
        self.last_tokens = _tokens(_complete(self.rounds[-1]))
        self.uncovered_s = 0.0
        self.streamed: dict[tuple[int, str | None], StreamedLayer] = {}
        self.before: dict[int, Step] = {}
        self.around: dict[
            tuple[int, int], Tensor
        ] = {}  # hidden states that a ring of one device sends to itself

    @property
    def feeds(self) -> bool:
        """Whether this device is the source: then it is the first of the ring."""
        return self.ctx.rank == self.ctx.cluster.source_rank

    async def run(self) -> None:
        for number, together in enumerate(self.rounds):
            steps = _complete(together)
            self._adapt(steps)
            for segment in range(self.layout.num_segments):
                x = await self._segment(segment, together)
                following = (segment + 1) % self.layout.num_segments
                over = number + 1 == len(self.rounds) and following == 0
                if self.parking and not over:
                    self.parking.swap(segment, following, steps, x)
        if self.feeds:
            for step in self.before.values():
                await _take(self.ctx, step, self.layout.ranks[-1], self.done)
        if self.parking:
            await self.parking.ready()
            self.parking.end(x)
        if self.slots.blocks:
            self.ctx.mark("disk_waits", uncovered_s=self.uncovered_s)

    async def _segment(self, segment: int, together: Sequence[Turn]) -> Tensor:
        """Run all micro-batches through the stage of `segment`; returns the last one's rows."""
        for turn in together:
            x = await self._input(segment, turn)
            if self.parking:
                await self.parking.ready()
            before_s = self.ctx.now_s
            await self.slots.ready(segment)
            self.uncovered_s += self.ctx.now_s - before_s
            x = await self._stage(segment, turn.step, x, last=turn is together[-1])
            await self._output(segment, turn, x)
        return x

    async def _input(self, segment: int, turn: Turn) -> Tensor:
        step = turn.step
        ctx, ranks, start = self.ctx, self.ranks, self.bounds[segment][0]
        if start == 0 and self.feeds:
            await _take(ctx, self.before.pop(step.requests[0], None), ranks[-1], self.done)
        ctx.at(step.requests[0], step.index)
        if start == 0 and self.feeds:
            return await embed_turn(ctx, turn, self.tokens)
        if start == 0:
            return await ctx.recv(ctx.cluster.source_rank, tag(step, "hidden"))
        if len(ranks) == 1:
            return self.around.pop((step.requests[0], step.start))
        return await ctx.recv(ranks[self.place - 1], tag(step, "hidden", start - 1))

    async def _stage(self, segment: int, step: Step, x: Tensor, last: bool) -> Tensor:
        """Layers of one stage. After the last micro-batch's streamed blocks, the slots move on."""
        ctx, front = self.ctx, self.slots.front if last else None
        start, stop = self.bounds[segment]
        if front is None or start + front.position >= stop:
            return await ctx.compute_layers(layers(start, stop, cache_of(step)), x)
        at = start + front.position
        x = await ctx.compute_layers(layers(start, at, cache_of(step)), x)
        block, parts = self._streamed(at, cache_of(step))
        if front.part == "attention":
            attention, residual, ffn, residual_ffn = parts
            x = await ctx.compute(residual, x, await ctx.compute(attention, x))
            self.slots.advance(segment)
            x = await ctx.compute(residual_ffn, x, await ctx.compute(ffn, x))
        else:
            x = await ctx.compute(block, x)
            self.slots.advance(segment)
        return await ctx.compute_layers(layers(at + 1, stop, cache_of(step)), x)

    def _streamed(self, layer: int, cache: str | None) -> StreamedLayer:
        """The operations of a streamed layer, the same in every step, so that their prices are
        found at once.
        """
        found = self.streamed.get((layer, cache))
        if found is None:
            block = Block(layer, cache)
            found = self.streamed[layer, cache] = StreamedLayer(block, block.parts(self.ctx.model))
        return found

    async def _output(self, segment: int, turn: Turn, x: Tensor) -> None:
        step = turn.step
        ctx, ranks, stop = self.ctx, self.ranks, self.bounds[segment][1]
        if stop < ctx.model.num_layers:
            if len(ranks) == 1:
                self.around[step.requests[0], step.start] = x
            else:
                after = ranks[(self.place + 1) % len(ranks)]
                ctx.send(x, after, tag(step, "hidden", stop - 1))
        elif not turn.last:
            return
        elif self.feeds:
            self.done(step, await finish(ctx, step, x))
        else:
            ctx.send(wanted_rows(step, x), ctx.cluster.source_rank, tag(step, "hidden", stop - 1))
        if turn.last and self.feeds and ranks[-1] != ctx.rank and segment == self.layout.num_segments - 1:
            self.before[step.requests[0]] = step

    # growing KV caches

    def _adapt(self, steps: Sequence[Step]) -> None:
        """Choose before a step the rows to park, and the online plan with which the KV caches fit.

        Raises `OutOfMemory` if no plan is left.
        """
        if not steps[0].cache:
            return
        ctx, tokens = self.ctx, _tokens(steps)
        parked_tokens = self._park(steps, tokens) if self.parking else 0
        plans = self.layout.online[ctx.rank]
        needed = next((plan for plan in plans if tokens <= plan.max_tokens + parked_tokens), None)
        if needed is None:
            raise self._too_long(tokens, tokens - plans[-1].max_tokens - parked_tokens)
        if needed.max_tokens > self.online.max_tokens:
            self.online = needed
            self.slots.adapt(streamed_online(self.layout.streamed[ctx.rank], needed))
            ctx.mark("threshold", tokens=tokens, **needed._asdict())

    def _too_long(self, tokens: int, too_many: int) -> OutOfMemory:
        """The error for `tokens` tokens in the KV caches, `too_many` of which no online plan has room for."""
        ctx, layout = self.ctx, self.layout
        have = int(ctx.device.usable_bytes)
        missing = too_many * layout.num_layers(ctx.rank) * _row_bytes(ctx.model)
        blocks = streamed_online(layout.streamed[ctx.rank], layout.online[ctx.rank][-1])
        attention, ffn = (sum(block.part == part for block in blocks) for part in ("attention", "ffn"))
        streamed = (
            f"{attention} attention and {ffn} feed-forward blocks of each of its {layout.num_segments} stages"
        )
        if layout.num_segments == 1:
            streamed = "nothing, since one segment has no other to share memory with"
        return OutOfMemory(
            ctx.device.name,
            have + missing,
            have,
            f"its layers and the KV caches of {tokens} tokens, streaming {streamed},",
            remedy="let the plan know the length (assumed_tokens=0), allow more online plans "
            "(online_planner=blocks), or give it more memory",
        )

    def _park(self, steps: Sequence[Step], tokens: int) -> int:
        """Choose the rows to park from this step on; tokens' worth of memory that this surely frees."""
        assert self.parking is not None, "only sources of a transfer park rows"
        first, before = steps[0], self.parking.rows
        if first.phase == "decode":
            name = f"kv_rows.r{first.requests[0]}.t{first.index}"
            self.parking.rows = self.ctx.decide(name, ParkedRows(self._rows(steps, tokens)))
        if self.parking.rows != before:
            target = self.ctx.cluster.devices[self.parking.transfer.target].name
            self.ctx.mark("kv_transfer", target=target, rows=self.parking.rows)
        kept = min(before, self.parking.rows) * _sequences(steps) * self.parking.transfer.segment_bytes
        own_bytes = self.layout.num_layers(self.ctx.rank) * _row_bytes(self.ctx.model)
        return (self.layout.num_segments - 1) * kept // own_bytes

    def _rows(self, steps: Sequence[Step], tokens: int) -> int:
        """Eq. 8 under the present conditions of links and devices, within what the target can store."""
        assert self.parking is not None, "only sources of a transfer park rows"
        ctx, layout, transfer, now = self.ctx, self.layout, self.parking.transfer, self.ctx.cluster_now
        fits, sequences = self.online.max_tokens >= self.last_tokens, _sequences(steps)
        if not self.parking.rows and (fits or tokens < self.online.max_tokens - sequences):
            return 0  # whatever the times are, see below and `rows_to_park`
        first = steps[0]
        rows, cached_rows = first.rows, first.start + first.rows
        demand = Demand(first.batch, sequences, rows, new_tokens=2, cached_rows=cached_rows)
        times = step_times(now, ctx.model, layout.ranks, demand, first.rows, first.start)
        stages = [[stop - start for _, start, stop in segment] for segment in layout.segments]
        front_s = times.front_s(self.place, self.slots.blocks)
        load_bytes = sum(
            weight_bytes(ctx.model, piece_at(self.bounds[0], block)) for block in self.slots.blocks
        )
        load_s = load_bytes / now.devices[ctx.rank].disk_byte_per_s
        uncovered_s = load_s - longest_idle_s(times, stages, self.place, front_s)
        row_bytes = sequences * transfer.segment_bytes
        most_layers = max(stop - start for start, stop in self.bounds)
        s_per_byte, fixed_s = round_trip(now, ctx.rank, transfer.target, most_layers)
        wanted = num_rows(uncovered_s, s_per_byte, row_bytes, len(steps) * fixed_s)
        if fits:
            wanted = min(wanted, self.parking.rows)  # no further plan is due that more rows could delay
        # the target may be a step ahead
        free = transfer.free_bytes - transfer.target_bytes * (tokens + sequences)
        room = int(max(0.0, free) // (row_bytes * (layout.num_segments - 1)))
        most = min(room, transfer.max_rows, first.start)
        chosen = rows_to_park(
            min(wanted, most),
            self.parking.rows,
            tokens,
            self.online.max_tokens,
            sequences,
            layout.fluctuation_rows,
        )
        return min(chosen, most)

    async def restore(self) -> None:
        """Return to the state before the first step: no sequences, only the offline plan's blocks
        streamed.
        """
        for step in _complete(self.rounds[-1]):
            if step.cache:
                self.ctx.release(step.cache)
        self.slots.adapt(self.layout.streamed[self.ctx.rank])
        for segment in range(self.layout.num_segments):
            await self.slots.ready(segment)


def _complete(together: Sequence[Turn]) -> list[Step]:
    """The steps with which every request's rows are complete: of prompts in parts the last one."""
    return [turn.step for turn in together if turn.last]


def _sequences(steps: Sequence[Step]) -> int:
    return sum(step.batch for step in steps)


def _tokens(steps: Sequence[Step]) -> int:
    """Tokens in the KV caches of all sequences after `steps`."""
    return sum(step.batch * (step.start + step.rows) for step in steps)


def _row_bytes(model: ModelSpec) -> int:
    return kv_bytes_per_row(model, model.num_kv_heads)
