"""What a run would take with planner=best, where its method followed its paper's rule."""

from __future__ import annotations

from engine.domain.errors import EdgeLoomError
from engine.domain.report import RunReport
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.runs.predict import prepare
from engine.runs.predictions import played_again
from engine.runs.uncertainty import MOST_STEPS
from engine.strategies.planner.choice import WORTH_NAMING
from engine.strategies.registry import by_best

MOST_DEVICES = 64
"""The search tries groups of devices, each against all the others: with 128 it takes longer than the run."""


def with_best_planner(report: RunReport) -> RunReport:
    """A predicted `report` with what planner=best would give."""
    found = best_planner_s(report.spec, report.scenario, report)
    return report.model_copy(update={"with_best_planner_s": found})


def best_planner_s(spec: RunSpec, scenario: Scenario, predicted: RunReport) -> float | None:
    """Predicted seconds of `spec` with planner=best under the changes of `scenario`; None where that is no
    gain over `predicted`, the prediction of the run's own plan, or the run is too large to be planned again.
    """
    params = by_best(spec.strategy, spec.params)
    tokens = sum(len(request.token_s) or 1 for request in predicted.requests)
    too_long = tokens * len(predicted.devices) > MOST_STEPS or len(predicted.devices) > MOST_DEVICES
    if params is None or predicted.outcome.kind != "finished" or too_long:
        return None
    try:
        best = played_again(prepare(spec.model_copy(update={"params": params})), scenario)
    except EdgeLoomError:  # its search finds no plan, or a change names what this plan does not have
        return None
    if best is None or best.report.outcome.kind != "finished":
        return None
    latency_s = best.report.latency_s
    return latency_s if predicted.latency_s > WORTH_NAMING * latency_s else None
