"""Axes of drawn figures: titles, scales, and ticks at tested values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from engine.experiments.presentation.figure_values import Axis, FigureData, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_TICK_FRACTION = 0.19
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
        axes.set_xticks(_apart(values, figure.x.log))
        axes.set_xticks([], minor=True)


def _apart(values: Sequence[float], is_log: bool) -> list[float]:
    """Those of the rising `values` that are far enough from the one before to be labelled."""
    places = [math.log(value) if is_log and value > 0 else value for value in values]
    least = MIN_TICK_FRACTION * (places[-1] - places[0])
    kept = [0]
    for index, place in enumerate(places):
        if place - places[kept[-1]] >= least > 0:
            kept.append(index)
    return [values[index] for index in kept]


def set_scale(axes: Axes, which: Literal["x", "y"], axis: Axis) -> None:
    if axis.log:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    format_ticks(axes.xaxis if which == "x" else axes.yaxis, axis)


def format_ticks(drawn: Any, axis: Axis) -> None:
    from matplotlib.ticker import EngFormatter, NullFormatter, PercentFormatter

    if axis.unit == "fraction":
        drawn.set_major_formatter(PercentFormatter(xmax=1.0))
    elif axis.unit:
        drawn.set_major_formatter(EngFormatter(unit=axis.unit))
    if axis.log:
        drawn.set_minor_formatter(NullFormatter())


def axis_title(axis: Axis) -> str:
    return f"{axis.title} ({axis.unit})" if axis.unit and axis.unit != "fraction" else axis.title


def rotation_of(labels: Sequence[str]) -> float:
    return 30.0 if sum(len(label) for label in labels) > 40 else 0.0
