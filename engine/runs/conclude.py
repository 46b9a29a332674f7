"""From the trace of a real run to its report: figures, prediction, verdict. Pure.

The prediction plays the same run in the simulated world: with the changes that were applied, and with the
decisions that depended on data as the real run took them. A run at native speed is predicted for its host,
if that is calibrated (`native.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from engine.domain.network import LinkMeasurement
from engine.domain.report import Correctness, Outcome, Prediction, RunReport
from engine.domain.scenario import Change, Scenario
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request
from engine.reports.fold import fold
from engine.reports.versions import versions
from engine.runs.fidelity import Played, fidelity_of, fidelity_of_native
from engine.runs.method import method_report
from engine.runs.native import predict_native
from engine.runs.predict import Prepared, decisions_in, simulate


class RealResult(NamedTuple):
    """The result of a real run: its trace, its outcome, the applied changes, each device's pacing.

    `live_rate_changes`: how many link rates a person changed, each of which was measured during the run.
    `ready_s`: wall seconds until all devices were ready. `requests`: those known before and those sent later.
    """

    trace: list[Span | Mark]
    outcome: Outcome
    changes: tuple[Change, ...]
    pacing: dict[str, dict[str, Any]]
    ready_s: float
    live_rate_changes: int = 0
    requests: tuple[Request, ...] = ()


def report_of(
    prepared: Prepared,
    result: RealResult,
    dilation: float,
    links: list[LinkMeasurement],
    backend: str,
    correctness: Correctness,
    timings: dict[str, float],
) -> RunReport:
    """The whole report. `links` were measured before the run, over what `backend` made."""
    spec = prepared.spec
    report = fold(
        spec,
        prepared.plan,
        result.trace,
        world="real",
        outcome=result.outcome,
        dilation=dilation,
        measured=links,
    )
    scenario = Scenario(changes=result.changes)
    report = report.model_copy(
        update={
            "correctness": correctness,
            "scenario": scenario,
            "versions": versions(),
            "timings": timings,
            "method": method_report(spec, prepared.plan, result.trace),
            "seed": spec.seed,
        }
    )
    if spec.workload.is_open and not spec.workload.trace:  # nothing was asked: there is nothing to compare
        return report
    replayed = prepared._replace(spec=spec.model_copy(update={"scenario": scenario}))
    decisions = decisions_in(result.trace)
    played = Played(result.trace, result.pacing, links, backend, result.live_rate_changes)
    update: dict[str, Any] = {}
    if spec.dilation == "native":
        on_host = predict_native(replayed, spec.profile, decisions) if spec.profile is not None else None
        update["fidelity"] = fidelity_of_native(report, played, on_host)
        update["prediction"] = prediction_of(on_host.report) if on_host is not None else None
    else:
        trace, outcome = simulate(replayed, decisions=decisions)
        predicted = fold(replayed.spec, prepared.plan, trace, world="simulated", outcome=outcome)
        update["fidelity"] = fidelity_of(report, played, predicted, trace)
        update["prediction"] = prediction_of(predicted)
    if report.recoveries:
        stopping = replayed._replace(spec=replayed.spec.model_copy(update={"failover": "stop"}))
        _, update["without_replan"] = simulate(stopping, decisions=decisions)
    return report.model_copy(update=update)


def prediction_of(predicted: RunReport) -> Prediction:
    """The figures of a simulated run that a real run's report keeps."""
    return Prediction(
        latency_s=predicted.latency_s,
        ttft_s=predicted.ttft_s,
        tpot_s=predicted.tpot_s,
        tokens_per_s=predicted.tokens_per_s,
        attribution=predicted.attribution,
        peak_memory_bytes={device.name: device.peak_memory_bytes for device in predicted.devices},
    )
