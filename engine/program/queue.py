"""Requests that wait in a queue: first come first served, several together where they are equally long.

Who comes next is known to all devices, as requests are numbered in the order of their arrival. How many are
served together is not, as it depends on when the source is free: it tells the others with a short message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile

from engine.domain.errors import RunError
from engine.domain.plan import Plan
from engine.domain.workload import Request, Workload
from engine.program.ctx import Ctx
from engine.program.strategy import Strategy
from engine.program.wave import SourceIO, answer, batches_of, shape_of
from engine.schedulers.scheduler import Job, Scheduler, View


async def serve_queue(
    ctx: Ctx,
    strategy: Strategy,
    plan: Plan,
    workload: Workload,
    requests: Sequence[Request],
    source: SourceIO | None,
    scheduler: Scheduler,
) -> None:
    """Answer `requests` in their order, each not before it has arrived."""
    others = others_of(ctx, strategy, plan)
    if source is not None:
        ctx.spawn(arrivals(ctx, requests, source))
    elif ctx.rank not in others:
        return
    waiting = list(requests)
    while waiting:
        if len(waiting) < len(requests):
            await strategy.between_waves(ctx, plan)
        ctx.at(waiting[0].index, waiting[0].emitted)
        count = await _admitted(ctx, alike(waiting[: workload.max_batch]), others, source, scheduler)
        taken, waiting = tuple(waiting[:count]), waiting[count:]
        wave = batches_of(taken, strategy.together(plan))
        wanted = taken[0].new_tokens
        new_tokens = workload.new_tokens if wanted is None else wanted
        await answer(ctx, strategy, plan, wave, new_tokens, source, workload.kv_cache)


def others_of(ctx: Ctx, strategy: Strategy, plan: Plan) -> list[int]:
    """Ranks of the devices beside the source that take part: those with weights, and those that the strategy
    may send something to although they have none. All others do nothing.
    """
    ranks = {holding.device for holding in plan.holdings}
    ranks.update(*strategy.partners(ctx.cluster, plan))
    return sorted(ranks - {ctx.cluster.source_rank})


def alike(requests: Sequence[Request]) -> list[Request]:
    """The first of `requests`, with those directly after it that have its lengths."""
    return list(takewhile(lambda other: shape_of(other) == shape_of(requests[0]), requests))


def like_first(requests: Sequence[Request]) -> list[Request]:
    """The first of `requests`, with all others that have its lengths."""
    return [other for other in requests if shape_of(other) == shape_of(requests[0])]


def in_turn(queue: Sequence[Request], last_turn: Mapping[str, int]) -> list[Request]:
    """`queue`, which is in the order of arrival, round robin over people: each person's first request comes
    before anybody's second.

    Within a round the person whose `last_turn` is lowest comes first; who had none yet is before all.
    """
    rounds: defaultdict[str, int] = defaultdict(int)
    order = []
    for place, request in enumerate(queue):
        order.append((rounds[request.person], last_turn.get(request.person, -1), place))
        rounds[request.person] += 1
    return [queue[place] for _, _, place in sorted(order)]


async def arrivals(ctx: Ctx, requests: Sequence[Request], source: SourceIO) -> None:
    """Mark every request at the time of its arrival, as far as the times are known beforehand."""
    known = [(request.arrival_s, request) for request in requests if request.arrival_s is not None]
    for arrival_s, request in sorted(known, key=lambda one: one[0]):
        await ctx.until(arrival_s)
        source.arrive([request])


def job_of(request: Request, arrived_s: float, new_tokens: int = 0) -> Job:
    """A request that waits, as a scheduler sees it; `new_tokens` are those of the workload."""
    wanted = new_tokens if request.new_tokens is None else request.new_tokens
    left = wanted - request.emitted
    return Job(request.index, len(request.tokens), 0, left, arrived_s, shape_of(request))


async def _admitted(
    ctx: Ctx,
    alike: Sequence[Request],
    others: Sequence[int],
    source: SourceIO | None,
    scheduler: Scheduler,
) -> int:
    """How many of `alike`, the first in the queue, are served next: at least one, once it has arrived."""
    if source is None:
        if len(alike) == 1:
            return 1
        note, _ = await ctx.recv_noted(ctx.cluster.source_rank, "admitted")
        return int(note[0])
    first_s = source.arrival_s(alike[0])
    if first_s is None:
        raise RunError(f"request {alike[0].index} follows an answer that nobody computes: it never arrives.")
    await ctx.until(first_s)
    known = ((source.arrival_s(request), request) for request in alike)
    jobs = [
        job_of(request, time_s)
        for time_s, request in takewhile(lambda one: one[0] is not None and one[0] <= ctx.now_s, known)
        if time_s is not None
    ]
    count = len(scheduler.next(View(ctx.now_s, tuple(jobs), (), len(alike))).chunks)
    if len(alike) > 1:
        for rank in others:
            ctx.send(source.nothing(), rank, "admitted", (count,))
    return count
