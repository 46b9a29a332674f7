"""The requests of a run whose batch changes at step boundaries, at the source: who waits, who runs."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.plan import Phase, Plan
from engine.domain.sampling import Sampling
from engine.domain.workload import Request, Workload
from engine.program.cache_memory import cache_memory
from engine.program.ctx import Ctx, Handle
from engine.program.order import Order
from engine.program.queue import job_of
from engine.program.strategy import SequenceRows
from engine.program.wave import SourceIO, cache_of_request
from engine.schedulers.scheduler import DeviceMemory, Iteration, Job, View


class Pool:
    """All requests that are not answered, at the source: where each of them is. Those that people send while
    the run goes on wait in the source's own queue, where people take turns, and may end at any time.
    """

    def __init__(
        self, ctx: Ctx, plan: Plan, workload: Workload, requests: Sequence[Request], source: SourceIO
    ):
        self.workload, self.source, self.ctx = workload, source, ctx
        known = [] if workload.is_open else list(requests)
        timed = [(one.arrival_s, one.index) for one in known if one.arrival_s is not None]
        self.coming = sorted(timed, reverse=True)  # the next one last
        self.following = [one for one in known if one.arrival_s is None]  # answers to others
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.released: list[int] = []
        self.under_way: dict[Phase, Order] = {}
        self.alarms_s: set[float] = set()
        self.requests = {request.index: request for request in requests}
        self.begun: set[int] = set()
        self.emitted = {request.index: request.emitted for request in requests}
        self.memory = self._memory(plan)

    def _memory(self, plan: Plan) -> tuple[DeviceMemory, ...]:
        longest = max((len(request.tokens) for request in self.requests.values()), default=1)
        chunk = self.workload.chunk_rows
        together = min(self.workload.max_batch, max(1, len(self.requests)))
        if self.workload.is_open:
            longest, together = max(longest, self.workload.prompt_tokens or 0), self.workload.max_batch
        sizes = (1, chunk, max(0, longest - chunk)) if chunk else (together, longest, 0)
        return cache_memory(self.ctx.cluster, self.ctx.model, plan, *sizes)

    @property
    def is_busy(self) -> bool:
        return bool(self.coming or self.following or self.waiting or self.running or self.waits_for_people)

    @property
    def waits_for_people(self) -> bool:
        """Whether requests that nobody knows may still be sent, or wait in the source's queue."""
        return self.workload.is_open and (not self.source.closed or bool(self.source.waiting()))

    @property
    def busy(self) -> frozenset[int]:
        """The requests with rows in a step under way."""
        return frozenset(one.request for order in self.under_way.values() for one in order.sequences)

    def view(self, now_s: float, phase: Phase) -> View:
        """What the scheduler sees: those that have arrived by now join the queue before, and those that have
        ended leave.
        """
        self._drop_ended()
        known = [(self.source.arrival_s(request), request) for request in self.following]
        arrived = [(time_s, one.index) for time_s, one in known if time_s is not None and time_s <= now_s]
        gone = {index for _, index in arrived}
        self.following = [request for request in self.following if request.index not in gone]
        while self.coming and self.coming[-1][0] <= now_s:
            arrived.append(self.coming.pop())
        for time_s, index in sorted(arrived):
            self.waiting.append(job_of(self.requests[index], time_s, self.workload.new_tokens))
        return View(
            now_s,
            (*self.waiting, *self._sent()),
            tuple(self.running),
            self.workload.max_batch,
            self.workload.chunk_rows,
            self.memory,
            phase,
            self.busy,
        )

    def _sent(self) -> list[Job]:
        """The requests in the source's queue, in the order in which they are served."""
        sent = self.source.waiting() if self.workload.is_open else ()
        self.requests |= {request.index: request for request in sent}
        self.emitted |= {request.index: request.emitted for request in sent}
        return [job_of(request, self.source.arrival_s(request) or 0.0) for request in sent]

    def _drop_ended(self) -> None:
        """Forget requests that were cancelled or ended from without, but for rows that are under way."""
        jobs = (*self.waiting, *self.running) if self.workload.is_open else ()
        ended = {job.request for job in jobs if self.source.has_ended(job.request)} - self.busy
        self.released += [job.request for job in self.running if job.request in ended]
        self.waiting = [job for job in self.waiting if job.request not in ended]
        self.running = [job for job in self.running if job.request not in ended]

    def next_arrival_s(self) -> float | None:
        known = [self.source.arrival_s(request) for request in self.following]
        known += [time_s for time_s, _ in self.coming[-1:]]
        return min((time_s for time_s in known if time_s is not None), default=None)

    def begin(self, iteration: Iteration, view: View) -> Order:
        """Admit and preempt as `iteration` says; the order of its step."""
        preempted = [job for job in self.running if job.request in iteration.preempted]
        self.released += iteration.preempted
        self.running = [job for job in self.running if job.request not in iteration.preempted]
        asked = {chunk.request for chunk in iteration.chunks}
        admitted = [job for job in view.waiting if job.request in asked]
        self.waiting = [job for job in self.waiting if job.request not in asked]
        self.waiting[:0] = [job._replace(cached=0) for job in preempted]
        self.running += admitted
        new = [self.requests[job.request] for job in admitted if job.request not in self.begun]
        self.begun.update(request.index for request in new)
        self.source.begin(new)
        known = {job.request: job for job in self.running}
        sequences = tuple(self._rows(known[request], rows) for request, rows in iteration.chunks)
        order = self.under_way[view.phase] = Order(self.take_released(), sequences, self._sampled(new))
        self.ctx.at(sequences[0].request, sequences[0].index)
        self.ctx.mark(
            "step_scheduled",
            requests=[chunk.request for chunk in iteration.chunks],
            rows=[chunk.rows for chunk in iteration.chunks],
            preempted=list(iteration.preempted),
            waiting=len(view.waiting) - len(admitted) + len(preempted),
            **({} if view.phase == "both" else {"phase": view.phase}),
        )
        return order

    def _sampled(self, new: Sequence[Request]) -> tuple[tuple[int, Sampling], ...]:
        """How tokens of `new` requests are drawn, where the other devices do not know it."""
        known = ((request.index, request.sampling) for request in new if self.workload.is_open)
        return tuple((request, sampling) for request, sampling in known if sampling is not None)

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
        busy = self.busy
        released = tuple(request for request in self.released if request not in busy)
        self.released = [request for request in self.released if request in busy]
        return released

    def through(self, phase: Phase) -> None:
        """The step of `phase` is through on all devices: steps of others may take up its requests."""
        del self.under_way[phase]
        self.source.tell_change()

    def change(self) -> Handle:
        """Done when another step is through, or when another request has arrived."""
        coming_s = self.next_arrival_s()
        if coming_s is not None and coming_s not in self.alarms_s:
            self.alarms_s.add(coming_s)
            self.ctx.spawn(self._alarm(coming_s))
        return self.source.queue_change()

    async def _alarm(self, time_s: float) -> None:
        await self.ctx.until(time_s)
        self.source.tell_change()

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
