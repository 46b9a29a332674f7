"""Measures how many times as long operations take in native runs as the tables say.

The tables are of passes, operation after operation in one process, in seconds of the processor. In a run they
take wall time, in which a shared machine also serves others, between all that the process of a device does,
and they are 5 to 15 % longer: on the host of docs/results/fidelity.md predictions of whole requests were that
much too fast, for all models and methods alike. The runs take place after each round of passes, because the
machine is faster at one time than at another.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from emulator.calibration.runtime import Run, run_native, spec_of
from emulator.calibration.shapes import drawn_in
from engine.domain.host_times import HostProfile
from engine.domain.trace import Mark, Span
from engine.runs.native import predict_native

MODELS = (("gpt2", 640, 7), ("llama", 1024, 3))
"""Of the sizes of the passes' models, with as many layers as do not fit in the caches."""

ROWS, REQUESTS, TOKENS = 128, 3, 12
MOST = 1.25
"""More than this no quiet machine showed: other work was going on, in which no run is predicted."""


def run_alone(turn: int, directory: Path) -> Run:
    """Run requests to one of `MODELS`, by turns, on one device, which sends no messages, with weights drawn
    in `directory`. Raises `HostError`.
    """
    model = MODELS[turn % len(MODELS)]
    spec = spec_of(model, 1, "single", ROWS, requests=REQUESTS, new_tokens=TOKENS)
    return run_native(spec, drawn=drawn_in(directory, spec.model))


def in_runs(runs: Sequence[Run], profile: HostProfile) -> float:
    """How many times as long operations took in `runs` as `profile` says: the median over prompts and later
    tokens of all of them, `MOST` at most. Each run was in another minute, whose speed it shows.
    """
    ratios = [
        took_s / by_tables_s
        for run in runs
        for took_s, by_tables_s in zip(
            work_s(run.trace), work_s(predict_native(run.prepared, profile).trace), strict=True
        )
    ]
    return min(MOST, statistics.median(ratios))


def work_s(trace: Sequence[Span | Mark]) -> tuple[float, float]:
    """Seconds of a run's operations, those of its prompts and those of later tokens, without its first
    request: in that, processes prepare kernels and memory.
    """
    spans = [item for item in trace if isinstance(item, Span) and item.kind == "compute" and item.request]
    prompts_s = sum(span.end_s - span.start_s for span in spans if not span.token)
    return prompts_s, sum(span.end_s - span.start_s for span in spans if span.token)
