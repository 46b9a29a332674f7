"""Compares reports: which fields of their specs differ, and how their figures differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from engine.domain.errors import SpecError
from engine.domain.report import RunReport
from engine.domain.values import Value, same
from engine.domain.world import World
from engine.reports.cautions import Caution, cautions_of
from engine.reports.intervals import Average, average_of
from engine.reports.metric import Better, Metric
from engine.reports.metrics import metrics_of_a
from engine.reports.parameters import ParamRow, Repeats, parameters_of, repeats_of, telling

Verdict = Literal["better", "worse", "same", "unclear"]

FEWEST, MOST = 2, 50
NOTHING = 0.0005
"""The fraction below which differences are none."""
TIMED = frozenset({"s", "1/s", "J", "J s"})
"""Units of figures that change with the time that things take, so from one run to the next of the same."""


class RunColumn(Value):
    """The run of a column; `cautions` are about its comparison with the baseline."""

    name: str
    world: World
    outcome: str
    correct: bool | None
    valid: bool | None
    cautions: tuple[Caution, ...] = ()


class ComparedColumn(Value):
    """A column of the table: one run, or repeats, by their places. `label` is what tells these repeats from
    others; "" for a single run. `cautions` has one of each kind, with all its sentences.
    """

    runs: Repeats
    label: str
    is_base: bool
    cautions: tuple[Caution, ...] = ()


class ComparedCell(Value):
    """What a column has of a figure; `average` is None where no run of it has a value. `delta` is its
    difference from the baseline's column as a fraction of that; None where this is undefined. `verdict` is
    None where neither direction is better, or the runs differ in what decides the figures; unclear: chance
    alone may make the difference.
    """

    average: Average | None = None
    delta: float | None = None
    verdict: Verdict | None = None


class MetricRow(Value):
    """One figure: `values` of the runs, and a cell per column. `deltas` are fractions of the baseline's
    value: 0.1 is 10 % more; None if undefined.
    """

    name: str
    title: str
    unit: str
    values: tuple[float | None, ...]
    deltas: tuple[float | None, ...]
    better: Better | None
    cells: tuple[ComparedCell, ...] = ()


class LatencySeries(Value):
    """Seconds per token of a run's first request, in order; the first is its time to first token."""

    run: int
    token_s: tuple[float, ...]


class Comparison(Value):
    """Several runs side by side, with what differs and how much. `has_repeats`: some of the runs differ in
    nothing but the seed, so that columns may be groups.
    """

    baseline: int
    runs: tuple[RunColumn, ...]
    columns: tuple[ComparedColumn, ...]
    has_repeats: bool
    grouped: bool
    params: tuple[ParamRow, ...]
    metrics: tuple[MetricRow, ...]
    series: tuple[LatencySeries, ...]


class _Chance(NamedTuple):
    """What is known of differences without a reason: the runs that repeat the baseline, itself included, and
    each run's error as `_error_of` has it.
    """

    again: Repeats
    errors: tuple[float, ...]

    def may_make(
        self, delta: float, average: Average, base: Average, column: ComparedColumn, metric: Metric
    ) -> bool:
        """Whether a difference of `delta`, a fraction, need not have a reason."""
        if set(column.runs) <= set(self.again):
            return True
        if average.margin is not None or base.margin is not None:
            return abs(average.mean - base.mean) <= (average.margin or 0) + (base.margin or 0)
        error = max(self.errors[run] for run in self.again) + max(self.errors[run] for run in column.runs)
        return metric.unit in TIMED and abs(delta) <= error


def check_number(runs: int) -> None:
    """Check that one comparison may have so many runs; raises `SpecError`."""
    if not FEWEST <= runs <= MOST:
        sentence = f"Got {runs} runs to compare, expected {FEWEST} to {MOST}."
        raise SpecError(sentence, [("ids", f"expected {FEWEST} to {MOST} runs")])


def compare(reports: Sequence[RunReport], baseline: int = 0, grouped: bool | None = False) -> Comparison:
    """Set runs side by side. `baseline` is the index of the run that deltas refer to. `grouped`: a column per
    group of repeats; None: where there are several groups with repeats. Raises `SpecError` on a wrong number.
    """
    check_number(len(reports))
    if not 0 <= baseline < len(reports):
        sentence = f"The baseline is {baseline}, expected 0 to {len(reports) - 1}."
        raise SpecError(sentence, [("baseline", "is not among the runs")])
    params = compare_params(reports)
    repeats = repeats_of(params, len(reports))
    has_repeats = len(repeats) < len(reports)
    if grouped is None:
        grouped = has_repeats and len(repeats) > 1
    runs = tuple(
        RunColumn(
            name=report.spec.name or f"{report.spec.strategy} on {report.spec.cluster.name}",
            world=report.world,
            outcome=report.outcome.kind,
            correct=report.correctness.ok,
            valid=report.fidelity.valid,
            cautions=() if report is reports[baseline] else cautions_of(report, reports[baseline]),
        )
        for report in reports
    )
    columns = _columns(runs, params, repeats if grouped else None, baseline)
    again = next(group for group in repeats if baseline in group)
    chance = _Chance(again, tuple(map(_error_of, reports)))
    rows = [_metric_row(metric, reports, baseline, columns, chance) for metric in metrics_of_a("run")]
    return Comparison(
        baseline=baseline,
        runs=runs,
        columns=columns,
        has_repeats=has_repeats,
        grouped=grouped,
        params=params,
        metrics=tuple(row for row in rows if any(value is not None for value in row.values)),
        series=tuple(LatencySeries(run=i, token_s=token_gaps(report)) for i, report in enumerate(reports)),
    )


def _columns(
    runs: Sequence[RunColumn], params: Sequence[ParamRow], repeats: Sequence[Repeats] | None, baseline: int
) -> tuple[ComparedColumn, ...]:
    """A column per run, or per group of repeats."""
    groups = [(place,) for place in range(len(runs))] if repeats is None else repeats
    parameters = parameters_of(params)
    named = () if repeats is None else telling([run.world for run in runs], groups, parameters)
    return tuple(
        ComparedColumn(
            runs=group,
            label="" if repeats is None else " · ".join(one.told(group[0]) for one in named) or "all runs",
            is_base=baseline in group,
            cautions=tuple(  # repeats differ in the seed: that is what they are for
                one
                for one in by_kind([runs[place] for place in group])
                if repeats is None or one.kind != "seed"
            ),
        )
        for group in groups
    )


def by_kind(runs: Sequence[RunColumn]) -> list[Caution]:
    """The cautions about some runs, one of each kind with all its sentences."""
    found: dict[str, Caution] = {}
    for caution in dict.fromkeys(one for run in runs for one in run.cautions):
        there = found.get(caution.kind)
        sentence = f"{there.sentence} {caution.sentence}" if there else caution.sentence
        found[caution.kind] = caution.model_copy(update={"sentence": sentence})
    return list(found.values())


def compare_params(reports: Sequence[RunReport]) -> tuple[ParamRow, ...]:
    """Every field of the specs and the world, without the names of runs.

    A field differs if its values do or if only some runs have it; false, 0 and "" are values.
    """
    flats = [_asked(report) for report in reports]
    paths = list(dict.fromkeys(path for flat in flats for path in flat))
    rows = []
    for path in paths:
        values = tuple(flat.get(path) for flat in flats)
        differs = any(path not in flat for flat in flats) or any(not same(values[0], v) for v in values[1:])
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


def _metric_row(
    metric: Metric,
    reports: Sequence[RunReport],
    baseline: int,
    columns: Sequence[ComparedColumn],
    chance: _Chance,
) -> MetricRow:
    values = tuple(None if (value := metric.compute(r)) is None else float(value) for r in reports)
    averages = [
        average_of([value for place in column.runs if (value := values[place]) is not None])
        for column in columns
    ]
    base = next(average for average, column in zip(averages, columns, strict=True) if column.is_base)
    return MetricRow(
        name=metric.name,
        title=metric.title,
        unit=metric.unit,
        better=metric.better,
        values=values,
        deltas=tuple(_delta(value, values[baseline]) for value in values),
        cells=tuple(
            _cell(average, base, column, metric, chance)
            for average, column in zip(averages, columns, strict=True)
        ),
    )


def _error_of(report: RunReport) -> float:
    """How far a paced run's latency is from its own prediction, which has no chance, as a fraction. At native
    speed most of that is the prediction's.
    """
    return 0.0 if report.fidelity.latency_limit is None else abs(report.fidelity.latency_error or 0.0)


def _cell(
    average: Average | None, base: Average | None, column: ComparedColumn, metric: Metric, chance: _Chance
) -> ComparedCell:
    if average is None or base is None or column.is_base:
        return ComparedCell(average=average)
    delta = _delta(average.mean, base.mean)
    if delta is None:
        return ComparedCell(average=average)
    if abs(delta) < NOTHING:
        verdict: Verdict | None = "same"
    elif metric.better is None or any(caution.decides for caution in column.cautions):
        verdict = None
    elif chance.may_make(delta, average, base, column, metric):
        verdict = "unclear"
    else:
        verdict = "better" if (delta < 0) == (metric.better == "lower") else "worse"
    return ComparedCell(average=average, delta=delta, verdict=verdict)


def _delta(value: float | None, base: float | None) -> float | None:
    """The difference as a fraction of the baseline's value; None where that is 0 and the other is not."""
    if value is None or base is None:
        return None
    if value == base:
        return 0.0
    return None if base == 0 else (value - base) / abs(base)
