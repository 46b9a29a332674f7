"""LIME against its baselines on the testbeds of its paper, predicted, beside the published figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from bench.published.lime_testbeds import ENVIRONMENTS, PROMPT_TOKENS, SETTINGS, Testbed
from bench.tables.rows import Table
from engine.domain.errors import PlanError
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark
from engine.domain.units import human_s
from engine.domain.workload import Workload
from engine.runs.predict import prepare, simulate
from engine.strategies.registry import by_rule

NEW_TOKENS, PLAYED_TOKENS = 1024, 6
"""Tokens that plans are made for, and those that are simulated: few, because their time hardly changes."""
PATTERNS = ("sporadic", "bursty")
RATES = {"100 Mbit/s": 1e8, "200 Mbit/s": 2e8}
OUT_OF_TIME_S = {"sporadic": 40.0, "bursty": 15.0}
TENSOR_PARALLEL = ("tpi_llm", "tpi_llm_offload", "galaxy")
PIPELINES = ("pipeline_offload", "gpipe", "edgeshard")
PUBLISHED = {  # section V-B: LIME's speed-up over these baselines on E1 to E3, smallest to largest
    (TENSOR_PARALLEL, "bursty", "100 Mbit/s"): (2.8, 19.2),
    (TENSOR_PARALLEL, "bursty", "200 Mbit/s"): (3.4, 12.0),
    (TENSOR_PARALLEL, "sporadic", "100 Mbit/s"): (2.8, 10.8),
    (TENSOR_PARALLEL, "sporadic", "200 Mbit/s"): (2.5, 7.6),
    (PIPELINES, "bursty", "100 Mbit/s"): (1.9, 10.2),
    (PIPELINES, "bursty", "200 Mbit/s"): (1.9, 10.2),
    (PIPELINES, "sporadic", "100 Mbit/s"): (2.5, 7.6),
    (PIPELINES, "sporadic", "200 Mbit/s"): (1.4, 6.5),
}
SETTING_RIVALS = ("pipeline_offload", "gpipe", "edgeshard", "galaxy", "tpi_llm")


def measure_lime() -> Table:
    rows = (*_speedups(), *_settings())
    title = (
        f"Predicted, planned for {PROMPT_TOKENS} tokens in and {NEW_TOKENS} out. LIME: time per token; a "
        "burst has one request per device, and its time is divided by them. Ours: how many times longer each "
        "baseline takes. Published: the range over E1 to E3 (section V-B), and outcomes (section V-C)."
    )
    return Table(title, ("testbed", "pattern", "links", "LIME", "against", "ours", "published"), rows)


def _speedups() -> Iterator[tuple[str, ...]]:
    for (rivals, pattern, links), (low, high) in PUBLISHED.items():
        for testbed in ENVIRONMENTS:
            ours_s = token_s(testbed, RATES[links], pattern, "lime")
            yield (
                testbed.name,
                pattern,
                links,
                _said(ours_s, pattern),
                ", ".join(rivals),
                ", ".join(_ratio(token_s(testbed, RATES[links], pattern, one), ours_s) for one in rivals),
                f"{low:g} to {high:g}",
            )


def _settings() -> Iterator[tuple[str, ...]]:
    for testbed in SETTINGS:
        for pattern in PATTERNS:
            ours_s = token_s(testbed, 2e8, pattern, "lime")
            rivals = [token_s(testbed, 2e8, pattern, one) for one in SETTING_RIVALS]
            yield (
                testbed.name,
                pattern,
                "200 Mbit/s",
                _said(ours_s, pattern),
                ", ".join(SETTING_RIVALS),
                ", ".join(_outcome(one, ours_s, pattern) for one in rivals),
                f"slower, OOM, OOM, OOM, {'OOT' if pattern == 'sporadic' else 'OOT at the end'}",
            )


def _said(seconds: float | None, pattern: str) -> str:
    if seconds is None:
        return "OOM"
    return "OOT" if seconds > OUT_OF_TIME_S[pattern] else human_s(seconds)


def _ratio(theirs_s: float | None, ours_s: float | None) -> str:
    return "OOM" if theirs_s is None else f"{theirs_s / ours_s:.2f}" if ours_s else "LIME: OOM"


def _outcome(theirs_s: float | None, ours_s: float | None, pattern: str) -> str:
    if theirs_s is not None and theirs_s > OUT_OF_TIME_S[pattern]:
        return "OOT"
    return _ratio(theirs_s, ours_s)


_KNOWN: dict[Any, float | None] = {}


def token_s(testbed: Testbed, bit_per_s: float, pattern: Any, strategy: str) -> float | None:
    """Predicted seconds per token in the steady state; None if there is no plan or the run ends early."""
    key = testbed.name, bit_per_s, pattern, strategy
    if key not in _KNOWN:
        _KNOWN[key] = _predicted_s(testbed, bit_per_s, pattern, strategy)
    return _KNOWN[key]


def _predicted_s(testbed: Testbed, bit_per_s: float, pattern: Any, strategy: str) -> float | None:
    cluster = testbed.cluster(bit_per_s)
    requests = len(cluster.devices) if pattern == "bursty" else 1
    workload = Workload(
        prompt_tokens=PROMPT_TOKENS, new_tokens=NEW_TOKENS, requests=requests, pattern=pattern
    )
    spec = RunSpec(
        cluster=cluster,
        model=testbed.spec_of_model(),
        strategy=strategy,
        params=by_rule(strategy),  # as the paper's baselines
        workload=workload,
    )
    try:
        prepared = prepare(spec)
    except PlanError:
        return None
    played = workload.model_copy(update={"new_tokens": PLAYED_TOKENS})
    trace, outcome = simulate(prepared._replace(spec=spec.model_copy(update={"workload": played})))
    if outcome.kind != "finished":
        return None
    times: defaultdict[int, list[float]] = defaultdict(list)
    for item in trace:
        if isinstance(item, Mark) and item.name == "token_emitted":
            times[item.facts["request"]].append(item.time_s)
    return steady_s(list(times.values())) / requests


def steady_s(times_s: Sequence[Sequence[float]]) -> float:
    """Mean seconds between the tokens of the slowest request, without the first."""
    return max((times[-1] - times[1]) / (len(times) - 2) for times in times_s)
