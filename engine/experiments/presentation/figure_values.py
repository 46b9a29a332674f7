"""The plain values of a figure: axes, panels, lines and marks."""

from __future__ import annotations

from typing import Literal

from engine.domain.quantity import Coordinates
from engine.domain.values import Value
from engine.domain.world import World
from engine.experiments.results.break_even import Crossing
from engine.experiments.results.cells import Repeat
from engine.reports.intervals import Box

PUBLISHED = "published"
Source = World | Literal["published"]
"""The origin of a line's values: a world, or a paper."""


class Axis(Value):
    """An axis with its title and unit. `categories` are the labels in order where the axis has names; None
    where it has numbers in `unit`.
    """

    name: str
    title: str
    unit: str
    log: bool = False
    categories: tuple[str, ...] | None = None


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
    computation with, which is drawn for both; `also` are the labels of those that this one stands for.
    """

    label: str
    world: Source
    spots: tuple[Spot, ...]
    same_as: str = ""
    also: tuple[str, ...] = ()


class Panel(Value):
    """A part of a figure with its own lines. `label` is that of the facet, "" if there is only one panel."""

    label: str
    lines: tuple[Line, ...]
    crossings: tuple[Crossing, ...] = ()


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

    @property
    def folded(self) -> FigureData:
        """What is drawn: one line for those that are one computation, under all of their names. A heat map
        has its rows as they are.
        """
        also = {line.label: line.also for panel in self.panels for line in panel.lines if line.also}
        if not also or self.kind == "heatmap":
            return self
        names = {label: ", ".join((label, *also.get(label, ()))) for label in self.series}

        def drawn(line: Line) -> Line:
            return line.model_copy(update={"label": names.get(line.label, line.label)})

        panels = tuple(
            panel.model_copy(update={"lines": tuple(drawn(line) for line in panel.lines if not line.same_as)})
            for panel in self.panels
        )
        return self.model_copy(
            update={"series": tuple(names[label] for label in self.series), "panels": panels}
        )
