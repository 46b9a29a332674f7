"""Compares reports: which fields of their specs differ, and how their figures differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from engine.domain.errors import SpecError
from engine.domain.report import RunReport
from engine.domain.values import Value
from engine.reports.cautions import Caution, cautions_of
from engine.reports.metric import Better, Metric
from engine.reports.metrics import metrics_of_a

FEWEST, MOST = 2, 50


class RunColumn(Value):
    """The run of a column; `cautions` are about its comparison with the baseline."""

    name: str
    world: Literal["simulated", "real"]
    outcome: str
    correct: bool | None
    valid: bool | None
    cautions: tuple[Caution, ...] = ()


class ParamRow(Value):
    """One field of the specs by its flat path; None where a run has no such field."""

    path: str
    values: tuple[Any, ...]
    differs: bool


class MetricRow(Value):
    """One figure. `deltas` are fractions of the baseline's value: 0.1 is 10 % more; None if undefined."""

    name: str
    title: str
    unit: str
    values: tuple[float | None, ...]
    deltas: tuple[float | None, ...]
    better: Better | None


class LatencySeries(Value):
    """Seconds per token of a run's first request, in order; the first is its time to first token."""

    run: int
    token_s: tuple[float, ...]


class Comparison(Value):
    baseline: int
    runs: tuple[RunColumn, ...]
    params: tuple[ParamRow, ...]
    metrics: tuple[MetricRow, ...]
    series: tuple[LatencySeries, ...]


def compare(reports: Sequence[RunReport], baseline: int = 0) -> Comparison:
    """`baseline` is the index of the run that deltas refer to. Raises `SpecError` on a wrong number."""
    if not FEWEST <= len(reports) <= MOST:
        sentence = f"Got {len(reports)} runs to compare, expected {FEWEST} to {MOST}."
        raise SpecError(sentence, [("ids", f"expected {FEWEST} to {MOST} runs")])
    if not 0 <= baseline < len(reports):
        sentence = f"The baseline is {baseline}, expected 0 to {len(reports) - 1}."
        raise SpecError(sentence, [("baseline", "is not among the runs")])
    rows = [_metric_row(metric, reports, baseline) for metric in metrics_of_a("run")]
    return Comparison(
        baseline=baseline,
        runs=tuple(
            RunColumn(
                name=report.spec.name or f"{report.spec.strategy} on {report.spec.cluster.name}",
                world=report.world,
                outcome=report.outcome.kind,
                correct=report.correctness.ok,
                valid=report.fidelity.valid,
                cautions=() if report is reports[baseline] else cautions_of(report, reports[baseline]),
            )
            for report in reports
        ),
        params=compare_params(reports),
        metrics=tuple(row for row in rows if any(value is not None for value in row.values)),
        series=tuple(LatencySeries(run=i, token_s=token_gaps(report)) for i, report in enumerate(reports)),
    )


def compare_params(reports: Sequence[RunReport]) -> tuple[ParamRow, ...]:
    """Every field of the specs and the world, without the names of runs.

    A field differs if its values do or if only some runs have it; false, 0 and "" are values.
    """
    flats = [_asked(report) for report in reports]
    paths = list(dict.fromkeys(path for flat in flats for path in flat))
    rows = []
    for path in paths:
        values = tuple(flat.get(path) for flat in flats)
        differs = any(path not in flat for flat in flats) or any(not _same(values[0], v) for v in values[1:])
        rows.append(ParamRow(path=path, values=values, differs=differs))
    return tuple(rows)


def flatten(value: Any, path: str = "") -> dict[str, Any]:
    """`{"a": [{"b": 1}]}` → `{"a[0].b": 1}`; empty lists and objects stay as values.

    List items with a name are labelled by it, so that a device that moved in the list is the same device.
    """
    if isinstance(value, dict) and value:
        items = [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        labels = [_label(item) or str(index) for index, item in enumerate(value)]
        if len(set(labels)) < len(labels):
            labels = [str(index) for index in range(len(value))]
        items = [(f"{path}[{label}]", item) for label, item in zip(labels, value, strict=True)]
    else:
        return {path: value}
    flat: dict[str, Any] = {}
    for item_path, item in items:
        flat |= flatten(item, item_path)
    return flat


def token_gaps(report: RunReport) -> tuple[float, ...]:
    if not report.requests or not report.requests[0].token_s:
        return ()
    times = report.requests[0].token_s
    return (times[0], *(b - a for a, b in pairwise(times)))


def _asked(report: RunReport) -> dict[str, Any]:
    data = report.spec.model_dump(mode="json", exclude={"name"})
    data["profile"] = report.spec.profile and report.spec.profile.host  # its times vary
    data["scenario"] = report.scenario.model_dump(mode="json")  # as it happened, live changes included
    return {"world": report.world, **flatten(data)}


def _label(item: Any) -> str:
    if isinstance(item, dict):
        if "name" in item:
            return str(item["name"])
        if "a" in item and "b" in item:
            return f"{item['a']}--{item['b']}"
    return ""


def _same(a: Any, b: Any) -> bool:
    """Whether both are equal and both or neither are booleans (in Python, `0 == False`)."""
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _metric_row(metric: Metric, reports: Sequence[RunReport], baseline: int) -> MetricRow:
    values = tuple(None if (value := metric.compute(r)) is None else float(value) for r in reports)
    base = values[baseline]
    deltas = tuple(
        None
        if value is None or base is None or (base == 0 and value != 0)
        else 0.0
        if value == base
        else (value - base) / abs(base)
        for value in values
    )
    return MetricRow(
        name=metric.name,
        title=metric.title,
        unit=metric.unit,
        better=metric.better,
        values=values,
        deltas=deltas,
    )
