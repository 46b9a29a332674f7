"""The legend of a drawn figure: below it, in as many columns as have room."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from engine.domain.world import MEASURED
from engine.experiments.presentation.axes import TICK_POINTS, letters_in, wrapped
from engine.experiments.presentation.figure_values import PUBLISHED, FigureData, Panel
from engine.experiments.presentation.looks import bar_of, crossed, mark_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

MOST_COLUMNS = 8
HANDLE_LETTERS = 8
"""Room for a mark and the space around it, in letters."""

NARROWEST = 16
"""Letters of a line below which a label gets fewer neighbours instead of more lines."""


def draw_legend(drawn: Picture, figure: FigureData, panels: Iterable[Panel]) -> None:
    """A label that is wider than its column is broken into lines."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    width = drawn.get_figwidth()
    entries = entries_of(figure, list(panels))
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


def entries_of(figure: FigureData, panels: list[Panel]) -> list[tuple[Any, str]]:
    """The entries of a legend: shapes and colours are levels of the series; how a mark is filled is its
    world.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    lines = [line for panel in panels for line in panel.lines]
    worlds = list(dict.fromkeys(line.world for line in lines))
    labels = [label for label in figure.series if any(line.label == label for line in lines)]
    first = next((world for world in (*MEASURED, *worlds) if world in worlds and world != PUBLISHED), "")
    found: list[tuple[Any, str]] = []
    if len(figure.series) > 1:
        for label in labels:
            place = figure.series.index(label)
            if figure.kind == "bars":
                found.append((Patch(**bar_of(place, first)), label))
            else:
                look = mark_of(place, first) | ({"linestyle": "none"} if figure.kind == "scatter" else {})
                found.append((Line2D([], [], **look), label))
    if len(worlds) > 1 and not set(worlds) <= set(labels):
        for world in worlds:
            black = {"color": "black"} if figure.kind == "bars" else {}
            face = "white" if world not in (*MEASURED, PUBLISHED) else "#888888"
            if figure.kind == "bars" and world != PUBLISHED:
                dashes: dict[str, Any] = {} if world in MEASURED else {"linestyle": "--"}
                handle: Any = Patch(facecolor=face, edgecolor="black", **dashes)
            else:
                look = mark_of(0, world) | black | {"color": "black", "markerfacecolor": face}
                handle = Line2D([], [], **look)
            found.append((handle, world))
    if any(spot.left_out for line in lines for spot in line.spots):
        marks = tuple(Line2D([], [], **look) for look in crossed("black"))
        found.append((marks, "not valid, left out"))
    return found


def _handlers() -> dict[type, Any]:
    """How the legend draws handles: marks of a tuple lie on each other."""
    from matplotlib.legend_handler import HandlerTuple

    return {tuple: HandlerTuple(ndivide=1)}
