"""Foresees what a long prediction takes: it refuses one whose events would not fit into memory."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import NamedTuple

from engine.domain.errors import SpecError
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.units import human
from engine.runs.predict import Prepared, prepare, simulate

SAMPLE = 20
"""Requests that are simulated to count their events."""

SHORT_ANSWER, LONG_ANSWER = 2, 8
"""Tokens of their answers: what a further token takes is the difference."""

MANY = 2000
"""The number of tokens to predict from which on events are counted first."""

EVENT_BYTES = 800
"""Memory of a span or a mark in a trace, with its share of the report: 550 to 750 were measured."""

TOKEN_BYTES = 40
"""Memory of a token of a prompt."""


class Foresight(NamedTuple):
    """What one request of a prediction takes: events and prompt tokens that are kept, and wall seconds."""

    events: int
    tokens: int
    wall_s: float

    @property
    def bytes(self) -> int:
        return self.events * EVENT_BYTES + self.tokens * TOKEN_BYTES


def is_long(spec: RunSpec) -> bool:
    """Whether a prediction of `spec` is foreseen before it begins: it has many tokens to predict."""
    workload = spec.workload
    return workload.requests * max(1, workload.new_tokens) >= MANY and not workload.is_open


def foreseen(spec: RunSpec) -> Foresight:
    """What a request of `spec` takes, from a few whose answers are short. Raises `SpecError`, `PlanError`."""
    new_tokens, requests = spec.workload.new_tokens, min(SAMPLE, spec.workload.requests)
    some = spec.workload.trace[:: spec.workload.requests // requests][:requests]
    workload = spec.workload.model_copy(update={"requests": requests, "trace": some})
    few = prepare(spec.model_copy(update={"workload": workload, "scenario": Scenario()}))
    long, short = min(new_tokens, LONG_ANSWER), min(new_tokens, SHORT_ANSWER)
    events, wall_s = _played(few, long)
    asked = [new_tokens if one.new_tokens is None else one.new_tokens for one in few.requests]
    if left := sum(max(0, count - long) for count in asked):  # a first token may take more than later ones
        fewer_events, less_s = _played(few, short)
        beyond = left / sum(min(count, long) - min(count, short) for count in asked)
        events += beyond * (events - fewer_events)
        wall_s += beyond * max(0.0, wall_s - less_s)
    tokens = max(len(request.tokens) for request in few.requests)
    return Foresight(math.ceil(events / requests), tokens, wall_s / requests)


def _played(few: Prepared, new_tokens: int) -> tuple[float, float]:
    """The events of these requests with so many tokens each, and how long it took to simulate them."""
    shorter = few.spec.workload.model_copy(update={"new_tokens": new_tokens})
    requests = tuple(
        request.model_copy(update={"new_tokens": min(request.new_tokens or new_tokens, new_tokens)})
        for request in few.requests
    )
    began_s = time.perf_counter()
    spec = few.spec.model_copy(update={"workload": shorter})
    trace, _ = simulate(few._replace(spec=spec, requests=requests))
    return len(trace), time.perf_counter() - began_s


def check_fits(spec: RunSpec, available_bytes: int) -> float:
    """Check that a prediction of `spec` takes no more memory than there is; returns about how many wall
    seconds it takes, 0 for a short one. Raises `SpecError` with the arithmetic.
    """
    if not is_long(spec):
        return 0.0
    each, requests = foreseen(spec), spec.workload.requests
    if requests * each.bytes <= available_bytes:
        return requests * each.wall_s
    most = available_bytes // each.bytes
    field, remedy = "requests", f"at most {most:,} requests"
    if not most:
        most = spec.workload.new_tokens * available_bytes // each.bytes
        field, remedy = "new_tokens", f"at most {most:,} new tokens"
    raise SpecError(
        f"workload.{field}: is {getattr(spec.workload, field):,}, and a prediction keeps {each.events:,} "
        f"events of {EVENT_BYTES} bytes and {each.tokens:,} tokens of {TOKEN_BYTES} for each request, "
        f"{human(requests * each.bytes, 'B')} in all; this machine has {human(available_bytes, 'B')} free: "
        f"ask for {remedy}.",
        [(f"workload.{field}", f"at most {most:,} fit into memory")],
    )


def available_bytes() -> int:
    """Memory that this machine can give away now, without swapping."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    raise AssertionError("every Linux since 3.14 has MemAvailable")
