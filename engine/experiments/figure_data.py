"""What a figure draws, as plain values: the browser and matplotlib draw the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment, Figure, Published
from engine.domain.quantity import Coordinate, Coordinates, Quantity
from engine.domain.values import Value
from engine.experiments.break_even import Crossing, crossings
from engine.experiments.cells import Cell, Repeat, cells, chosen, label_of, place_of
from engine.experiments.metrics import metric
from engine.experiments.published import value_in_metric_unit
from engine.experiments.results import Row
from engine.experiments.units import better_of, title_of_quantity, unit_of_quantity

PUBLISHED = "published"
MAX_CROSSINGS = 50
MAX_PANELS = 64
MAX_LINES = 64


class Axis(Value):
    """`categories` are the labels in order where the axis has names; None where it has numbers in `unit`."""

    name: str
    title: str
    unit: str
    log: bool = False
    categories: tuple[str, ...] | None = None


class Spot(Value):
    """One point, bar or field. `x` is a number, or a label of the axis' categories. Without a value `y` is
    None and `problem` says why. `low` and `high` bound the 95 % interval, where there are several seeds.
    """

    x: float | str
    x_label: str
    y: float | None
    low: float | None = None
    high: float | None = None
    coordinates: Coordinates
    repeats: tuple[Repeat, ...] = ()
    digests: tuple[str, ...] = ()
    problem: str = ""
    stale: bool = False
    invalid: int = 0


class Line(Value):
    """The spots of one level of the series in one world; `world` is "published" for a paper's values."""

    label: str
    world: str
    spots: tuple[Spot, ...]


class Panel(Value):
    """`label` is that of the facet, "" if there is only one panel."""

    label: str
    lines: tuple[Line, ...]
    crossings: tuple[Crossing, ...] = ()


class FigureData(Value):
    """A figure with everything that it shows. `series` are all labels in their order, so that colours do not
    change between panels; of a heat map they are the rows, and `y` is the colour.
    """

    name: str
    title: str
    kind: str
    caption: str
    x: Axis
    y: Axis
    better: str | None
    series_title: str
    series: tuple[str, ...]
    panels: tuple[Panel, ...]


def figure_data(experiment: Experiment, figure: Figure, rows: Sequence[Row]) -> FigureData:
    """Raises `SpecError` where the figure names what is not there, or leaves a factor without a place."""
    check_figure(experiment, figure)
    found = cells(experiment, rows, figure, figure.where, figure.worlds)
    xs = _metric_by_place(experiment, figure, rows) if figure.kind == "scatter" else {}
    _check_places(experiment, figure, found)
    facets = _levels(experiment, figure.facet, found) if figure.facet else [""]
    series = _levels(experiment, figure.series, found) if figure.series else [title_of_quantity(figure)]
    panels = []
    for facet in facets[:MAX_PANELS]:
        here = [cell for cell in found if _label(experiment, figure.facet, cell) == facet]
        lines = [*_lines(experiment, figure, here, series, xs), *_published(experiment, figure, here, series)]
        panels.append(
            Panel(label=facet, lines=tuple(lines), crossings=_crossings(experiment, figure, rows, here))
        )
    return FigureData(
        name=figure.name,
        title=figure.title or figure.name.replace("-", " "),
        kind=figure.kind,
        caption=figure.caption,
        x=_x_axis(experiment, figure, found),
        y=Axis(
            name=figure.metric,
            title=title_of_quantity(figure),
            unit=unit_of_quantity(figure),
            log=figure.log_y,
        ),
        better=better_of(figure),
        series_title=_title(experiment, figure.series),
        series=tuple(series),
        panels=tuple(panels),
    )


def check_figure(experiment: Experiment, figure: Figure) -> None:
    """Raises `SpecError` for a metric or factor that is not there."""
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


def known_axis(experiment: Experiment, name: str, place: str) -> None:
    """Raises `SpecError` unless `name` is a factor or `world`."""
    known = [*(factor.name for factor in experiment.factors), "world"]
    if name not in known:
        raise SpecError(f"{place}: there is no factor {name}: there are {', '.join(known)}.")


def _check_places(experiment: Experiment, figure: Figure, found: Sequence[Cell]) -> None:
    """Raises `SpecError` if cells would lie on top of each other."""
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


def _lines(
    experiment: Experiment,
    figure: Figure,
    here: Sequence[Cell],
    series: Sequence[str],
    xs: dict[object, float],
) -> list[Line]:
    lines = []
    for label in series[:MAX_LINES]:
        for world in experiment.worlds:
            own = [
                cell
                for cell in here
                if cell.coordinates["world"] == world
                and (not figure.series or _label(experiment, figure.series, cell) == label)
            ]
            spots = [
                spot for spot in (_spot(experiment, figure, cell, xs) for cell in own) if spot is not None
            ]
            if spots:
                numbers = all(isinstance(spot.x, float) for spot in spots)
                ordered = sorted(spots, key=lambda spot: spot.x) if numbers else spots
                lines.append(Line(label=label, world=world, spots=tuple(ordered)))
    return lines


def _spot(experiment: Experiment, figure: Figure, cell: Cell, xs: dict[object, float]) -> Spot | None:
    if figure.kind == "scatter":
        at = xs.get(place_of(cell.coordinates))
        if at is None:
            return None
        x: float | str = at
        label = _named(experiment, cell.coordinates)
    else:
        value = cell.coordinates[figure.x]
        label = label_of(experiment, figure.x, value)
        x = float(value) if _has_numbers(experiment, figure) and not isinstance(value, str) else label
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
    )


def _published(
    experiment: Experiment, figure: Figure, here: Sequence[Cell], series: Sequence[str]
) -> list[Line]:
    """A paper's values of the same quantity, at the places of our cells."""
    if not figure.published or figure.kind in ("heatmap", "scatter"):
        return []
    lines: dict[str, dict[str, Spot]] = {}
    axes = {figure.x, figure.series, figure.facet} - {""}
    for value in experiment.published:
        if not _same_quantity(value, figure) or not axes <= {*value.coordinates, "world"}:
            continue
        for cell in chosen(experiment, here, dict(value.coordinates)):
            label = _label(experiment, figure.series, cell) if figure.series else series[0]
            mark = _mark(experiment, figure, value, cell)
            if mark is not None:
                lines.setdefault(label, {}).setdefault(mark.x_label, mark)
    return [
        Line(label=label, world=PUBLISHED, spots=tuple(lines[label].values()))
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
    about = {"coordinates": value.coordinates, "problem": value.where}
    return Spot(x=ours.x, x_label=ours.x_label, y=number, low=low, high=high, **about)


def _same_quantity(one: Published, other: Quantity) -> bool:
    return (one.metric, one.relation, one.relative_to) == (other.metric, other.relation, other.relative_to)


def _crossings(
    experiment: Experiment, figure: Figure, rows: Sequence[Row], here: Sequence[Cell]
) -> tuple[Crossing, ...]:
    """Where two levels of the series cross along x, in this panel."""
    if (
        figure.kind != "lines"
        or not figure.series
        or figure.series == "world"
        or not _has_numbers(experiment, figure)
    ):
        return ()
    facet = {figure.facet: here[0].coordinates[figure.facet]} if figure.facet and here else {}
    found = crossings(experiment, rows, figure, figure.x, figure.series, figure.where, figure.worlds)
    in_panel = [one for one in found if all(one.coordinates.get(name) == at for name, at in facet.items())]
    return tuple(in_panel[:MAX_CROSSINGS])


def _has_numbers(experiment: Experiment, figure: Figure) -> bool:
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


def _x_axis(experiment: Experiment, figure: Figure, found: Sequence[Cell]) -> Axis:
    if figure.kind == "scatter":
        of = metric(figure.x)
        return Axis(name=of.name, title=of.title, unit=of.unit, log=figure.log_x)
    factor = experiment.factor(figure.x)
    categories = None if _has_numbers(experiment, figure) else tuple(_levels(experiment, figure.x, found))
    return Axis(
        name=figure.x,
        title=_title(experiment, figure.x),
        unit=factor.unit if factor else "",
        log=figure.log_x and categories is None,
        categories=categories,
    )


def _metric_by_place(experiment: Experiment, figure: Figure, rows: Sequence[Row]) -> dict[object, float]:
    found = cells(experiment, rows, Quantity(metric=figure.x), figure.where, figure.worlds)
    return {place_of(cell.coordinates): cell.mean for cell in found if cell.mean is not None}


def _label(experiment: Experiment, name: str, cell: Cell) -> str:
    return label_of(experiment, name, cell.coordinates[name]) if name else ""


def _title(experiment: Experiment, name: str) -> str:
    factor = experiment.factor(name)
    return factor.label if factor else name


def _named(experiment: Experiment, coordinates: dict[str, Coordinate]) -> str:
    return ", ".join(
        label_of(experiment, name, value) for name, value in coordinates.items() if name != "world"
    )
