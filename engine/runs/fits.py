"""Refuses a prediction whose events would not fit into this machine's memory, before it begins."""

from __future__ import annotations

import math
from pathlib import Path

from engine.domain.errors import SpecError
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.units import human
from engine.runs.predict import prepare, simulate

SAMPLE = 20
"""Requests that are simulated to count their events."""

MANY = 2000
"""The number of requests from which on events are counted first."""

EVENT_BYTES = 700
"""Memory of a span or a mark in a trace, with its share of the report."""

TOKEN_BYTES = 40
"""Memory of a token of a prompt."""


def check_fits(spec: RunSpec, available_bytes: int) -> None:
    """Check that a prediction of `spec` takes no more memory than there is; raises `SpecError` with the
    arithmetic.
    """
    requests = spec.workload.requests
    if requests < MANY or spec.workload.is_open:
        return
    workload = spec.workload.model_copy(update={"requests": SAMPLE})
    few = prepare(spec.model_copy(update={"workload": workload, "scenario": Scenario()}))
    trace, _ = simulate(few)
    events = math.ceil(len(trace) / SAMPLE)
    tokens = max(len(request.tokens) for request in few.requests)
    each_bytes = events * EVENT_BYTES + tokens * TOKEN_BYTES
    if requests * each_bytes <= available_bytes:
        return
    raise SpecError(
        f"workload.requests: is {requests:,}, and a prediction keeps {events:,} events of {EVENT_BYTES} "
        f"bytes and {tokens:,} tokens of {TOKEN_BYTES} for each, {human(requests * each_bytes, 'B')} in all; "
        f"this machine has {human(available_bytes, 'B')} free: ask for at most "
        f"{available_bytes // each_bytes:,} requests, which show as much.",
        [("workload.requests", f"at most {available_bytes // each_bytes:,} fit into memory")],
    )


def available_bytes() -> int:
    """Memory that this machine can give away now, without swapping."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    raise AssertionError("every Linux since 3.14 has MemAvailable")
