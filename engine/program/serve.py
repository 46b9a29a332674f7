"""The loop that every device runs in both worlds: it turns requests into forward passes and tokens."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.plan import Plan, Slice
from engine.domain.workload import Request, Workload
from engine.program.ctx import Ctx
from engine.program.iterations import serve_iterations
from engine.program.open_queue import serve_open
from engine.program.queue import serve_queue
from engine.program.strategy import Strategy
from engine.program.wave import Batch, SourceIO, answer, batches_of
from engine.schedulers.registry import scheduler
from engine.schedulers.scheduler import Scheduler


async def serve(
    ctx: Ctx,
    strategy: Strategy,
    plan: Plan,
    workload: Workload,
    requests: Sequence[Request],
    source: SourceIO | None,
) -> None:
    """Answer all `requests`; `source` is None on all other devices."""
    if workload.is_open and _scheduler(strategy, workload).answers_whole:
        await serve_open(ctx, strategy, plan, workload, requests, source)
        return
    if workload.is_queued:
        chosen = _scheduler(strategy, workload)
        serve_in_time = serve_queue if chosen.answers_whole else serve_iterations
        await serve_in_time(ctx, strategy, plan, workload, requests, source, chosen)
        return
    for number, wave in enumerate(waves(strategy.together(plan), workload, requests)):
        if number:
            await strategy.between_waves(ctx, plan)
        await answer(ctx, strategy, plan, wave, workload.new_tokens, source, workload.kv_cache)


def _scheduler(strategy: Strategy, workload: Workload) -> Scheduler:
    """What admits the requests."""
    own = strategy.scheduler if workload.scheduler == "own" else None
    return scheduler(workload.scheduler) if own is None else own


async def go_on(
    ctx: Ctx,
    strategy: Strategy,
    plan: Plan,
    missing: Sequence[Slice],
    workload: Workload,
    requests: Sequence[Request],
    source: SourceIO | None,
) -> None:
    """Continue with a new plan: load the weights `missing` on this device, then answer what is left."""
    for handle in [ctx.load(piece) for piece in missing]:
        await handle
    ctx.mark("reloaded", slices=len(missing))
    await serve(ctx, strategy, plan, workload, requests, source)


def waves(
    together: int | None, workload: Workload, requests: Sequence[Request]
) -> tuple[tuple[Batch, ...], ...]:
    """The requests in the order in which they run. Waves run one by one; the batches of a wave may overlap.

    sporadic: waves of one request. bursty: one wave, of batches of `together` requests (None: of all).
    """
    if workload.pattern == "sporadic":
        return tuple(((request,),) for request in requests)
    return (batches_of(requests, together),)
