"""Axes of printed figures: scales, which ticks have room, and labels in lines."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from engine.experiments.presentation.figure_values import Axis, FigureData, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_TICK_FRACTION = 0.14
"""Least distance of two ticks at tested values, of the length of the axis."""

TICK_POINTS = 7
"""Size of the font of ticks, and of the legend."""

SLANTED_LETTERS = 24
"""The longest slanted label; longer ones stand upright, in lines of so many letters."""

EM = 0.58
"""Mean width of a letter of DejaVu Sans, of the size of the font; rather too much."""


def scale_x(axes: Axes, figure: FigureData, panel: Panel, inches: float) -> None:
    if figure.x.categories is not None:
        label_categories(axes, figure.x.categories, inches)
        return
    set_scale(axes, "x", figure.x)
    here = {spot.x for line in panel.drawn for spot in line.spots}
    ticks = [tick for tick in figure.x.ticks or () if tick.value in here]
    if ticks:
        kept = labelled([tick.value for tick in ticks], figure.x.log)
        axes.set_xticks(kept, [tick.text for tick in ticks if tick.value in kept])
        axes.set_xticks([], minor=True)


def label_categories(axes: Axes, categories: Sequence[str], inches: float) -> None:
    """The labels in lines side by side where they have room in `inches`, else aslant, else upright."""
    slot = inches / max(1, len(categories))
    letters = int(slot * 72 / (EM * TICK_POINTS)) - 1
    words = [word for label in categories for word in label.split()]
    longest = max(map(len, categories), default=0)
    look: dict[str, Any] = {}
    shown = list(categories)
    if max(map(len, words), default=0) <= letters:
        shown = [wrapped(label, letters) for label in categories]
    elif slot * 72 >= 2.7 * TICK_POINTS and longest <= SLANTED_LETTERS:
        look = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    else:
        look = {"rotation": 90}
        if slot * 72 >= 3 * TICK_POINTS:
            shown = [wrapped(label, SLANTED_LETTERS) for label in categories]
    axes.set_xticks(range(len(categories)), shown, **look)


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
    """Format ticks as numbers without the unit, which is in the title."""
    from matplotlib.ticker import FuncFormatter

    drawn.set_major_formatter(FuncFormatter(lambda value, _: axis.text(value)))
    if axis.log:
        drawn.set_minor_formatter(FuncFormatter(lambda value, _: _between_decades(drawn, value, axis)))


def _between_decades(drawn: Any, value: float, axis: Axis) -> str:
    """Label 2 and 5 of a decade, too, where an axis of less than two decades has one or two others; on less
    than half a decade every one.
    """
    low, high = sorted(drawn.get_view_interval())
    is_short = low > 0 and high < 100 * low
    digit = round(value / 10 ** math.floor(math.log10(value) + 1e-9))
    return axis.text(value) if is_short and (digit in (2, 5) or high < 3 * low) else ""


def letters_in(inches: float, points: float) -> int:
    """How many letters of a font of this size have room there."""
    return max(8, int(inches * 72 / (EM * points)))


def wrapped(text: str, letters: int) -> str:
    """`text` in lines of at most so many letters; a word that is longer is broken."""
    return "\n".join(textwrap.wrap(text, letters)) or text
