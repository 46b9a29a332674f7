"""The simulated world's part of a run: check the spec, plan it, play it through in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from engine.errors import PlanError, RunError
from engine.fold import fold
from engine.models.prompts import requests_of
from engine.plan import Plan
from engine.report import Outcome, Prediction, RunReport
from engine.serve import serve
from engine.spec import RunSpec
from engine.strategies.registry import strategy
from engine.trace import Mark, Span, to_json
from engine.versions import versions
from engine.workload import Request
from engine.worlds.simulated import SimulatedWorld
from engine.worlds.source import SimulatedSource

Event = dict[str, Any]
Watch = Callable[[Event], None]
OUTCOMES = {
    "OutOfMemory": "out_of_memory", "PeerLost": "peer_lost", "Deadlock": "deadlock", "Cancelled": "cancelled",
}


class Prepared(NamedTuple):
    """A spec that has been checked and planned: prompts as tokens, and the plan."""

    spec: RunSpec
    requests: tuple[Request, ...]
    plan: Plan


def prepare(spec: RunSpec) -> Prepared:
    """Raises `SpecError` and `PlanError`."""
    requests = requests_of(spec)
    return Prepared(spec, requests, plan_of(spec, requests))


def plan_of(spec: RunSpec, requests: tuple[Request, ...]) -> Plan:
    """Raises `SpecError` for bad parameters, `PlanError` when the strategy cannot or finds no plan."""
    chosen = strategy(spec.strategy)
    params = chosen.Params.parse(spec.params, f"parameters of {spec.strategy}")
    spec.scenario.check(spec.cluster)
    reason = chosen.supports(spec.cluster, spec.model)
    if reason:
        raise PlanError(f"{spec.strategy} cannot run {spec.model.name} on {spec.cluster.name}: {reason}")
    num_positions = len(requests[0].tokens)
    workload = spec.workload.model_copy(update={"prompt": None, "prompt_tokens": num_positions})
    plan = chosen.plan(spec.cluster, spec.model, workload, params)
    plan.validate_cover(spec.model, num_positions, generates=spec.workload.new_tokens > 0)
    return plan


def predict(
    spec: RunSpec, watch: Watch = lambda event: None, should_stop: Callable[[], bool] = lambda: False
) -> RunReport:
    """The simulated world's report. Loads no torch, needs no root.

    Raises `SpecError` and `PlanError`; a run that cannot finish is an outcome in the report.
    """
    prepared = prepare(spec)
    watch(prepared.plan.model_dump(mode="json") | {"type": "plan"})
    trace, outcome = simulate(prepared, should_stop)
    for item in trace:
        watch(to_json(item))
    report = fold(spec, prepared.plan, trace, world="simulated", outcome=outcome)
    report = report.model_copy(update={"versions": versions(), "scenario": spec.scenario})
    watch(report.model_dump(mode="json") | {"type": "report"})
    return report


def simulate(
    prepared: Prepared, should_stop: Callable[[], bool] = lambda: False
) -> tuple[list[Span | Mark], Outcome]:
    """Trace and outcome of the simulated world."""
    spec, plan = prepared.spec, prepared.plan
    trace: list[Span | Mark] = []
    chosen = strategy(spec.strategy)
    try:
        world = SimulatedWorld(spec, plan, trace.append)
        programs = []
        for rank, device in enumerate(world.devices):
            source = SimulatedSource(device) if rank == spec.cluster.source_rank else None
            programs.append((rank, serve(device, chosen, plan, spec.workload, prepared.requests, source)))
        world.run(programs, should_stop)
    except RunError as error:
        return trace, outcome_of(error)
    return trace, Outcome()


def outcome_of(error: RunError) -> Outcome:
    kind: Any = OUTCOMES.get(type(error).__name__, "failed")
    return Outcome(kind=kind, sentence=str(error), device=error.device, time_s=error.time_s)


def prediction_of(prepared: Prepared) -> Prediction:
    """The simulated world's figures for the same spec and scenario."""
    trace, outcome = simulate(prepared)
    report = fold(prepared.spec, prepared.plan, trace, world="simulated", outcome=outcome)
    return Prediction(
        latency_s=report.latency_s, ttft_s=report.ttft_s, tpot_s=report.tpot_s,
        tokens_per_s=report.tokens_per_s, attribution=report.attribution,
        peak_memory_bytes={device.name: device.peak_memory_bytes for device in report.devices},
    )
