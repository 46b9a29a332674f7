"""The contract of a scheduler: a pure choice at each step boundary of which rows of which requests run next.

The source asks it in both worlds. What it sees and what it answers are frozen values without any tensor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from engine.domain.plan import Phase


class Job(NamedTuple):
    """A request as a scheduler sees it.

    `rows` are its tokens so far, prompt and answer, and `cached` those of them that have passed through the
    model: with the last of them comes the next token. `left` tokens of the answer are still to come, this one
    included.
    """

    request: int
    rows: int
    cached: int
    left: int
    arrived_s: float
    shape: tuple[int, int, int | None] = (0, 0, None)
    """What requests that are answered side by side have in common (`wave.shape_of`)."""

    @property
    def new_rows(self) -> int:
        """Rows that its next token needs: 1 while it decodes, in the prefill what is left of the prompt."""
        return self.rows - self.cached

    @property
    def decodes(self) -> bool:
        """Whether its next step is over its newest token alone."""
        return self.cached > 0 and self.new_rows == 1

    @property
    def most_rows(self) -> int:
        """Rows in its KV cache at the end of its answer: the last token is not fed back."""
        return self.rows + self.left - 1


class DeviceMemory(NamedTuple):
    """Room for KV caches on one device: a row of a sequence takes `row_bytes` there, and all caches together
    at most `cache_bytes`.
    """

    device: str
    cache_bytes: int
    row_bytes: int


class View(NamedTuple):
    """What a scheduler knows at a step boundary.

    `waiting` have arrived and have no rows in a cache, in the order of arrival (after a preemption: first);
    `running` were admitted, in the order of admission. At most `max_batch` may run at once, and a step has at
    most `chunk_tokens` rows where prompts are divided.

    Of a scheduler with several `phases` it is a step of `phase` that may begin, and of the running requests
    those in `busy` have rows in a step of another phase that is under way.
    """

    now_s: float
    waiting: tuple[Job, ...]
    running: tuple[Job, ...]
    max_batch: int
    chunk_tokens: int = 0
    memory: tuple[DeviceMemory, ...] = ()
    phase: Phase = "both"
    busy: frozenset[int] = frozenset()

    @property
    def cache_rows(self) -> int | None:
        """Rows of all KV caches for which every device has room; None where none keeps any."""
        return min((one.cache_bytes // one.row_bytes for one in self.memory if one.row_bytes), default=None)


class Chunk(NamedTuple):
    """The next `rows` rows of a request: all that are new, or in a prefill fewer."""

    request: int
    rows: int


class Iteration(NamedTuple):
    """One step: chunks that run together, in this order.

    A waiting request with a chunk is admitted. The caches of `preempted` ones are dropped before, and all
    their tokens so far computed again later; they wait before all others.
    """

    chunks: tuple[Chunk, ...] = ()
    preempted: tuple[int, ...] = ()


class Scheduler(ABC):
    """Frozen: what it answers depends on its view alone."""

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str] = ""
    summary: ClassVar[str]
    answers_whole: ClassVar[bool] = False
    """Whether requests that are admitted together are answered to the end before it is asked again; then all
    have one `shape`. Else it is asked at each step, which needs a method that takes ragged batches.
    """
    phases: ClassVar[tuple[Phase, ...]] = ("both",)
    """Of which steps one each may be under way at the same time: steps over whole prompts (prefill) and over
    one new token of each request (decode), or steps with both. It is asked at the end of each one's step.
    """

    @abstractmethod
    def next(self, view: View) -> Iteration:
        """What runs next; no chunks: nothing, until another request arrives."""


def complaint_about(iteration: Iteration, view: View) -> str | None:
    """What `iteration` does that no scheduler may, in words; None if it may be run."""
    known = {job.request: job for job in (*view.waiting, *view.running)}
    running = {job.request for job in view.running}
    asked = [chunk.request for chunk in iteration.chunks]
    if wrong := [request for request in (*asked, *iteration.preempted) if request in view.busy]:
        return f"runs or preempts request {wrong[0]}, which is in a step that is under way"
    if wrong := [request for request in iteration.preempted if request not in running]:
        return f"preempts request {wrong[0]}, which does not run"
    if wrong := [request for request in asked if request not in known or request in iteration.preempted]:
        return f"runs rows of request {wrong[0]}, which neither waits nor runs"
    if wrong := [request for request in asked if asked.count(request) > 1]:
        return f"has two chunks of request {wrong[0]}"
    for request, rows in iteration.chunks:
        if not 0 < rows <= known[request].new_rows:
            return f"runs {rows} rows of request {request}, which has {known[request].new_rows} new ones"
        if view.phase != "both" and known[request].decodes != (view.phase == "decode"):
            return f"runs rows of request {request} in a step of the phase {view.phase}"
        if view.phase == "prefill" and rows < known[request].new_rows:
            return f"divides the prompt of request {request}, which passes in one step of the phase prefill"
    in_work = len((running | set(asked)) - set(iteration.preempted))
    if in_work > view.max_batch:
        return f"has {in_work} requests in work, and max_batch is {view.max_batch}"
    return None
