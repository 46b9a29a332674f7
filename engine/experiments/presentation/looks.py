"""How a series and a kind of mark look in print: colour, shape, dashes, hatching.

What is hollow is dashed or dotted, what is filled is solid; a published value is a black diamond, a value
that is not valid is hollow and crossed. Colours are those of Okabe and Ito, Color Universal Design, 2008,
which people with colour blindness can tell apart; marks and hatching differ, too, for paper without colours.
"""

from __future__ import annotations

from typing import Any

from engine.experiments.presentation.axes import TICK_POINTS
from engine.experiments.presentation.figure_values import FigureData, Line, Mark

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h", "d", "8", "H")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "----", "++++", "||||", "oo")
DASHES: dict[Mark, str] = {"filled": "-", "hollow": "--", "dotted": ":"}
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": TICK_POINTS,
    "ytick.labelsize": TICK_POINTS,
    "legend.fontsize": TICK_POINTS,
    "figure.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.columnspacing": 1.0,
    "legend.handletextpad": 0.4,
    "lines.markersize": 4.5,
    "lines.linewidth": 1.2,
    "text.parse_math": False,  # people's words are no formulas
    "pdf.fonttype": 42,  # TrueType, whole text stays text
    "svg.fonttype": "path",  # outlines: the file needs no font of the reader
    "svg.hashsalt": "edgeloom",
}


def place_of(figure: FigureData, line: Line) -> int:
    return figure.series.index(line.label) if line.label in figure.series else 0


def mark_of(place: int, mark: Mark) -> dict[str, Any]:
    """The shape and colour of a series, for lines and their legend; `place` is its place in the figure."""
    colour = COLOURS[place % len(COLOURS)]
    if mark == "published":
        return {"color": "black", "marker": "D", "markerfacecolor": colour, "linestyle": "none"}
    return {
        "color": colour,
        "marker": MARKERS[place % len(MARKERS)],
        "markerfacecolor": colour if mark == "filled" else "white",
        "linestyle": DASHES[mark],
    }


def crossed(colour: str) -> list[dict[str, Any]]:
    """A value that is not valid: two marks on each other."""
    about = {"color": colour, "linestyle": "none", "zorder": 4}
    return [
        about | {"marker": "o", "markerfacecolor": "white", "markersize": 6},
        about | {"marker": "x", "markersize": 3.5},
    ]


def bar_of(place: int, mark: Mark) -> dict[str, Any]:
    colour = COLOURS[place % len(COLOURS)]
    hatch = HATCHES[place % len(HATCHES)]
    if mark == "filled":
        return {"facecolor": colour, "edgecolor": "black", "hatch": hatch, "linewidth": 0.6}
    return {
        "facecolor": "white",
        "edgecolor": colour,
        "hatch": hatch,
        "linewidth": 1.0,
        "linestyle": DASHES[mark],
    }
