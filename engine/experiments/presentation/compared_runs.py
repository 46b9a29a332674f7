"""The figure of compared runs: an experiment over them, whose factors are the parameters in which they
differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.domain.experiment import Experiment
from engine.domain.factor import Factor, Level
from engine.domain.presented import Figure
from engine.domain.report import RunReport
from engine.domain.units import between
from engine.domain.values import Value
from engine.experiments.presentation.compared_view import (
    RUN,
    TOKENS,
    Chosen,
    Compared,
    RunsView,
    all_positive,
    view_of,
)
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.presentation.figure_values import FigureData, Line, Spot
from engine.experiments.results.metrics import metrics_of
from engine.experiments.results.rows import Row
from engine.reports.compare import Comparison, by_kind, token_gaps
from engine.reports.metric import Metric
from engine.reports.metrics import metrics_of_a
from engine.reports.parameters import Parameter, Repeats, in_classes, parameters_of, repeats_of, telling

MOST_NAMED = 3
"""Runs at one place of an axis that are named there."""


class ParameterChoice(Value):
    """A parameter that may be on an axis. `positive`: a logarithmic axis has a place for all its values."""

    name: str
    title: str
    numeric: bool
    positive: bool


class RunsFigure(Value):
    """The figure of compared runs, with what people may choose of it.

    `split` are titles of parameters that keep runs apart which are no repeats, though they have the same x
    and colour. `problems` says what of the choices these runs do not have. `missing`: which runs have no
    place on a logarithmic axis.
    """

    figure: FigureData
    view: RunsView
    metrics: tuple[Metric, ...]
    parameters: tuple[ParameterChoice, ...]
    split: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    caption: str = ""
    missing: str = ""


def figure_of_runs(
    reports: Sequence[RunReport], names: Sequence[str], comparison: Comparison, chosen: Chosen
) -> RunsFigure | None:
    """The figure of chosen runs, with what people may choose; None where no two have a figure in common."""
    compared = Compared(
        reports,
        names,
        comparison,
        parameters_of(comparison.params),
        repeats_of(comparison.params, len(reports)),
        _metrics(comparison),
    )
    if not compared.metrics:
        return None
    view, problems = view_of(compared, chosen)
    groups = [(run,) for run in range(len(reports))] if view.x == RUN else list(compared.groups)
    along, hue = compared.parameter(view.x), compared.parameter(view.series)
    given = [one for one in (along, hue) if one is not None]
    split = () if view.x == RUN else telling(compared.worlds, groups, compared.parameters, given)
    named = (*([hue] if hue else []), *split)
    figure = _figure(compared, view, groups, along, named)
    return RunsFigure(
        figure=figure,
        view=view,
        metrics=compared.metrics,
        parameters=tuple(
            ParameterChoice(
                name=one.path, title=one.title, numeric=one.is_numeric, positive=all_positive(one)
            )
            for one in compared.parameters
        ),
        split=tuple(one.title for one in split),
        problems=tuple(problems),
        caption=_caption(view, figure),
        missing=_missing(view, figure),
    )


def _metrics(comparison: Comparison) -> tuple[Metric, ...]:
    """The metrics of which at least two runs have a value, and one is not 0; times of tokens last."""
    told = {
        row.name
        for row in comparison.metrics
        if any(row.values) and sum(value is not None for value in row.values) > 1
    }
    found = [one for one in metrics_of_a("run") if one.name in told]
    has_tokens = any(len(one.token_s) > 1 for one in comparison.series)
    return (*found, *(metrics_of_a("token") if has_tokens else ()))


# The experiment over the runs ---------------------------------------------------------------------
def _figure(
    compared: Compared,
    view: RunsView,
    groups: Sequence[Repeats],
    along: Parameter | None,
    named: Sequence[Parameter],
) -> FigureData:
    numeric = along is not None and along.is_numeric and view.kind == "lines"
    text_of = along.texts if along else compared.names
    x_of = {
        run: along.values[run] if along and along.is_numeric else text_of[run]
        for group in groups
        for run in group
    }
    x_texts = {x_of[run]: text_of[run] for run in x_of}
    if along is not None and not numeric:
        runs_at = in_classes(x_of, x_of.__getitem__)
        x_texts = {x_of[runs[0]]: _with_runs(compared, text_of[runs[0]], runs) for runs in runs_at}
    label_of = {run: " · ".join(one.told(group[0]) for one in named) for group in groups for run in group}
    x = Factor(
        name="x",
        title=along.title if along else "run",
        unit=along.unit if along and numeric else "",
        paths=(view.x,),
        values=tuple(Level(value=value, label=x_texts[value]) for value in _ordered(groups, x_of, along)),
    )
    series = Factor(
        name="series",
        title=" and ".join(one.title for one in named) or "runs",
        paths=("series",),
        values=tuple(
            Level(value=text or "all") for text in _ordered(groups, label_of, named[0] if named else None)
        ),
    )
    worlds = tuple(dict.fromkeys(report.world for report in compared.reports))
    experiment = Experiment(name="compared", factors=(x, series)).model_copy(update={"worlds": worlds})
    at = [{"x": x_of[run], "series": label_of[run] or "all"} for run in range(len(compared.reports))]
    orders = {
        factor.name: {level.coordinate: place for place, level in enumerate(factor.values)}
        for factor in (x, series)
    }
    ordered = sorted(range(len(at)), key=lambda run: [order[at[run][name]] for name, order in orders.items()])
    rows = [
        row for run in ordered for row in _rows(compared.reports[run], compared.names[run], at[run], view)
    ]
    figure = Figure(
        name="compared",
        metric=view.metric,
        x="x",
        series="series" if named else "",
        kind=view.kind,
        log_x=view.log_x,
        log_y=view.log_y,
        count_invalid=True,
        errors=view.kind != "boxes",
    )
    made = figure_data(experiment, figure, rows)
    notes = {name: _notes(compared, run) for run, name in enumerate(compared.names)}
    panels = [
        panel.model_copy(update={"lines": tuple(_noted(line, notes) for line in panel.lines)})
        for panel in made.panels
    ]
    # names have no order that a line could follow
    kind = "scatter" if view.kind == "lines" and not numeric else made.kind
    return made.model_copy(update={"panels": tuple(panels), "kind": kind})


def _with_runs(compared: Compared, text: str, runs: Sequence[int]) -> str:
    """A value with the numbers of its runs, where these are few: `gpipe (run 4)`."""
    if len(runs) > MOST_NAMED:
        return f"{text} ({len(runs)} runs)"
    return f"{text} ({listed('run', [compared.names[run] for run in sorted(runs)])})"


def _rows(report: RunReport, name: str, coordinates: dict[str, Any], view: RunsView) -> list[Row]:
    """The row of a run; of the times of its tokens one per token."""
    figures = (
        [{TOKENS: gap} for gap in token_gaps(report)[1:]] or [{}]
        if view.metric == TOKENS
        else [metrics_of(report)]
    )
    row = Row(
        coordinates=coordinates,
        seed=report.seed,
        world=report.world,
        digest=name,
        outcome="finished",  # an unfinished run has what it has, and a caution
    )
    return [row.model_copy(update={"metrics": metrics}) for metrics in figures]


def _ordered(groups: Sequence[Repeats], values: dict[int, Any], by: Parameter | None) -> list[Any]:
    """The values of groups once each, by those of a parameter: numbers by size, texts as they are read."""
    chosen = list(groups)
    if by is not None and by.is_numeric:
        chosen.sort(key=lambda group: by.values[group[0]])
    elif by is not None:
        chosen.sort(key=lambda group: by.texts[group[0]].lower())
    return list(dict.fromkeys(values[group[0]] for group in chosen))


def _notes(compared: Compared, run: int) -> str:
    """Words about a mark: its run, and why that cannot simply be compared."""
    cautions = [one.sentence for one in by_kind([compared.comparison.runs[run]]) if one.decides]
    return " ".join([f"Run {compared.names[run]}: {compared.comparison.runs[run].name}.", *cautions])


def _noted(line: Line, notes: dict[str, str]) -> Line:
    spots = []
    for spot in line.spots:
        names = tuple(dict.fromkeys(spot.digests))
        lacking = len(names) - len({repeat.digest for repeat in spot.repeats})
        told = [notes[names[0]]] if len(names) == 1 else [f"{listed('Run', names)}."]
        if spot.repeats and lacking:
            told.append(f"{lacking} of them without a value.")
        changed: dict[str, Any] = {"digests": names, "note": " ".join(told)}
        if spot.y is None:
            changed["problem"] = f"{listed('run', names)}: no value"
        spots.append(spot.model_copy(update=changed))
    return line.model_copy(update={"spots": tuple(spots)})


# In words -----------------------------------------------------------------------------------------
def listed(noun: str, names: Sequence[str]) -> str:
    """`listed("run", ["3", "4", "5"])` → "runs 3, 4 and 5"."""
    if len(names) == 1:
        return f"{noun} {names[0]}"
    return f"{noun}s {', '.join(names[:-1])} and {names[-1]}"


def _spots(figure: FigureData) -> list[Spot]:
    return [spot for panel in figure.panels for line in panel.lines for spot in line.spots]


def _caption(view: RunsView, figure: FigureData) -> str:
    """What a mark is: of how many runs that have a value."""
    if view.kind == "boxes":
        return "a box is the middle half of the values, its line the median"
    counts = [len(spot.repeats) for spot in _spots(figure) if spot.repeats]
    if max(counts, default=0) < 2:
        return ""
    many = between(str(min(counts)), str(max(counts)))
    return f"a mark is the mean of {many} runs that differ only in the seed, with its 95 % interval"


def _missing(view: RunsView, figure: FigureData) -> str:
    """A sentence with the runs whose value is not above 0 and so has no place on a logarithmic axis; "" if
    all have.
    """
    names = [
        name
        for spot in _spots(figure)
        if view.log_y and spot.y is not None and spot.y <= 0
        for name in spot.digests
    ]
    if not names:
        return ""
    ordered = sorted(names, key=lambda name: (len(name), name))
    return f"{listed('Run', ordered)}: not above 0, so that a logarithmic axis has no place for the value."
