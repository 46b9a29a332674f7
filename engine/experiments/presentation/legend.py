"""The legend of a drawn figure: below it, in as many columns as have room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.experiments.presentation.axes import TICK_POINTS, letters_in, wrapped
from engine.experiments.presentation.figure_values import FigureData, Mark
from engine.experiments.presentation.looks import DASHES, bar_of, crossed, mark_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

MOST_COLUMNS = 8
HANDLE_LETTERS = 8
"""Room for a mark and the space around it, in letters."""

NARROWEST = 16
"""Letters of a line below which a label gets fewer neighbours instead of more lines."""


def draw_legend(drawn: Picture, figure: FigureData) -> None:
    """A label that is wider than its column is broken into lines."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    width = drawn.get_figwidth()
    entries = entries_of(figure)
    canvas: Any = FigureCanvasAgg(drawn)
    renderer = canvas.get_renderer()
    longest = max((len(label) for _, label in entries), default=0)
    for columns in range(min(MOST_COLUMNS, len(entries)), 0, -1):
        letters = letters_in(width / columns, TICK_POINTS) - HANDLE_LETTERS
        if columns > 1 and letters < min(NARROWEST, longest):
            continue
        legend = drawn.legend(
            [handle for handle, _ in entries],
            [wrapped(label, letters) for _, label in entries],
            loc="outside lower center",
            ncols=columns,
            handler_map=_handlers(),
        )
        if columns == 1 or legend.get_window_extent(renderer).width <= (width - 0.1) * drawn.dpi:
            return
        legend.remove()


def entries_of(figure: FigureData) -> list[tuple[Any, str]]:
    """The entries of a legend: shapes and colours are levels of the series; how a mark is filled is its
    source, where there are several.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    legend, is_bars = figure.legend, figure.kind == "bars"
    marks = {line.mark for panel in figure.panels for line in panel.drawn}
    kinds: tuple[Mark, ...] = ("filled", "hollow", "dotted")
    usual: Mark = next((kind for kind in kinds if kind in marks), "hollow")
    found: list[tuple[Any, str]] = []
    for series in legend.series:
        if is_bars:
            found.append((Patch(**bar_of(series.place, usual)), series.name))
        else:
            look = mark_of(series.place, usual)
            look |= {"linestyle": "none"} if figure.kind == "scatter" else {}
            found.append((Line2D([], [], **look), series.name))
    for source in legend.sources if len(legend.sources) > 1 else ():
        face = "#888888" if source.mark in ("filled", "published") else "white"
        if is_bars and source.mark != "published":
            look = {"linestyle": DASHES[source.mark]}
            handle: Any = Patch(facecolor=face, edgecolor="black", **look)
        else:
            look = mark_of(0, source.mark) | {"color": "black", "markerfacecolor": face}
            handle = Line2D([], [], **look)
        found.append((handle, source.source))
    if legend.left_out:
        crosses = tuple(Line2D([], [], **look) for look in crossed("black"))
        found.append((crosses, legend.left_out))
    return found


def _handlers() -> dict[type, Any]:
    """How the legend draws handles: marks of a tuple lie on each other."""
    from matplotlib.legend_handler import HandlerTuple

    return {tuple: HandlerTuple(ndivide=1)}
