"""Times what it costs to decide at each step which requests run in it: with shapes, and with real tensors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import topologies
from bench.tables.rows import Table
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.units import human_s
from engine.domain.workload import SchedulerName, Workload
from engine.models import catalogue
from engine.program import iterations
from engine.program.pool import Pool
from engine.runs.predict import prepare, simulate
from engine.schedulers.registry import scheduler

CLUSTER, MODEL = "lab-4", "demo-lm"
METHODS: tuple[tuple[SchedulerName, str], ...] = (
    ("continuous", "megatron"),
    ("chunked", "megatron"),
    ("disaggregated", "disaggregated"),
)
SIMULATED, CALCULATED = (100, 10_000), 20
"""Requests with shapes alone, and with real tensors."""
RATE_PER_S = 4.0
"""More than the cluster answers: requests wait, and a scheduler has most to look at."""
WORKLOAD = Workload(
    prompt_tokens=64,
    new_tokens=16,
    pattern="poisson",
    rate_per_s=RATE_PER_S,
    max_batch=8,
)


class Measured(NamedTuple):
    """Steps of one run, the processor's seconds of all, those of admission, and the run's virtual time."""

    steps: int
    run_s: float
    admission_s: float
    virtual_s: float


def measure_admission() -> Table:
    cases = [(name, method, count, False) for name, method in METHODS for count in SIMULATED]
    cases += [(name, method, CALCULATED, True) for name, method in METHODS]
    rows = tuple(_row(*case) for case in cases)
    columns = (
        "scheduler",
        "method",
        "requests",
        "tensors",
        "steps",
        "admission of a step",
        "of the process's time",
        "a step on the cluster",
        "admission's part of it",
    )
    title = (
        f"What admission costs: {MODEL} on {CLUSTER}, {RATE_PER_S:g} Poisson arrivals a second, prompts of "
        f"{WORKLOAD.prompt_tokens} and answers of {WORKLOAD.new_tokens} tokens, at most "
        f"{WORKLOAD.max_batch} at once. It is the same code in all worlds. With shapes there is little else "
        "to do; a step on the cluster is what a real run would take, in virtual time."
    )
    return Table(title, columns, rows)


def _row(name: SchedulerName, method: str, requests: int, real: bool) -> tuple[str, ...]:
    found = _measured(name, method, requests, real)
    admission_s, step_s = found.admission_s / found.steps, found.virtual_s / found.steps
    return (
        name,
        method,
        f"{requests:,}",
        "real" if real else "shapes",
        f"{found.steps:,}",
        human_s(admission_s),
        f"{found.admission_s / found.run_s:.1%}",
        human_s(step_s),
        f"{admission_s / step_s:.2%}",
    )


def _measured(name: SchedulerName, method: str, requests: int, real: bool) -> Measured:
    model, weights = catalogue.resolve(MODEL, None)
    workload = WORKLOAD.model_copy(update={"scheduler": name, "requests": requests})
    prepared = prepare(
        RunSpec(
            cluster=topologies.load(CLUSTER), model=model, weights=weights, strategy=method, workload=workload
        )
    )
    trace: list[Span | Mark] = []
    with _timed(name) as spent_s:
        began_s = time.process_time()
        if real:
            from engine.runs.calculate import outputs_of  # it loads torch

            outputs_of(prepared, trace)
        else:
            trace = list(simulate(prepared)[0])
        run_s = time.process_time() - began_s
    steps = sum(1 for item in trace if isinstance(item, Mark) and item.name == "step_scheduled")
    return Measured(steps, run_s, spent_s[0], _busy_s(trace))


def _busy_s(trace: list[Span | Mark]) -> float:
    """Virtual time from the first step to the end of the last one."""
    begun = [item.time_s for item in trace if isinstance(item, Mark) and item.name == "step_scheduled"]
    return max(item.end_s for item in trace if isinstance(item, Span)) - begun[0]


@contextmanager
def _timed(name: SchedulerName) -> Iterator[list[float]]:
    """Count the processor's seconds of what a step's admission calls: the view, the choice, its check, the
    order.
    """
    spent_s = [0.0]

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            began_s = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                spent_s[0] += time.perf_counter() - began_s

        return call

    chooser = type(scheduler(name))
    with ExitStack() as patches:
        for place, function in (
            (Pool, "view"),
            (Pool, "begin"),
            (Pool, "passed"),
            (chooser, "next"),
            (iterations, "complaint_about"),
        ):
            patches.enter_context(patch.object(place, function, timed(getattr(place, function))))
        yield spent_s
