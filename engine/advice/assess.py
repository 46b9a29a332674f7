"""Assess one strategy: plan for the whole workload, simulate the first tokens of it, and say what limits it.

The figures of later tokens follow from the simulated ones: a decode step takes as long as the last simulated
one of its request (the first ones of a burst wait for the prompts of others), and KV caches grow by a row per
token. A method that drafts gives several tokens at once, by rounds: its answers are simulated to their end,
or as far as `DRAFTED_TOKENS` go, and a later token takes what the simulated ones do on average. LIME's
changes of plan in the course of a long answer are therefore not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from engine.advice.limits import limit_of, reason_for
from engine.advice.values import Assessment, Objective
from engine.domain.errors import EdgeLoomError
from engine.domain.plan import Plan
from engine.domain.report import DeviceReport, RequestReport
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request, Workload
from engine.ops.sizes import kv_bytes_per_row
from engine.reports.fold import fold_devices, fold_links, fold_requests
from engine.runs.predict import Prepared, prepare, simulate
from engine.runs.uncertainty import ENDS, End, at_end, basis_of
from engine.strategies.planner.choice import WORTH_NAMING
from engine.strategies.registry import by_best, strategy

SIMULATED_TOKENS = 3
"""How many tokens of an answer are simulated: the first, which ends the prefill, and two decode steps; of a
large run one decode step.
"""
DRAFTED_TOKENS = 256
"""How many tokens of a method that drafts are simulated, of all answers together."""
OF_TIME: tuple[Objective, ...] = ("first_token_s", "per_token_s", "total_s", "tokens_per_s")
LARGE = 128
"""The number of layers × devices from which a run is large."""


class _Played(NamedTuple):
    """The simulated beginning of a run of `spec`: `tokens` of every answer, of `answers` in all."""

    spec: RunSpec
    plan: Plan
    tokens: int
    answers: tuple[int, ...]
    spans: list[Span]
    marks: list[Mark]


def shortened(spec: RunSpec) -> Workload:
    """The part of a workload that is simulated: all requests of a burst, one of several, the first tokens;
    without KV caches all tokens.
    """
    workload = spec.workload
    most = SIMULATED_TOKENS - (spec.model.num_layers * len(spec.cluster.devices) > LARGE)
    if strategy(spec.strategy).drafts:
        most = max(most, DRAFTED_TOKENS // workload.together)
    if not workload.kv_cache:  # every token takes longer than the one before it
        most = workload.new_tokens
    return workload.model_copy(
        update={"new_tokens": min(workload.new_tokens, most), "requests": workload.together}
    )


def assess(spec: RunSpec) -> Assessment:
    """How a strategy would do. Never raises an `EdgeLoomError`: a strategy without a plan is assessed by its
    reason, which also says what its best planner would give where its paper's is slower.
    """
    return _with_best_planner(spec, ())


def assess_with_interval(spec: RunSpec) -> Assessment:
    """`assess` a run, and its plan once more with boards at both ends of their rates, where these are
    uncertain.
    """
    return _with_best_planner(spec, ENDS)


def _with_best_planner(spec: RunSpec, ends: Sequence[End]) -> Assessment:
    found = _assess(spec, ends)
    params = by_best(spec.strategy, spec.params)
    if params is None:
        return found
    best = _assess(spec.model_copy(update={"params": params}), ())
    if best.total_s is None or (found.total_s or inf) <= WORTH_NAMING * best.total_s:
        return found
    gain = "It has a plan with planner=best."
    if found.total_s is not None:
        gain = f"A better split (planner=best) would save {saved(best.total_s, found.total_s)} of the time."
    reason = f"{found.reason} {gain}"
    return found.model_copy(update={"reason": reason, "best_planner_s": best.total_s})


def saved(less: float, of: float) -> str:
    """`saved(3, 4)` → `"25 %"`, never all of it."""
    return f"{min(99, round(100 * (1 - less / of)))} %"


def _assess(spec: RunSpec, ends: Sequence[End]) -> Assessment:
    lossless = strategy(spec.strategy).lossless
    try:
        prepared = prepare(spec)
        short = spec.model_copy(update={"workload": shortened(prepared.spec)})
        requests = prepared.requests[: short.workload.requests]
        cut = tuple(_cut(request, short.workload.new_tokens) for request in requests)
        trace, outcome = simulate(Prepared(short, cut, prepared.plan))
    except EdgeLoomError as error:
        return Assessment(strategy=spec.strategy, lossless=lossless, reason=_own_words(spec, str(error)))
    lossless = not strategy(spec.strategy).is_lossy(prepared.plan)
    if outcome.kind != "finished":
        return Assessment(strategy=spec.strategy, lossless=lossless, reason=outcome.sentence)
    played = _Played(
        spec=spec,
        plan=prepared.plan,
        tokens=short.workload.new_tokens,
        answers=tuple(spec.workload.new_tokens if r.new_tokens is None else r.new_tokens for r in requests),
        spans=[item for item in trace if isinstance(item, Span)],
        marks=[item for item in trace if isinstance(item, Mark)],
    )
    found = _assessment(played, lossless)
    basis = basis_of(spec, found.devices) if ends else ""
    if not basis:
        return found
    fast, slow = (_figures(played, Prepared(short, cut, prepared.plan), end) for end in ends)
    return found.model_copy(update={"basis": basis, "fast": fast, "slow": slow})


def _figures(played: _Played, prepared: Prepared, end: End) -> dict[Objective, float]:
    """What depends on time, with boards at one end of their rates; nothing if the run does not finish so."""
    trace, outcome = simulate(prepared._replace(spec=at_end(prepared.spec, end)))
    if outcome.kind != "finished":
        return {}
    again = played._replace(
        spans=[item for item in trace if isinstance(item, Span)],
        marks=[item for item in trace if isinstance(item, Mark)],
    )
    found = _assessment(again, True)
    return {of: figure for of in OF_TIME if (figure := found.figure(of)) is not None}


def _cut(request: Request, tokens: int) -> Request:
    """The request for only the first `tokens` of its answer, also where the request says how many it gets."""
    if request.new_tokens is None:
        return request
    return request.model_copy(update={"new_tokens": min(request.new_tokens, tokens)})


def _own_words(spec: RunSpec, sentence: str) -> str:
    """A refusal without the strategy's name in front, which the reader sees beside it."""
    refusal = f"{spec.strategy} cannot run {spec.model.name} on {spec.cluster.name}: "
    return sentence.removeprefix(refusal).removeprefix(f"{spec.strategy}: ")


def _assessment(played: _Played, lossless: bool) -> Assessment:
    spec, tokens = played.spec, max(played.answers)
    requests, ends_s = fold_requests(played.marks)
    first_s = sum(request.ttft_s for request in requests) / len(requests)
    later = max(0, tokens - played.tokens)
    steps_s = [
        [b - a for a, b in pairwise(request.token_s)] for request in requests if len(request.token_s) > 1
    ]
    per_token_s, later_s = None, 0.0
    drafts = strategy(spec.strategy).drafts
    if steps_s:
        step_s = [sum(steps) / len(steps) if drafts else steps[-1] for steps in steps_s]
        later_s = later * sum(step_s) / len(steps_s)
        simulated = max(map(len, steps_s))
        per_token_s = (sum(map(sum, steps_s)) / len(steps_s) + later_s) / (simulated + later)
    total_s = max(ends_s) + later_s
    devices = _with_grown_caches(played, later, len(requests))
    fullest = max(devices, key=lambda device: device.peak_memory_bytes / device.memory_bytes)
    limit = limit_of(spec.cluster, played.spans, *_window_s(requests, first_s, per_token_s, tokens, drafts))
    computing = tuple(device.name for device in devices if device.flops)
    return Assessment(
        strategy=spec.strategy,
        lossless=lossless,
        reason=reason_for(spec.cluster, limit, computing),
        first_token_s=first_s,
        per_token_s=per_token_s,
        total_s=total_s,
        tokens_per_s=sum(played.answers) / total_s if tokens else None,
        peak_memory_bytes=max(device.peak_memory_bytes for device in devices),
        peak_memory_frac=fullest.peak_memory_bytes / fullest.memory_bytes,
        fullest=fullest.name,
        energy_j=_energy_j(played, later),
        link_bytes=_link_bytes(played, later),
        limit=limit,
        devices=computing,
        peak_bytes=tuple(device.peak_memory_bytes for device in devices),
        simulated_tokens=played.tokens,
    )


def _window_s(
    requests: tuple[RequestReport, ...], first_s: float, per_token_s: float | None, tokens: int, drafts: bool
) -> tuple[float, float]:
    """The times between which the critical path is walked: the last decode step, or all of them of a method
    that drafts, or the prefill if it takes longer than all decode steps of the whole answer.
    """
    first = requests[0]
    if per_token_s is None or first_s >= (tokens - 1) * per_token_s:
        return first.arrival_s, first.arrival_s + first.ttft_s
    return first.arrival_s + first.token_s[0 if drafts else -2], first.arrival_s + first.token_s[-1]


def _with_grown_caches(played: _Played, later: int, sequences: int) -> list[DeviceReport]:
    """The devices with the peak memory of a whole answer: `later` more rows of every sequence's KV cache."""
    found = fold_devices(played.spec.cluster, played.spans, played.marks)
    return [
        device.model_copy(
            update={
                "peak_memory_bytes": min(
                    device.memory_bytes,
                    device.peak_memory_bytes + later * sequences * _row_bytes(played, rank),
                )
            }
        )
        for rank, device in enumerate(found)
    ]


def _row_bytes(played: _Played, rank: int) -> float:
    """Bytes by which the KV caches on device `rank` grow per token of a sequence."""
    model = played.spec.model
    whole = kv_bytes_per_row(model, model.num_kv_heads)
    layers = 0.0
    for work in played.plan.work:
        piece = work.slice
        if work.device == rank and work.phase != "prefill" and piece.part == "attention":
            layers += (piece.stop - piece.start) / model.num_heads if piece.axis == "heads" else 1.0
    return layers * whole


def _energy_j(played: _Played, later: int) -> float:
    """The energy of the simulated part, and for every later token that of a simulated decode step."""
    whole_j = _energy_of(played, played.spans)
    if not later or played.tokens < 2:
        return whole_j
    decode_j = _energy_of(played, [span for span in played.spans if span.token > 0])
    return whole_j + later * decode_j / (played.tokens - 1)


def _link_bytes(played: _Played, later: int) -> float:
    """Bytes on all links, frames included; a later token sends what a simulated decode step does."""
    links = fold_links(played.spec.cluster, played.spans, [])
    whole = sum(link.bytes for link in links)
    if not later or played.tokens < 2:
        return whole
    return whole + later * (whole - sum(link.first_bytes or 0 for link in links)) / (played.tokens - 1)


def _energy_of(played: _Played, spans: list[Span]) -> float:
    cluster = played.spec.cluster
    devices = sum(device.energy_j for device in fold_devices(cluster, spans, []))
    return devices + sum(link.energy_j for link in fold_links(cluster, spans, []))
