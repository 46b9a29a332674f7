"""Requests that join and leave the batch at step boundaries, as the run's scheduler says (Orca's iterations).

The source asks the scheduler before each step, and tells all devices with a short message whose rows run and
which KV caches are dropped before; then all run the strategy's pass over these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.domain.errors import RunError, SpecError
from engine.domain.plan import Plan
from engine.domain.workload import Request, Workload
from engine.ops.tensors import Tensor
from engine.program.cache_memory import cache_memory
from engine.program.ctx import Ctx
from engine.program.frames import MAX_NOTE
from engine.program.queue import arrivals, job_of, others_of
from engine.program.strategy import SequenceRows, Step, Strategy, step_of_rows
from engine.program.wave import SourceIO, cache_of_request
from engine.schedulers.registry import scheduler as scheduler_named
from engine.schedulers.scheduler import (
    DeviceMemory,
    Iteration,
    Job,
    Scheduler,
    View,
    complaint_about,
)

FIELDS_PER_SEQUENCE = 5


class Order(NamedTuple):
    """What the source tells before a step: the requests whose caches are dropped, and whose rows run. Without
    rows there is no step, and no other one comes.
    """

    released: tuple[int, ...]
    sequences: tuple[SequenceRows, ...]

    def as_numbers(self) -> tuple[int, ...]:
        rows = ((one.request, one.start, one.rows, one.index, int(one.answers)) for one in self.sequences)
        return (len(self.released), *self.released, *(number for fields in rows for number in fields))

    def of(self, requests: Sequence[Request]) -> Order:
        """The same with what each device knows of `requests`: how their tokens are drawn."""
        how = {one.index: one.sampling for one in requests if one.sampling is not None}
        if not how:
            return self
        rows = [one.model_copy(update={"sampling": how.get(one.request)}) for one in self.sequences]
        return self._replace(sequences=tuple(rows))

    @classmethod
    def of_numbers(cls, numbers: Sequence[int]) -> Order:
        first = 1 + numbers[0]
        return cls(
            tuple(numbers[1:first]),
            tuple(
                SequenceRows(
                    request=request,
                    cache=cache_of_request(request),
                    start=start,
                    rows=rows,
                    index=index,
                    answers=bool(answers),
                )
                for request, start, rows, index, answers in _in_parts(numbers[first:], FIELDS_PER_SEQUENCE)
            ),
        )


async def serve_iterations(
    ctx: Ctx,
    strategy: Strategy,
    plan: Plan,
    workload: Workload,
    requests: Sequence[Request],
    source: SourceIO | None,
    scheduler: Scheduler,
) -> None:
    """Answer `requests`, each not before it has arrived."""
    others = others_of(ctx, strategy, plan)
    if source is not None:
        ctx.spawn(arrivals(ctx, requests, source))
        pool = _Pool(ctx, plan, workload, requests, source)
        while (order := await _next(ctx, pool, scheduler)).sequences:
            for rank in others:
                _tell(ctx, rank, source, order)
            await _run(ctx, strategy, plan, order.of(requests), source, pool)
        for rank in others:
            _tell(ctx, rank, source, order)
        for request in order.released:
            ctx.release(cache_of_request(request))
    elif ctx.rank in others:
        while (order := await _told(ctx)).sequences:
            await _run(ctx, strategy, plan, order.of(requests), None, None)
        for request in order.released:
            ctx.release(cache_of_request(request))


async def _run(
    ctx: Ctx,
    strategy: Strategy,
    plan: Plan,
    order: Order,
    source: SourceIO | None,
    pool: _Pool | None,
) -> None:
    """One step on this device."""
    for request in order.released:
        ctx.release(cache_of_request(request))
    step = step_of_rows(order.sequences)

    def done(step: Step, result: Tensor) -> None:
        assert source is not None and pool is not None, "only the source gets results"
        source.next_tokens(step, result)
        pool.passed(order)

    tokens = None if source is None else source.tokens_of(step)
    await strategy.forward_all(ctx, plan, [step], [tokens], done)


async def _next(ctx: Ctx, pool: _Pool, scheduler: Scheduler) -> Order:
    """What runs next, as soon as something does; nothing at the end of all requests."""
    while pool.is_busy:
        view = pool.view(ctx.now_s)
        iteration = scheduler.next(view)
        complaint = complaint_about(iteration, view)
        if complaint is not None:
            raise RunError(f"The scheduler {scheduler.name} {complaint}, at {ctx.now_s:.3f} s.")
        if iteration.chunks:
            return pool.begin(iteration, view)
        if view.running or (coming_s := pool.next_arrival_s()) is None:
            raise RunError(
                f"The scheduler {scheduler.name} runs nothing at {ctx.now_s:.3f} s, where "
                f"{len(view.running)} requests run, {len(view.waiting)} wait and no other arrives before."
            )
        await ctx.until(coming_s)
    return Order(pool.take_released(), ())


class _Pool:
    """All requests that are not answered, at the source: where each of them is."""

    def __init__(
        self, ctx: Ctx, plan: Plan, workload: Workload, requests: Sequence[Request], source: SourceIO
    ):
        self.workload, self.source, self.ctx = workload, source, ctx
        self.coming = list(requests)
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.released: list[int] = []
        self.requests = {request.index: request for request in requests}
        self.begun: set[int] = set()
        self.emitted = {request.index: request.emitted for request in requests}
        self.memory = self._memory(plan)

    def _memory(self, plan: Plan) -> tuple[DeviceMemory, ...]:
        longest = max((len(request.tokens) for request in self.requests.values()), default=1)
        chunk = self.workload.chunk_rows
        together = min(self.workload.max_batch, max(1, len(self.requests)))
        sizes = (1, chunk, max(0, longest - chunk)) if chunk else (together, longest, 0)
        return cache_memory(self.ctx.cluster, self.ctx.model, plan, *sizes)

    @property
    def is_busy(self) -> bool:
        return bool(self.coming or self.waiting or self.running)

    def view(self, now_s: float) -> View:
        """What the scheduler sees: those that have arrived by now join the queue before."""
        known = [(self.source.arrival_s(request), request) for request in self.coming]
        arrived = [(time_s, one.index) for time_s, one in known if time_s is not None and time_s <= now_s]
        for time_s, index in sorted(arrived):
            self.waiting.append(job_of(self.requests[index], time_s, self.workload.new_tokens))
        gone = {index for _, index in arrived}
        self.coming = [request for request in self.coming if request.index not in gone]
        return View(
            now_s,
            tuple(self.waiting),
            tuple(self.running),
            self.workload.max_batch,
            self.workload.chunk_rows,
            self.memory,
        )

    def next_arrival_s(self) -> float | None:
        known = [self.source.arrival_s(request) for request in self.coming]
        return min((time_s for time_s in known if time_s is not None), default=None)

    def begin(self, iteration: Iteration, view: View) -> Order:
        """Admit and preempt as `iteration` says; the order of its step."""
        preempted = [job for job in self.running if job.request in iteration.preempted]
        self.released += iteration.preempted
        self.running = [job for job in self.running if job.request not in iteration.preempted]
        asked = {chunk.request for chunk in iteration.chunks}
        admitted = [job for job in self.waiting if job.request in asked]
        self.waiting = [job for job in self.waiting if job.request not in asked]
        self.waiting[:0] = [job._replace(cached=0) for job in preempted]
        self.running += admitted
        new = [self.requests[job.request] for job in admitted if job.request not in self.begun]
        self.begun.update(request.index for request in new)
        self.source.begin(new)
        known = {job.request: job for job in self.running}
        sequences = tuple(self._rows(known[request], rows) for request, rows in iteration.chunks)
        self.ctx.at(sequences[0].request, sequences[0].index)
        self.ctx.mark(
            "step_scheduled",
            requests=[chunk.request for chunk in iteration.chunks],
            rows=[chunk.rows for chunk in iteration.chunks],
            preempted=list(iteration.preempted),
            waiting=len(self.waiting),
        )
        return Order(self.take_released(), sequences)

    def _rows(self, job: Job, rows: int) -> SequenceRows:
        return SequenceRows(
            request=job.request,
            cache=cache_of_request(job.request),
            start=job.cached,
            rows=rows,
            index=self.emitted[job.request],
            answers=rows == job.new_rows,
        )

    def take_released(self) -> tuple[int, ...]:
        """The requests whose caches no device needs any more."""
        released, self.released = tuple(self.released), []
        return released

    def passed(self, order: Order) -> None:
        """The rows of `order` have passed through the model, and who answers has its next token."""
        passed = {one.request: one for one in order.sequences}
        left = []
        for job in self.running:
            one = passed.get(job.request)
            if one is not None:
                job = job._replace(cached=job.cached + one.rows)
                if one.answers:
                    self.emitted[job.request] += 1
                    job = job._replace(rows=job.rows + 1, left=job.left - 1)
            if job.left and not self.source.has_ended(job.request):
                left.append(job)
                continue
            self.source.finish(job.request)
            self.released.append(job.request)
        self.running = left


def _tell(ctx: Ctx, rank: int, source: SourceIO, order: Order) -> None:
    """Send `order` to device `rank`, in as many notes as it takes; the first number says how many follow."""
    numbers = order.as_numbers()
    for part in _in_parts((len(numbers), *numbers), MAX_NOTE):
        ctx.send(source.nothing(), rank, "step", part)


def _in_parts(numbers: Sequence[int], size: int) -> list[tuple[int, ...]]:
    return [tuple(numbers[start : start + size]) for start in range(0, len(numbers), size)]


async def _told(ctx: Ctx) -> Order:
    """The next order of the source."""
    note, _ = await ctx.recv_noted(ctx.cluster.source_rank, "step")
    count, *numbers = note
    while len(numbers) < count:
        note, _ = await ctx.recv_noted(ctx.cluster.source_rank, "step")
        numbers += note
    return Order.of_numbers(numbers)


def check_scheduler(strategy: Strategy, plan: Plan, workload: Workload) -> None:
    """Check that the strategy takes the steps of the workload's scheduler; raises `SpecError`."""
    chosen = scheduler_named(workload.scheduler)
    reason = None if chosen.answers_whole else strategy.why_not_ragged(plan)
    if reason is not None:
        raise SpecError(
            f"workload.scheduler is {chosen.name}, which takes in requests while others are answered, and "
            f"{reason} Choose another method, or fcfs.",
            [("workload.scheduler", reason)],
        )
