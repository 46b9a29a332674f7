"""The lines of a figure: one mark per cell, and a paper's values as marks of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.domain.experiment import Experiment
from engine.domain.numbers_as_text import shown
from engine.domain.presented import Figure, Published
from engine.domain.quantity import Coordinate, Quantity
from engine.experiments.presentation.figure_values import PUBLISHED, Line, Spot, mark_of_source
from engine.experiments.results.cells import Cell, chosen, label_of, place_of
from engine.experiments.results.metrics import metric
from engine.experiments.results.published import value_in_metric_unit
from engine.reports.intervals import box_of

MAX_LINES = 64


def own_lines(
    experiment: Experiment,
    figure: Figure,
    panel_cells: Sequence[Cell],
    series: Sequence[str],
    xs: dict[object, float],
    names: Mapping[str, str],
    standing_for: Mapping[str, str],
) -> list[Line]:
    lines = []
    for label in series[:MAX_LINES]:
        for world in experiment.worlds:
            own = [
                cell
                for cell in panel_cells
                if cell.coordinates["world"] == world
                and (not figure.series or label_in(experiment, figure.series, cell) == label)
            ]
            spots = [
                spot for spot in (_spot(experiment, figure, cell, xs) for cell in own) if spot is not None
            ]
            if spots:
                numbers = all(isinstance(spot.x, float) for spot in spots)
                ordered = sorted(spots, key=lambda spot: spot.x) if numbers else spots
                same_as = standing_for.get(label, "")
                lines.append(
                    Line(
                        label=label,
                        world=world,
                        mark=mark_of_source(world),
                        spots=tuple(ordered),
                        same_as=same_as,
                        name=names[label],
                        drawn=not same_as or figure.kind == "heatmap",
                    )
                )
    return lines


def _spot(experiment: Experiment, figure: Figure, cell: Cell, xs: dict[object, float]) -> Spot | None:
    note = _invalid_text(cell.invalid)
    if figure.kind == "scatter":
        at = xs.get(place_of(cell.coordinates))
        if at is None:
            return None
        x: float | str = at
        label = shown(at, metric(figure.x).unit)
        note = note or _named(experiment, cell.coordinates)
    else:
        value = cell.coordinates[figure.x]
        label = label_of(experiment, figure.x, value)
        x = float(value) if has_numbers(experiment, figure) and not isinstance(value, str) else label
    return Spot(
        x=x,
        x_label=label,
        y=cell.mean,
        low=cell.low if figure.errors else None,
        high=cell.high if figure.errors else None,
        coordinates=cell.coordinates,
        repeats=cell.repeats,
        digests=cell.digests,
        problem=cell.problem,
        stale=cell.stale,
        invalid=cell.invalid,
        left_out=cell.left_out if figure.kind != "scatter" or cell.mean is None else (),
        box=box_of([one.value for one in cell.repeats]) if figure.kind == "boxes" else None,
        note=note,
    )


def published_lines(
    experiment: Experiment,
    figure: Figure,
    panel_cells: Sequence[Cell],
    series: Sequence[str],
    names: Mapping[str, str],
) -> list[Line]:
    """A paper's values of the same quantity, at the places of our cells."""
    if not figure.published or figure.kind in ("heatmap", "scatter"):
        return []
    lines: dict[str, dict[str, Spot]] = {}
    axes = {figure.x, figure.series, figure.facet} - {""}
    for value in experiment.published:
        if not _same_quantity(value, figure) or not axes <= {*value.coordinates, "world"}:
            continue
        for cell in chosen(experiment, panel_cells, dict(value.coordinates)):
            label = label_in(experiment, figure.series, cell) if figure.series else series[0]
            mark = _mark(experiment, figure, value, cell)
            if mark is not None:
                lines.setdefault(label, {}).setdefault(mark.x_label, mark)
    return [
        Line(
            label=label,
            world=PUBLISHED,
            mark=mark_of_source(PUBLISHED),
            spots=tuple(lines[label].values()),
            name=names[label],
        )
        for label in series
        if label in lines
    ]


def _mark(experiment: Experiment, figure: Figure, value: Published, cell: Cell) -> Spot | None:
    """A published value or range where our cell is; None for an outcome."""
    number, low, high = value_in_metric_unit(value)
    if number is None and low is not None and high is not None:
        number = (low + high) / 2
    ours = _spot(experiment, figure, cell, {})
    if number is None or ours is None:
        return None
    return Spot(
        x=ours.x,
        x_label=ours.x_label,
        y=number,
        low=low,
        high=high,
        coordinates=value.coordinates,
        note=value.where,
    )


def _invalid_text(number: int) -> str:
    """How many of the runs do not count; "" if all do."""
    if number == 0:
        return ""
    return "One run does not count as valid." if number == 1 else f"{number} runs do not count as valid."


def _same_quantity(one: Published, other: Quantity) -> bool:
    return (one.metric, one.relation, one.relative_to) == (other.metric, other.relation, other.relative_to)


def has_numbers(experiment: Experiment, figure: Figure) -> bool:
    """Whether the x axis has numbers: lines over a factor all of whose values are numbers."""
    factor = experiment.factor(figure.x)
    return (
        figure.kind == "lines"
        and factor is not None
        and all(
            isinstance(level.coordinate, int | float) and not isinstance(level.coordinate, bool)
            for level in factor.values
        )
    )


def label_in(experiment: Experiment, name: str, cell: Cell) -> str:
    return label_of(experiment, name, cell.coordinates[name]) if name else ""


def _named(experiment: Experiment, coordinates: dict[str, Coordinate]) -> str:
    return ", ".join(
        label_of(experiment, name, value) for name, value in coordinates.items() if name != "world"
    )
