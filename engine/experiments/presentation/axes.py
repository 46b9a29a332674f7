"""Axes of drawn figures: titles, scales, and ticks at tested values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from engine.experiments.presentation.figure_values import Axis, FigureData, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_TICK_FRACTION = 0.24
"""Least distance of two ticks at tested values, of the length of the axis."""


def scale_x(axes: Axes, figure: FigureData, panel: Panel) -> None:
    if figure.x.categories is not None:
        categories = list(figure.x.categories)
        axes.set_xticks(range(len(categories)), categories, rotation=rotation_of(categories))
        return
    set_scale(axes, "x", figure.x)
    values = sorted(
        {float(spot.x) for line in panel.lines for spot in line.spots if not isinstance(spot.x, str)}
    )
    if figure.kind == "lines" and values:
        axes.set_xticks(labelled(values, figure.x.log))
        axes.set_xticks([], minor=True)


def labelled(values: Sequence[float], is_log: bool) -> list[float]:
    """The first and the last of the rising `values`, and those between them that leave room for labels."""
    places = [math.log(value) if is_log and value > 0 else value for value in values]
    least = MIN_TICK_FRACTION * (places[-1] - places[0])
    kept = [0]
    for index, place in enumerate(places[:-1]):
        if min(place - places[kept[-1]], places[-1] - place) >= least > 0:
            kept.append(index)
    return [values[index] for index in dict.fromkeys((*kept, len(values) - 1))]


def set_scale(axes: Axes, which: Literal["x", "y"], axis: Axis) -> None:
    if axis.log:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    format_ticks(axes.xaxis if which == "x" else axes.yaxis, axis)


def format_ticks(drawn: Any, axis: Axis) -> None:
    from matplotlib.ticker import EngFormatter, FuncFormatter, PercentFormatter

    if axis.unit == "fraction":
        drawn.set_major_formatter(PercentFormatter(xmax=1.0))
    elif axis.unit:
        drawn.set_major_formatter(EngFormatter(unit=axis.unit))
    if axis.log:
        drawn.set_minor_formatter(FuncFormatter(lambda value, _: _between_decades(drawn, value)))


def _between_decades(drawn: Any, value: float) -> str:
    """2 and 5 of a decade have labels, too, where an axis of less than two decades has one or two others."""
    low, high = sorted(drawn.get_view_interval())
    is_short = low > 0 and high < 100 * low
    has_label = round(value / 10 ** math.floor(math.log10(value) + 1e-9)) in (2, 5)
    return str(drawn.get_major_formatter()(value)) if is_short and has_label else ""


def axis_title(axis: Axis) -> str:
    return f"{axis.title} ({axis.unit})" if axis.unit and axis.unit != "fraction" else axis.title


def rotation_of(labels: Sequence[str]) -> float:
    return 30.0 if sum(len(label) for label in labels) > 40 else 0.0
