"""Draws figures with matplotlib, as papers print them: SVG and PDF with the fonts in the file.

A prediction is hollow, an emulation filled, a published value a black diamond. Colours are those of Okabe and
Ito, Color Universal Design, 2008, which people with colour blindness can tell apart; markers differ, too.
"""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from engine.experiments.presentation.axes import axis_title, rotation_of, scale_x, set_scale
from engine.experiments.presentation.figure_values import PUBLISHED, FigureData, Line, Panel, Spot
from engine.experiments.presentation.heat_map import draw_heat_map, split_worlds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.columnspacing": 1.0,
    "legend.handletextpad": 0.3,
    "lines.markersize": 4.5,
    "lines.linewidth": 1.2,
    "pdf.fonttype": 42,  # TrueType, whole text stays text
    "svg.fonttype": "path",  # outlines: the file needs no font of the reader
    "svg.hashsalt": "edgeloom",
}
PANEL_INCHES = (4.2, 2.7)
MAX_COLUMNS = 3
LEGEND_COLUMNS = 4


def picture(figure: FigureData) -> Picture:
    """The figure, one panel per facet (of a heat map: and world), with one legend."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Picture

    panels = split_worlds(figure) if figure.kind == "heatmap" else list(figure.panels)
    columns = max(1, min(MAX_COLUMNS, len(panels)))
    lines = max(1, math.ceil(len(panels) / columns))
    with rc_context(STYLE):
        drawn = Picture(
            figsize=(PANEL_INCHES[0] * columns, PANEL_INCHES[1] * lines + 0.4), layout="constrained"
        )
        grid = drawn.subplots(lines, columns, squeeze=False)
        places = list(grid.flat)
        for place, panel in zip(places, panels, strict=False):
            _draw(place, figure, panel)
        for place in places[len(panels) :]:
            place.set_visible(False)
        if figure.kind != "heatmap":
            _legend(drawn, figure, panels, columns)
    return drawn


def svg(figure: FigureData) -> str:
    return _saved(figure, "svg").decode()


def pdf(figure: FigureData) -> bytes:
    return _saved(figure, "pdf")


def png(figure: FigureData) -> bytes:
    return _saved(figure, "png")


def _saved(figure: FigureData, kind: Literal["svg", "pdf", "png"]) -> bytes:
    """The same figure gives the same bytes: no date, and no random names in an SVG."""
    from matplotlib import rc_context

    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it reports every table of a font
    target = io.BytesIO()
    dates: dict[str, dict[str, str | None]] = {
        "svg": {"Date": None},
        "pdf": {"CreationDate": None},
        "png": {},
    }
    with rc_context(STYLE):
        picture(figure).savefig(target, format=kind, dpi=200, metadata=dates[kind])
    return target.getvalue()


def _draw(axes: Axes, figure: FigureData, panel: Panel) -> None:
    if figure.kind == "heatmap":
        draw_heat_map(axes, figure, panel)
        return
    if figure.kind == "bars":
        _draw_bars(axes, figure, panel)
    else:
        for line in panel.lines:
            _draw_line(axes, figure, line)
    if figure.kind != "bars":
        scale_x(axes, figure, panel)
    set_scale(axes, "y", figure.y)
    axes.set_ylabel(axis_title(figure.y))
    axes.set_xlabel(axis_title(figure.x))
    if panel.label:
        axes.set_title(panel.label)


def _draw_line(axes: Axes, figure: FigureData, line: Line) -> None:
    colour = _colour(figure, line)
    marker = MARKERS[COLOURS.index(colour)]
    known = [spot for spot in line.spots if spot.y is not None]
    xs = [_x(figure, spot) for spot in known]
    ys = [spot.y or 0.0 for spot in known]
    look: dict[str, Any] = {"color": colour, "marker": marker}
    if line.world == PUBLISHED:
        look = {"color": "black", "marker": "D", "markerfacecolor": colour, "linestyle": "none", "zorder": 3}
    else:
        is_hollow = line.world != "emulated"
        look |= {"markerfacecolor": "white" if is_hollow else colour}
        look |= {"linestyle": "none" if figure.kind == "scatter" else "--" if is_hollow else "-"}
    axes.errorbar(xs, ys, yerr=_errors(known), capsize=2, elinewidth=0.8, **look)


def _draw_bars(axes: Axes, figure: FigureData, panel: Panel) -> None:
    """Groups of bars per category; a published value is a diamond on its bar."""
    categories = list(figure.x.categories or ())
    bars = [line for line in panel.lines if line.world != PUBLISHED]
    width = 0.8 / max(1, len(bars))
    offsets: dict[str, float] = {}
    for position, line in enumerate(bars):
        offset = (position - (len(bars) - 1) / 2) * width
        offsets.setdefault(line.label, offset)
        _draw_bars_of(axes, figure, line, categories, offset, width)
    for line in panel.lines:
        if line.world == PUBLISHED:
            xs = [categories.index(str(spot.x)) + offsets.get(line.label, 0.0) for spot in line.spots]
            axes.plot(xs, [spot.y or 0.0 for spot in line.spots], "D", color="black", zorder=3)
    axes.set_xticks(range(len(categories)), categories, rotation=rotation_of(categories))
    axes.grid(visible=False, axis="x")


def _draw_bars_of(
    axes: Axes, figure: FigureData, line: Line, categories: Sequence[str], offset: float, width: float
) -> None:
    """The bars of one line; where it has no value, words instead of a bar."""
    colour = _colour(figure, line)
    known = [spot for spot in line.spots if spot.y is not None]
    axes.bar(
        [categories.index(str(spot.x)) + offset for spot in known],
        [spot.y or 0.0 for spot in known],
        width * 0.92,
        yerr=_errors(known),
        capsize=2,
        facecolor=colour if line.world == "emulated" else "white",
        edgecolor=colour,
        linewidth=1.2,
        error_kw={"elinewidth": 0.8},
    )
    for spot in line.spots:
        if spot.y is None:
            axes.annotate(
                "no result",
                (categories.index(str(spot.x)) + offset, 0),
                xycoords=("data", "axes fraction"),
                xytext=(0, 3),
                textcoords="offset points",
                rotation=90,
                ha="center",
                va="bottom",
                fontsize=6,
                color="#666666",
            )


def _colour(figure: FigureData, line: Line) -> str:
    return COLOURS[figure.series.index(line.label) % len(COLOURS) if line.label in figure.series else 0]


def _errors(spots: Sequence[Spot]) -> list[list[float]] | None:
    """Lengths below and above the values, for those with an interval; None if there are none."""
    if not any(spot.low is not None for spot in spots):
        return None
    ends = [(spot.y or 0.0, spot.low, spot.high) for spot in spots]
    return [
        [0.0 if low is None else max(0.0, y - low) for y, low, _ in ends],
        [0.0 if high is None else max(0.0, high - y) for y, _, high in ends],
    ]


def _legend(drawn: Picture, figure: FigureData, panels: Iterable[Panel], columns: int) -> None:
    """Colours are levels of the series; how a mark is filled is its world."""
    from matplotlib.lines import Line2D

    lines = [line for panel in panels for line in panel.lines]
    labels = [label for label in figure.series if any(line.label == label for line in lines)]
    marks = []
    if len(figure.series) > 1:
        for label in labels:
            index = figure.series.index(label) % len(COLOURS)
            marker = MARKERS[index] if figure.kind != "bars" else "s"
            marks.append(Line2D([], [], color=COLOURS[index], marker=marker, label=label, linestyle="none"))
    worlds = list(dict.fromkeys(line.world for line in lines))
    if len(worlds) > 1:
        for world in worlds:
            face = {"emulated": "black", PUBLISHED: "#999999"}.get(world, "white")
            marker = "D" if world == PUBLISHED else "o"
            name = "predicted" if world == "simulated" else world
            marks.append(
                Line2D(
                    [], [], color="black", marker=marker, markerfacecolor=face, label=name, linestyle="none"
                )
            )
    if marks:
        drawn.legend(
            handles=marks, loc="outside upper center", ncols=min(LEGEND_COLUMNS * columns, len(marks))
        )


def _x(figure: FigureData, spot: Spot) -> float:
    if figure.x.categories is not None:
        return float(figure.x.categories.index(str(spot.x)))
    return float(spot.x)
