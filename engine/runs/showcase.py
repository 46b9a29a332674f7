"""What the runs of a showcase come to by prediction, and its sentence with these figures in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from engine.domain.errors import PlanError
from engine.domain.report import RunReport
from engine.domain.showcase import Figure, Measure, Showcase, parts_of
from engine.domain.spec import RunSpec
from engine.domain.units import human, human_s
from engine.ops.sizes import model_bytes
from engine.reports.showcase import measure_of
from engine.runs.predict import predict

Runs = Mapping[str, RunReport | None]
"""Reports by the name of the run, "" for the showcase's own; None where there is no plan."""


def predicted(showcase: Showcase) -> Runs:
    """Predict the showcase's own run and the others that it is compared with. Raises `SpecError`, and
    `PlanError` if its own run has no plan.
    """
    others = {other.name: predicted_or_none(other.spec) for other in showcase.others}
    return {"": predict(showcase.spec), **others}


def predicted_or_none(spec: RunSpec) -> RunReport | None:
    """The predicted report of a run, None where it has no plan. Raises `SpecError`."""
    try:
        return predict(spec)
    except PlanError:
        return None


def told(showcase: Showcase, runs: Runs) -> str:
    """What to expect of the showcase, with the figures of these runs."""
    return "".join(
        words + (_figure(showcase, runs, figure) if figure else "")
        for words, figure in parts_of(showcase.expected)
    )


def _figure(showcase: Showcase, runs: Runs, figure: Figure) -> str:
    if figure.name == "weights_bytes":
        return human(model_bytes(showcase.spec.model), "B")
    if figure.name == "memory_bytes":
        cluster = showcase.spec.cluster
        return human(min(cluster.devices[rank].usable_bytes for rank in cluster.workers), "B")
    measure = cast(Measure, figure.name)  # a showcase has no other figures
    value_s = _measured_s(runs, figure.run, measure)
    if figure.ratio:
        return f"{value_s / _measured_s(runs, '', measure):.2g}"
    return human_s(value_s)


def _measured_s(runs: Runs, run: str, measure: Measure) -> float:
    """A measure of one run of a showcase. Raises `PlanError` where the run has no plan."""
    report = runs[run]
    if report is None:
        raise PlanError(f"the run {run} of the showcase has no plan: it has no {measure}.")
    return measure_of(report, measure)
