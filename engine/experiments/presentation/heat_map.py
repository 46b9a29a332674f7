"""Draws heat maps with matplotlib: a field per cell with its value, a panel per world."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from engine.experiments.presentation.axes import axis_title, format_ticks, rotation_of
from engine.experiments.presentation.figure_values import FigureData, Panel
from engine.experiments.results.numbers_as_text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_heat_map(axes: Axes, figure: FigureData, panel: Panel) -> None:
    columns, lines = list(figure.x.categories or ()), list(figure.series)
    values = [[math.nan] * len(columns) for _ in lines]
    for line in panel.lines:
        for spot in line.spots:
            if spot.y is not None:
                values[lines.index(line.label)][columns.index(str(spot.x))] = spot.y
    from matplotlib.colors import LogNorm, Normalize

    known = [value for row in values for value in row if not math.isnan(value)]
    is_log = figure.y.log and bool(known) and min(known) > 0
    norm = (LogNorm if is_log else Normalize)(min(known, default=0.0), max(known, default=1.0))
    image = axes.imshow(values, aspect="auto", cmap="viridis", norm=norm)
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            text = "–" if math.isnan(value) else shown(value, figure.y.unit)
            is_dark = not math.isnan(value) and norm(value) < 0.6
            axes.text(x, y, text, ha="center", va="center", fontsize=6, color="white" if is_dark else "black")
    axes.set_xticks(range(len(columns)), columns, rotation=rotation_of(columns))
    axes.set_yticks(range(len(lines)), lines)
    axes.set_xlabel(axis_title(figure.x))
    axes.set_ylabel(figure.series_title)
    axes.grid(visible=False)
    axes.set_title(panel.label or axis_title(figure.y))
    if axes.figure is not None:
        bar = axes.figure.colorbar(image, ax=axes, label=axis_title(figure.y))
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
