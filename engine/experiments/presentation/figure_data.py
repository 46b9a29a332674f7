"""What a figure draws, as plain values: the browser and matplotlib draw the same ones."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.presented import Figure
from engine.domain.quantity import Quantity
from engine.experiments.presentation.figure_lines import has_numbers, label_in, own_lines, published_lines
from engine.experiments.presentation.figure_values import Axis, FigureData, Panel, axis_of, legend_of
from engine.experiments.results.break_even import Crossing, crossings
from engine.experiments.results.cells import Cell, cells, known_axis, label_of, place_of
from engine.experiments.results.metrics import metric
from engine.experiments.results.rows import Row
from engine.experiments.results.sameness import same_levels
from engine.experiments.results.units import better_of, title_of_quantity, unit_of_quantity

MAX_CROSSINGS = 50
MAX_PANELS = 64


def figure_data(experiment: Experiment, figure: Figure, rows: Sequence[Row]) -> FigureData:
    """Everything that a figure of these rows shows. Raises `SpecError` where the figure names what is not
    there, or leaves a factor without a place.
    """
    check_figure(experiment, figure)
    found = cells(experiment, rows, figure, figure.where, figure.worlds)
    xs = _metric_by_place(experiment, figure, rows) if figure.kind == "scatter" else {}
    _check_places(experiment, figure, found)
    facets = _levels(experiment, figure.facet, found) if figure.facet else [""]
    series = _levels(experiment, figure.series, found) if figure.series else [title_of_quantity(figure)]
    standing_for = _standing_for(experiment, figure, found)
    names = _names(figure, series, standing_for)
    panels = []
    for facet in facets[:MAX_PANELS]:
        panel_cells = [cell for cell in found if label_in(experiment, figure.facet, cell) == facet]
        lines = [
            *own_lines(experiment, figure, panel_cells, series, xs, names, standing_for),
            *published_lines(experiment, figure, panel_cells, series, names),
        ]
        panels.append(
            Panel(
                label=facet, lines=tuple(lines), crossings=_crossings(experiment, figure, rows, panel_cells)
            )
        )
    spots = [spot for panel in panels for line in panel.drawn for spot in line.spots]
    return FigureData(
        name=figure.name,
        title=figure.title or figure.name.replace("-", " "),
        heading=figure.title or experiment.title or figure.name.replace("-", " "),
        kind=figure.kind,
        caption=figure.caption,
        x=_x_axis(experiment, figure, found, [spot.x for spot in spots if not isinstance(spot.x, str)]),
        y=axis_of(
            figure.metric,
            title_of_quantity(figure),
            unit_of_quantity(figure),
            [*(spot.y for spot in spots), *(one.value for spot in spots for one in spot.left_out)],
            log=figure.log_y,
        ),
        better=better_of(figure),
        series_title=experiment.title_of(figure.series) if figure.series else "",
        series=tuple(series),
        panels=tuple(panels),
        legend=legend_of(series, panels),
    )


def _standing_for(experiment: Experiment, figure: Figure, found: Sequence[Cell]) -> dict[str, str]:
    """Label → that of the level which it is one computation with, and whose line stands for both."""
    if not figure.series or figure.series == "world":
        return {}
    return {
        label: group.labels[0]
        for group in same_levels(experiment, found, figure.series)
        for label in group.labels[1:]
    }


def _names(figure: Figure, series: Sequence[str], standing_for: Mapping[str, str]) -> dict[str, str]:
    """Label → the labels of all levels that its line is drawn for, its own first."""
    if figure.kind == "heatmap":
        return {label: label for label in series}
    return {
        label: ", ".join((label, *(other for other in series if standing_for.get(other) == label)))
        for label in series
    }


def check_figure(experiment: Experiment, figure: Figure) -> None:
    """Check that the experiment has the metrics and factors that a figure names; raises `SpecError`."""
    place = f"figure {figure.name}"
    metric(figure.metric)
    if figure.kind == "scatter":
        metric(figure.x)
    names = {
        "series": figure.series,
        "facet": figure.facet,
        **({} if figure.kind == "scatter" else {"x": figure.x}),
    }
    for what, name in names.items():
        if name:
            known_axis(experiment, name, f"{place}, {what}")
    if figure.kind == "heatmap" and not figure.series:
        raise SpecError(f"{place}: a heat map needs series, the factor of its rows.")
    used = [name for name in names.values() if name]
    for name in used:
        if used.count(name) > 1:
            raise SpecError(f"{place}: {name} is used twice: choose different factors.")


def _check_places(experiment: Experiment, figure: Figure, found: Sequence[Cell]) -> None:
    """Check that no two cells would lie on top of each other; raises `SpecError`."""
    if figure.kind == "scatter":
        return
    shown = {figure.x, figure.series, figure.facet, "world"}
    for factor in experiment.factors:
        values = {place_of({factor.name: cell.coordinates[factor.name]}) for cell in found}
        if factor.name not in shown and len(values) > 1:
            raise SpecError(
                f"figure {figure.name}: {factor.name} has {len(values)} values and no place: make it the "
                "series or the facet, or choose one by where."
            )


def _levels(experiment: Experiment, name: str, found: Iterable[Cell]) -> list[str]:
    """Labels of a coordinate among `found`, in the experiment's order."""
    present = list(dict.fromkeys(label_of(experiment, name, cell.coordinates[name]) for cell in found))
    factor = experiment.factor(name)
    if factor is None:
        return [world for world in experiment.worlds if world in present]
    ordered = [label_of(experiment, name, level.coordinate) for level in factor.values]
    return [label for label in ordered if label in present] + [one for one in present if one not in ordered]


def _crossings(
    experiment: Experiment, figure: Figure, rows: Sequence[Row], panel_cells: Sequence[Cell]
) -> tuple[Crossing, ...]:
    """Where two levels of the series cross along x, in this panel."""
    if (
        figure.kind != "lines"
        or not figure.series
        or figure.series == "world"
        or not has_numbers(experiment, figure)
    ):
        return ()
    facet = {figure.facet: panel_cells[0].coordinates[figure.facet]} if figure.facet and panel_cells else {}
    found = crossings(experiment, rows, figure, figure.x, figure.series, figure.where, figure.worlds)
    in_panel = [one for one in found if all(one.coordinates.get(name) == at for name, at in facet.items())]
    return tuple(in_panel[:MAX_CROSSINGS])


def _x_axis(experiment: Experiment, figure: Figure, found: Sequence[Cell], values: Sequence[float]) -> Axis:
    if figure.kind == "scatter":
        of = metric(figure.x)
        return axis_of(of.name, of.title, of.unit, values, log=figure.log_x)
    factor = experiment.factor(figure.x)
    categories = None if has_numbers(experiment, figure) else tuple(_levels(experiment, figure.x, found))
    return axis_of(
        figure.x,
        experiment.title_of(figure.x),
        factor.unit if factor else "",
        values,
        log=figure.log_x and categories is None,
        categories=categories,
        tested=categories is None,
    )


def _metric_by_place(experiment: Experiment, figure: Figure, rows: Sequence[Row]) -> dict[object, float]:
    """The mean, or where no run is valid, that of those that are left out."""
    found = cells(experiment, rows, Quantity(metric=figure.x), figure.where, figure.worlds)
    means: dict[object, float] = {}
    for cell in found:
        values = [one.value for one in cell.repeats or cell.left_out]
        if values:
            means[place_of(cell.coordinates)] = statistics.fmean(values)
    return means
