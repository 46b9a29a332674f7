"""Makes the report of a real run from its trace: figures, prediction, verdict. Pure.

The prediction plays the same run in the simulated world: with the changes that were applied, and with the
decisions that depended on data as the real run took them. A run at native speed is predicted for its host,
if that is calibrated (`native.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from engine.domain.network import Actual, LinkMeasurement
from engine.domain.report import FromHereOn, Outcome, Predictions, RunReport
from engine.domain.scenario import Change, Scenario
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request
from engine.domain.world import World
from engine.reports.fold import fold
from engine.reports.slow_start import slow_start_notes
from engine.reports.versions import versions
from engine.runs.as_measured import as_measured, as_used, changes_as_given, notes_on, pairs_of
from engine.runs.best_planner import best_planner_s
from engine.runs.fidelity import Played, fidelity_of, fidelity_of_native, fidelity_on_nodes
from engine.runs.method import method_report
from engine.runs.native import Simulated
from engine.runs.predict import Prepared, decisions_in, simulate
from engine.runs.predictions import figures_of, played_again
from engine.runs.uncertainty import uncertainty_of
from engine.strategies.registry import rule_of


def world_of(spec: RunSpec) -> World:
    """The world of a real run."""
    return "emulated" if spec.is_paced else "nodes" if spec.on_nodes else "native"


class RealResult(NamedTuple):
    """The result of a real run: its trace, its outcome, the applied changes, each device's pacing.

    `live_rate_changes`: how many link rates a person changed, each of which was measured during the run.
    `ready_s`: wall seconds until all devices were ready. `requests`: those known before and those sent later.
    `from_here_on`: the predictions that were made while the run went on. `changed_live`: whether a person
    changed something. `needed_dilation`: the run was ended since it was late, and is to begin again at that.
    `dilation` and `links`: those that a rehearsal has set and that were measured then.
    """

    trace: list[Span | Mark]
    outcome: Outcome
    changes: tuple[Change, ...]
    pacing: dict[str, dict[str, Any]]
    ready_s: float
    live_rate_changes: int = 0
    requests: tuple[Request, ...] = ()
    from_here_on: tuple[FromHereOn, ...] = ()
    changed_live: bool = False
    needed_dilation: float | None = None
    dilation: float | None = None
    links: list[LinkMeasurement] | None = None


def report_of(
    prepared: Prepared,
    result: RealResult,
    dilation: float,
    links: list[LinkMeasurement],
    backend: str,
    before_the_start: Simulated | None = None,
    actual: Actual | None = None,
) -> RunReport:
    """The report without what `transformers` says of its outputs. `links` were measured before the run, over
    what `backend` made, and so was what `actual` stands in place of what was drawn; the prediction
    `before_the_start` was made before it, too.
    """
    spec = prepared.spec
    report = fold(
        spec,
        prepared.plan,
        result.trace,
        world=world_of(spec),
        outcome=result.outcome,
        dilation=dilation,
        measured=links,
    )
    scenario = Scenario(changes=result.changes)
    report = report.model_copy(
        update={
            "scenario": scenario,
            "versions": versions(),
            "method": method_report(spec, prepared.plan, result.trace),
            "rule": rule_of(spec),
            "seed": spec.seed,
        }
    )
    if spec.workload.is_open and not spec.workload.trace:  # nothing was asked: there is nothing to compare
        return report
    notes: tuple[str, ...] = ()
    known = scenario
    if actual is not None:
        report = report.model_copy(update={"pairs": pairs_of(spec.cluster, actual)})
        measured = as_measured(spec.cluster, actual)
        notes = notes_on(measured, as_used(spec.cluster, actual))
        prepared = prepared._replace(spec=spec.model_copy(update={"cluster": measured}))
        known = Scenario(changes=changes_as_given(result.changes, spec.cluster, actual))
    decisions = decisions_in(result.trace)
    played = Played(result.trace, result.pacing, links, backend, result.live_rate_changes)
    predicted: Simulated | None
    if spec.on_nodes and report.recoveries:
        predicted = None  # no change of a scenario tells the prediction of a lost board
    elif before_the_start and scenario == spec.scenario and not decisions and actual is None:
        predicted = before_the_start  # it knew all that there was to know
    else:
        predicted = played_again(prepared, known, decisions)
    predictions = Predictions(
        before_the_start=figures_of(before_the_start) if before_the_start else None,
        from_here_on=result.from_here_on,
        with_all_changes_known=figures_of(predicted) if predicted else None,
    )
    update: dict[str, Any] = {"predictions": predictions}
    if predicted is not None:
        update["with_best_planner_s"] = best_planner_s(prepared.spec, known, predicted.report)
    if spec.on_nodes:
        on_nodes = fidelity_on_nodes(report, played, predicted)
        update["fidelity"] = on_nodes.model_copy(update={"notes": (*prepared.notes, *on_nodes.notes, *notes)})
    elif predicted is None or spec.dilation == "native":
        native = fidelity_of_native(report, played, predicted)
        update["fidelity"] = native.model_copy(update={"notes": (*prepared.notes, *native.notes)})
    else:
        judged = fidelity_of(report, played, predicted.report, predicted.trace)
        notes = (*prepared.notes, *judged.notes, *slow_start_notes(spec.cluster, result.trace))
        update["fidelity"] = judged.model_copy(update={"notes": notes})
        changed = prepared._replace(spec=spec.model_copy(update={"scenario": scenario}))
        update["uncertainty"] = uncertainty_of(changed, predicted.report, decisions=decisions)
    if report.recoveries and not spec.on_nodes:
        given_up = spec.model_copy(update={"scenario": scenario, "failover": "stop"})
        _, update["without_replan"] = simulate(prepared._replace(spec=given_up), decisions=decisions)
    return report.model_copy(update=update)
