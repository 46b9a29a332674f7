"""Requests that people send while the run goes on: only the source knows them.

The source tells the other devices with a short message what is served next, and after every few tokens
whether that goes on: a request may be cancelled, or end with a stop token.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from engine.domain.plan import Plan
from engine.domain.sampling import NUMBERS, Sampling
from engine.domain.workload import Request, Workload
from engine.program.ctx import Ctx, Note
from engine.program.queue import like_first, others_of
from engine.program.strategy import Strategy
from engine.program.wave import Batch, SourceIO, answer, batches_of

MOST_ANNOUNCED = 250
"""Requests whose numbers fit into the note of one message."""
MOST_DRAWN = 40
"""The same, where tokens of some are drawn at random."""
HOW_DRAWN = -1
"""Stands after the numbers of the requests, before what says how their tokens are drawn."""


async def serve_open(
    ctx: Ctx,
    strategy: Strategy,
    plan: Plan,
    workload: Workload,
    requests: Sequence[Request],
    source: SourceIO | None,
) -> None:
    """Answer `requests`, each not before it has arrived, and those that the source gets later, until it is
    closed.
    """
    others = others_of(ctx, strategy, plan)
    if source is not None:
        source.open()
        ctx.spawn(enqueued(ctx, requests, source))
    elif ctx.rank not in others:
        return
    most = min(workload.max_batch, MOST_ANNOUNCED)
    while batch := await _next(ctx, most, others, source):
        ctx.at(batch[0].index, batch[0].emitted)
        wave = batches_of(batch, strategy.together(plan))
        new_tokens = batch[0].new_tokens
        assert new_tokens, "a request of an open workload says how many tokens it gets"

        async def goes_on(batch: Batch = batch) -> bool:
            return await _goes_on(ctx, batch, others, source)

        await answer(ctx, strategy, plan, wave, new_tokens, source, workload.kv_cache, goes_on)
        await strategy.between_waves(ctx, plan)


async def enqueued(ctx: Ctx, requests: Sequence[Request], source: SourceIO) -> None:
    """Put `requests` in the queue when they arrive: at once, where they did before a new plan."""
    begin_s = ctx.now_s
    for time_s, together in groupby(requests, lambda request: max(begin_s, request.arrival_s or 0.0)):
        await ctx.until(time_s)
        source.enqueue(list(together), ctx.now_s)
    source.expect_no_more()


async def _next(ctx: Ctx, most: int, others: Sequence[int], source: SourceIO | None) -> Batch:
    """The requests that are served next, up to `most`; none at the end. The prompts are at the source."""
    if source is None:
        note, _ = await ctx.recv_noted(ctx.cluster.source_rank, "admitted")
        return _announced(note)
    while not (waiting := source.waiting()):
        if source.closed:
            break
        await source.queue_change()
    batch = tuple(like_first(waiting)[:most]) if waiting else ()
    if any(request.sampling for request in batch):
        batch = batch[:MOST_DRAWN]
    for rank in others:
        ctx.send(source.nothing(), rank, "admitted", _announcement(batch))
    return batch


def _announcement(batch: Batch) -> Note:
    """The lengths and numbers of the requests, and how tokens are drawn if some are drawn at random."""
    if not batch:
        return (0, 0, 0)
    first = batch[0]
    indices = tuple(request.index for request in batch)
    note = len(first.tokens), first.emitted, first.new_tokens or 0, *indices
    if not any(request.sampling for request in batch):
        return note
    nothing = (0,) * NUMBERS
    how = (nothing if one.sampling is None else one.sampling.as_numbers() for one in batch)
    return *note, HOW_DRAWN, *(number for numbers in how for number in numbers)


def _announced(note: Note) -> Batch:
    """The requests as another device knows them: their lengths, and zeros for the prompts."""
    rows, emitted, new_tokens, *rest = note
    count = rest.index(HOW_DRAWN) if HOW_DRAWN in rest else len(rest)
    numbers = rest[count + 1 :] or [0] * NUMBERS * count
    each = [numbers[at : at + NUMBERS] for at in range(0, len(numbers), NUMBERS)]
    return tuple(
        Request(
            index=index,
            tokens=(0,) * rows,
            emitted=emitted,
            new_tokens=new_tokens,
            sampling=Sampling.of_numbers(own) if any(own) else None,
        )
        for index, own in zip(rest[:count], each, strict=True)
    )


async def _goes_on(ctx: Ctx, batch: Batch, others: Sequence[int], source: SourceIO | None) -> bool:
    """Whether a request of `batch` still needs tokens."""
    if source is None:
        note, _ = await ctx.recv_noted(ctx.cluster.source_rank, "goes_on")
        return bool(note[0])
    wanted = not all(source.has_ended(request.index) for request in batch)
    for rank in others:
        ctx.send(source.nothing(), rank, "goes_on", (int(wanted),))
    return wanted
