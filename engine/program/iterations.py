"""Requests that join and leave the batch at step boundaries, as the run's scheduler says (Orca's iterations).

The source asks the scheduler before each step, and tells all devices with a short message whose rows run and
which KV caches are dropped before; then all run the strategy's pass over these rows. A scheduler with several
phases has one such loop for each on every device, and the loops share the source's pool of requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.domain.errors import RunError, SpecError
from engine.domain.plan import Phase, Plan
from engine.domain.sampling import Sampling
from engine.domain.workload import Request, SchedulerName, Workload
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx
from engine.program.open_queue import enqueued
from engine.program.order import Order, tell, told
from engine.program.pool import Pool
from engine.program.queue import arrivals, others_of
from engine.program.strategy import Done, Step, Strategy, step_of_rows
from engine.program.wave import SourceIO, cache_of_request
from engine.schedulers.registry import scheduler as scheduler_named
from engine.schedulers.scheduler import Scheduler, complaint_about

THROUGH = "step.through"
"""The tag of the message of a device that a step is through there."""


async def serve_iterations(
    ctx: Ctx,
    strategy: Strategy,
    plan: Plan,
    workload: Workload,
    requests: Sequence[Request],
    source: SourceIO | None,
    scheduler: Scheduler,
) -> None:
    """Answer `requests`, each not before it has arrived, and of an open workload those that the source gets
    later, until it is closed.
    """
    how = {one.index: one.sampling for one in requests if one.sampling is not None}
    run = _Run(ctx, strategy, plan, how, scheduler.phases, others_of(ctx, strategy, plan))
    if source is not None:
        source.open()
        ctx.spawn((enqueued if workload.is_open else arrivals)(ctx, requests, source))
        pool = Pool(ctx, plan, workload, requests, source)
        loops = [_lead(run, phase, source, pool, scheduler) for phase in scheduler.phases]
    else:
        loops = [_follow(run, phase) for phase in scheduler.phases if ctx.rank in run.group(phase)]
    begun = [ctx.spawn(loop) for loop in loops[1:]]
    for loop in loops[:1]:
        await loop
    for handle in begun:
        await handle


class _Run(NamedTuple):
    """What all loops of a device share. `how` says how the tokens of requests are drawn at random."""

    ctx: Ctx
    strategy: Strategy
    plan: Plan
    how: dict[int, Sampling]
    phases: tuple[Phase, ...]
    others: Sequence[int]

    def group(self, phase: Phase) -> list[int]:
        """Ranks beside the source that take part in the steps of `phase`. In those over prompts all do: some
        compute, others get the KV caches.
        """
        if phase != "decode":
            return list(self.others)
        ranks = {work.device for work in self.plan.work if work.phase != "prefill"}
        return [rank for rank in self.others if rank in ranks]

    def witnesses(self, phase: Phase) -> list[int]:
        """Ranks that tell the source when a step of `phase` is through: before, steps of another one could
        find KV caches there that lack rows.
        """
        return self.group("decode") if len(self.phases) > 1 and phase == "prefill" else []

    def drop(self, released: Sequence[int]) -> None:
        for request in released:
            self.ctx.release(cache_of_request(request))

    async def step(self, order: Order, tokens: Tensor | None, done: Done) -> None:
        """The step of `order` on this device."""
        self.drop(order.released)
        self.how.update(order.sampled)
        step = step_of_rows(order.of(self.how).sequences)
        await self.strategy.forward_all(self.ctx, self.plan, [step], [tokens], done)


async def _lead(run: _Run, phase: Phase, source: SourceIO, pool: Pool, scheduler: Scheduler) -> None:
    """All steps of `phase` at the source."""
    ctx = run.ctx
    while (order := await _next(ctx, pool, scheduler, phase)).sequences:
        for rank in run.group(phase):
            tell(ctx, rank, source, phase, order)

        def done(step: Step, result: Tensor, order: Order = order) -> None:
            source.next_tokens(step, result)
            pool.passed(order)

        await run.step(order, source.tokens_of(step_of_rows(order.sequences)), done)
        for rank in run.witnesses(phase):
            await ctx.recv(rank, THROUGH)
        pool.through(phase)
    for rank in run.group(phase):
        tell(ctx, rank, source, phase, order)
    run.drop(order.released)


async def _follow(run: _Run, phase: Phase) -> None:
    """All steps of `phase` on another device."""
    ctx = run.ctx

    def done(step: Step, result: Tensor) -> None:
        raise RunError("only the source gets results")

    order, nothing = await told(ctx, phase)
    while order.sequences:
        await run.step(order, None, done)
        if ctx.rank in run.witnesses(phase):
            ctx.send(nothing, ctx.cluster.source_rank, THROUGH)
        order, nothing = await told(ctx, phase)
    run.drop(order.released)


async def _next(ctx: Ctx, pool: Pool, scheduler: Scheduler, phase: Phase) -> Order:
    """What runs next of `phase`, as soon as something does; nothing at the end of all requests."""
    while pool.is_busy:
        view = pool.view(ctx.now_s, phase)
        iteration = scheduler.next(view)
        complaint = complaint_about(iteration, view)
        if complaint is not None:
            raise RunError(f"The scheduler {scheduler.name} {complaint}, at {ctx.now_s:.3f} s.")
        if iteration.chunks:
            return pool.begin(iteration, view)
        others = (pool.view(ctx.now_s, other) for other in scheduler.phases if other != phase)
        if pool.under_way or any(scheduler.next(other).chunks for other in others):
            await pool.change()
            continue
        if pool.waits_for_people and not (view.running or view.waiting):
            await pool.change()
            continue
        if view.running or (coming_s := pool.next_arrival_s()) is None:
            raise RunError(
                f"The scheduler {scheduler.name} runs nothing at {ctx.now_s:.3f} s, where "
                f"{len(view.running)} requests run, {len(view.waiting)} wait and no other arrives before."
            )
        await ctx.until(coming_s)
    return Order(pool.take_released(), ())


def chosen_scheduler(strategy: Strategy, plan: Plan, workload: Workload) -> tuple[SchedulerName, str]:
    """The scheduler that the workload means, and in words why it is none that takes requests in while others
    are answered, where any would do (auto).
    """
    if workload.scheduler != "auto":
        return workload.scheduler, ""
    if strategy.scheduler is not None:
        return "own", ""
    if strategy.why_not_apart(plan) is None:
        return "disaggregated", ""
    reason = strategy.why_not_ragged(plan)
    if reason is None:
        return "continuous", ""
    return "fcfs", f"Requests are admitted first come, first served: {reason}"


def check_scheduler(strategy: Strategy, plan: Plan, workload: Workload) -> None:
    """Check that the strategy takes the steps of the workload's scheduler, or of its own where it has one and
    the workload leaves it open; raises `SpecError`.
    """
    own = strategy.scheduler
    if workload.scheduler == "own" and own is None:
        lacking = f"{strategy.name} has no scheduler of its own (`Strategy.scheduler`)"
        raise SpecError(
            f"workload.scheduler is own, and {lacking}: choose auto or another.",
            [("workload.scheduler", lacking)],
        )
    if workload.scheduler == "auto" and own is None:
        return
    chosen = (
        own
        if own is not None and workload.scheduler in ("auto", "own")
        else scheduler_named(workload.scheduler)
    )
    if chosen.answers_whole:
        return
    if len(chosen.phases) > 1:
        does, reason = "computes prompts and tokens at the same time", strategy.why_not_apart(plan)
    else:
        does, reason = "takes in requests while others are answered", strategy.why_not_ragged(plan)
    if reason is not None:
        raise SpecError(
            f"workload.scheduler is {chosen.name}, which {does}, and {reason} "
            "Choose another method, or fcfs.",
            [("workload.scheduler", reason)],
        )
