"""The plain values of a figure: axes, panels, lines and marks, and the legend that names them.

Everything that screen and print share is said here; where things lie is decided by who draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from engine.domain.numbers_as_text import unit_and_factor
from engine.domain.quantity import Coordinates
from engine.domain.values import Value
from engine.domain.world import MEASURED, WORLDS, World
from engine.experiments.results.break_even import Crossing
from engine.experiments.results.cells import Repeat
from engine.reports.intervals import Box

PUBLISHED: Literal["published"] = "published"
Source = World | Literal["published"]
"""The origin of a line's values: a world, or a paper."""


Mark = Literal["filled", "hollow", "dotted", "published"]
"""How the marks of a source look: filled if measured, hollow and dashed if predicted, hollow and dotted if
only the times are, and as a sign of its own if it is from a paper.
"""


def mark_of_source(source: Source) -> Mark:
    if source == PUBLISHED:
        return "published"
    if source == "calculated":
        return "dotted"
    return "filled" if source in MEASURED else "hollow"


class Tick(Value):
    value: float
    text: str


class Axis(Value):
    """An axis with its title and unit. `categories` are the labels in order where the axis has names; None
    where it has numbers in `unit`.

    Its numbers are written in `multiple`, which is so many (`factor`) of `unit` and stands in `heading`.
    `ticks` are the tested values where the axis is one of a factor with numbers; else who draws chooses them.
    """

    name: str
    title: str
    unit: str
    log: bool = False
    categories: tuple[str, ...] | None = None
    multiple: str
    factor: float
    heading: str
    ticks: tuple[Tick, ...] | None = None

    def text(self, value: float) -> str:
        """A number of the axis as it is written, without the unit."""
        return number_text(value / self.factor)


def axis_of(
    name: str,
    title: str,
    unit: str,
    values: Iterable[float | None],
    *,
    log: bool = False,
    categories: tuple[str, ...] | None = None,
    tested: bool = False,
) -> Axis:
    """The axis of `values`, in the multiple of `unit` in which they are easy to read; `tested`: each of them
    is a tick.
    """
    known = sorted({value for value in values if value is not None})
    multiple, factor = unit_and_factor(unit, known)
    heading = f"{title} ({multiple})" if multiple and categories is None else title
    ticks = tuple(Tick(value=value, text=number_text(value / factor)) for value in known)
    return Axis(
        name=name,
        title=title,
        unit=unit,
        log=log,
        categories=categories,
        multiple=multiple,
        factor=factor,
        heading=heading,
        ticks=ticks if tested else None,
    )


def number_text(number: float) -> str:
    """Six significant digits, and from 10 000 on those before the point in groups of three: "12 345"."""
    if abs(number) < 10_000:
        return f"{number:.6g}"
    text = f"{number:,.6g}"
    return (f"{number:,.0f}" if "e+" in text else text).replace(",", " ")


class Spot(Value):
    """One point, bar or field. `x` is a number, or a label of the axis' categories. Without a value `y` is
    None and `problem` says why. `low` and `high` bound the 95 % interval, where there are several seeds.
    `left_out` are the values of runs that are not valid, which are in none of these. `box` is that of the
    repeats in a figure of boxes; `note` is one more thing to know: the place in the paper, runs that do not
    count, the point in a scatter plot.
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
    left_out: tuple[Repeat, ...] = ()
    box: Box | None = None
    note: str = ""


class Line(Value):
    """The spots of one level of the series from one source. `same_as` is the label of the line that it is one
    computation with; that one is `drawn` for both, under the `name` of all of them, but in a heat map, which
    has all of its rows.
    """

    label: str
    world: Source
    mark: Mark
    spots: tuple[Spot, ...]
    same_as: str = ""
    name: str
    drawn: bool = True


class Panel(Value):
    """A part of a figure with its own lines. `label` is that of the facet, "" if there is only one panel."""

    label: str
    lines: tuple[Line, ...]
    crossings: tuple[Crossing, ...] = ()

    @property
    def drawn(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.drawn)


class SeriesEntry(Value):
    """What the legend says of the lines of one `label`: the `name` of all levels that they stand for. `place`
    is that of the label in the series, which chooses colour and shape.
    """

    label: str
    name: str
    place: int


class SourceEntry(Value):
    source: Source
    mark: Mark


class Legend(Value):
    """Levels of the series where there are several, in their order; and sources from the quickest to the
    slowest and then papers, unless the series is of them. `left_out` is what a crossed mark is called, "" if
    there are none.
    """

    series: tuple[SeriesEntry, ...]
    sources: tuple[SourceEntry, ...]
    left_out: str


def legend_of(series: Sequence[str], panels: Iterable[Panel]) -> Legend:
    lines = [line for panel in panels for line in panel.drawn]
    names = {line.label: line.name for line in lines}
    sources: list[Source] = [one for one in (*WORLDS, PUBLISHED) if any(line.world == one for line in lines)]
    entries = [
        SeriesEntry(label=label, name=names[label], place=place)
        for place, label in enumerate(series)
        if label in names
    ]
    has_left_out = any(spot.left_out for line in lines for spot in line.spots)
    return Legend(
        series=tuple(entries) if len(series) > 1 else (),
        sources=()
        if set(sources) <= set(names)
        else tuple(SourceEntry(source=one, mark=mark_of_source(one)) for one in sources),
        left_out="not valid, left out" if has_left_out else "",
    )


class FigureData(Value):
    """A figure with everything that it shows. `series` are all labels in their order, so that colours do not
    change between panels; of a heat map they are the rows, and `y` is the colour. `heading` is what a printed
    figure is called: its title, or the question of the experiment.
    """

    name: str
    title: str
    heading: str
    kind: str
    caption: str
    x: Axis
    y: Axis
    better: str | None
    series_title: str
    series: tuple[str, ...]
    panels: tuple[Panel, ...]
    legend: Legend
