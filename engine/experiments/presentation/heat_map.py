"""Draws heat maps with matplotlib: a field per cell with its value, a panel per world."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from engine.domain.numbers_as_text import shown_in
from engine.experiments.presentation.axes import (
    EM,
    TICK_POINTS,
    format_ticks,
    label_categories,
    letters_in,
    wrapped,
)
from engine.experiments.presentation.figure_values import FigureData, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


ROW_LETTERS = 22
VALUE_POINTS, UPRIGHT_INCHES, LINE_INCHES = 6, 0.32, 0.15


def fields_width(figure: FigureData, inches: float) -> float:
    """Inches of a panel that its fields have: the rest is for labels of rows and the colours' bar."""
    longest = max((min(len(label), ROW_LETTERS) for label in figure.series), default=0)
    return max(0.5, inches - 0.6 - longest * EM * TICK_POINTS / 72)


def are_upright(figure: FigureData, inches: float) -> bool:
    """Whether values stand upright in their fields, since they have no room side by side."""
    spots = (spot for panel in figure.panels for line in panel.lines for spot in line.spots)
    longest = max((len(shown_in(spot.y, figure.y.factor)) for spot in spots if spot.y is not None), default=1)
    slot = fields_width(figure, inches) / max(1, len(figure.x.categories or ()))
    return longest > slot * 72 / (EM * VALUE_POINTS)


def height_of_rows(figure: FigureData, inches: float) -> float:
    """Inches that all rows need."""
    lines = max((wrapped(label, ROW_LETTERS).count("\n") + 1 for label in figure.series), default=1)
    upright = UPRIGHT_INCHES if are_upright(figure, inches) else 0.0
    return len(figure.series) * max(LINE_INCHES * lines, upright)


def draw_heat_map(axes: Axes, figure: FigureData, panel: Panel, inches: float) -> None:
    columns, lines = list(figure.x.categories or ()), list(figure.series)
    values = [[math.nan] * len(columns) for _ in lines]
    instead = {}
    for line in panel.lines:
        for spot in line.spots:
            at = lines.index(line.label), columns.index(str(spot.x))
            if spot.y is not None:
                values[at[0]][at[1]] = spot.y
            elif spot.left_out:
                instead[at] = "not\nvalid"
    from matplotlib.colors import LogNorm, Normalize

    known = [value for row in values for value in row if not math.isnan(value)]
    is_log = figure.y.log and bool(known) and min(known) > 0
    norm = (LogNorm if is_log else Normalize)(min(known, default=0.0), max(known, default=1.0))
    image = axes.imshow(values, aspect="auto", cmap="viridis", norm=norm)
    rotation = 90 if are_upright(figure, inches) else 0
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            text = instead.get((y, x), "–") if math.isnan(value) else shown_in(value, figure.y.factor)
            is_dark = not math.isnan(value) and norm(value) < 0.6
            axes.text(
                x,
                y,
                text,
                ha="center",
                va="center",
                fontsize=VALUE_POINTS,
                rotation=rotation,
                color="white" if is_dark else "black",
            )
    label_categories(axes, columns, fields_width(figure, inches))
    axes.set_yticks(range(len(lines)), [wrapped(label, ROW_LETTERS) for label in lines])
    axes.set_xlabel(wrapped(figure.x.heading, letters_in(inches, 8)))
    axes.set_ylabel(figure.series_title)
    axes.grid(visible=False)
    axes.set_title(panel.label)
    if axes.figure is not None:
        title = wrapped(figure.y.heading, 28)
        bar = axes.figure.colorbar(image, ax=axes, label=title)
        format_ticks(bar.ax.yaxis, figure.y)


def split_worlds(figure: FigureData) -> list[Panel]:
    """A panel of its own per world, as one field has one colour."""
    found = []
    for panel in figure.panels:
        worlds = list(dict.fromkeys(line.world for line in panel.lines))
        for world in worlds:
            own = tuple(line for line in panel.lines if line.world == world)
            label = ", ".join(part for part in (panel.label, world if len(worlds) > 1 else "") if part)
            found.append(Panel(label=label, lines=own))
    return found
