"""Draws figures with matplotlib, as papers print them: SVG and PDF at the width of a column.

The fonts and the experiment's digest are in the file.
"""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from engine.domain.errors import SpecError
from engine.experiments.presentation.axes import (
    label_categories,
    letters_in,
    scale_x,
    set_scale,
    wrapped,
)
from engine.experiments.presentation.figure_values import FigureData, Line, Panel, Spot
from engine.experiments.presentation.heat_map import draw_heat_map, height_of_rows, split_worlds
from engine.experiments.presentation.legend import draw_legend
from engine.experiments.presentation.looks import COLOURS, STYLE, bar_of, crossed, mark_of, place_of
from engine.experiments.presentation.origin import Origin

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

WIDTHS: Mapping[str, float] = MappingProxyType({"ieee-1": 3.5, "ieee-2": 7.16, "acm-1": 3.33, "acm-2": 7.0})
"""Size → inches: one and two columns of IEEEtran (21 pc, 43 pc) and of acmart's sigconf (241 pt, 506 pt)."""

ONE_PANEL, MANY_PANELS = "ieee-1", "ieee-2"
LEAST_PANEL_INCHES = 2.2
PANEL_HEIGHTS = (1.6, 2.4)
"""Least and most inches of a panel's height: it is 0.62 of the width between them."""

ROOM_INCHES, MOST_LAYOUTS = 4.0, 4
"""What the first layout has besides the panels: later ones have what titles and the legend need."""


def width_of(size: str, num_panels: int) -> float:
    """Inches of a figure's width; "" is one column, or two for several panels. Raises `SpecError` for an
    unknown size.
    """
    chosen = size or (ONE_PANEL if num_panels == 1 else MANY_PANELS)
    if chosen not in WIDTHS:
        raise SpecError(
            f"There is no size {size[:20]}: choose one of {', '.join(WIDTHS)}.", [("size", "unknown")]
        )
    return WIDTHS[chosen]


def picture(figure: FigureData, size: str = "") -> Picture:
    """The figure, one panel per facet (of a heat map: and world), with one legend below. Raises `SpecError`
    for an unknown size.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Picture

    panels = split_worlds(figure) if figure.kind == "heatmap" else list(figure.panels)
    width = width_of(size, len(panels))
    columns = max(1, min(len(panels), int(width / LEAST_PANEL_INCHES)))
    lines = max(1, math.ceil(len(panels) / columns))
    least, most = PANEL_HEIGHTS
    panel_width = width / columns - 0.6
    panel_height = min(most, max(least, 0.62 * panel_width))
    if figure.kind == "heatmap":
        panel_height = max(panel_height, height_of_rows(figure, panel_width))
    with rc_context(STYLE):
        drawn = Picture(figsize=(width, panel_height * lines + ROOM_INCHES), layout="constrained")
        places = list(drawn.subplots(lines, columns, squeeze=False).flat)
        for place, panel in zip(places, panels, strict=False):
            _draw(place, figure, panel, panel_width, panel_height)
        for place in places[len(panels) :]:
            place.remove()
        drawn.suptitle(wrapped(figure.heading, letters_in(width, STYLE["figure.titlesize"])))
        if figure.kind != "heatmap":
            draw_legend(drawn, figure)
        _grow(drawn, places[: len(panels)], panel_height, lines)
    return drawn


def _grow(drawn: Picture, axes: Sequence[Axes], height: float, lines: int) -> None:
    """Make the figure so high that titles, labels and the legend leave every panel its height."""
    layout = drawn.get_layout_engine()
    assert layout is not None
    for _ in range(MOST_LAYOUTS):
        layout.execute(drawn)
        have = min((one.get_position().height for one in axes), default=1.0) * drawn.get_figheight()
        if abs(have - height) < 0.05:
            return
        drawn.set_figheight(drawn.get_figheight() + (height - have) * lines)


def svg(figure: FigureData, origin: Origin, size: str = "") -> str:
    return _saved(figure, origin, size, "svg").decode()


def pdf(figure: FigureData, origin: Origin, size: str = "") -> bytes:
    return _saved(figure, origin, size, "pdf")


def _saved(figure: FigureData, origin: Origin, size: str, kind: Literal["svg", "pdf"]) -> bytes:
    """The same figure gives the same bytes: no date, and no random names in an SVG."""
    from matplotlib import rc_context

    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it reports every table of a font
    target = io.BytesIO()
    about: dict[str, dict[str, Any]] = {
        "svg": {"Date": None, "Description": origin.text},
        "pdf": {"CreationDate": None, "Subject": origin.text},
    }
    with rc_context(STYLE):
        drawn = picture(figure, size)
        drawn.savefig(target, format=kind, metadata={"Title": figure.heading, **about[kind]})
    return target.getvalue()


def _draw(axes: Axes, figure: FigureData, panel: Panel, width: float, height: float) -> None:
    if figure.kind == "heatmap":
        draw_heat_map(axes, figure, panel, width)
        return
    if figure.kind in ("bars", "boxes"):
        _draw_bars(axes, figure, panel, width)
    else:
        for line in panel.drawn:
            _draw_line(axes, figure, line)
        scale_x(axes, figure, panel, width)
    set_scale(axes, "y", figure.y)
    points = STYLE["axes.labelsize"]
    axes.set_ylabel(wrapped(figure.y.heading, letters_in(height, points)))
    axes.set_xlabel(wrapped(figure.x.heading, letters_in(width, points)))
    if panel.label:
        axes.set_title(wrapped(panel.label, letters_in(width, points)))


def _draw_line(axes: Axes, figure: FigureData, line: Line) -> None:
    look = mark_of(place_of(figure, line), line.mark)
    known = [spot for spot in line.spots if spot.y is not None]
    if figure.kind == "scatter":
        look |= {"linestyle": "none"}
    if line.mark == "published":
        look |= {"zorder": 3}
    axes.errorbar(
        [_x(figure, spot) for spot in known],
        [spot.y or 0.0 for spot in known],
        yerr=_errors(known),
        capsize=2,
        elinewidth=0.8,
        **look,
    )
    _draw_left_out(axes, figure, line, 0.0)


def _draw_left_out(axes: Axes, figure: FigureData, line: Line, offset: float) -> None:
    """What is not valid: hollow and crossed, on no line."""
    found = [(_x(figure, spot) + offset, one.value) for spot in line.spots for one in spot.left_out]
    if found:
        for look in crossed(COLOURS[place_of(figure, line) % len(COLOURS)]):
            axes.plot([x for x, _ in found], [y for _, y in found], **look)


def _draw_bars(axes: Axes, figure: FigureData, panel: Panel, inches: float) -> None:
    """Draw groups of bars per category; a published value is a diamond on its bar."""
    categories = list(figure.x.categories or ())
    bars = [line for line in panel.drawn if line.mark != "published"]
    width = 0.8 / max(1, len(bars))
    offsets: dict[str, float] = {}
    for position, line in enumerate(bars):
        offset = (position - (len(bars) - 1) / 2) * width
        offsets.setdefault(line.label, offset)
        _draw_bars_of(axes, figure, line, offset, width)
        _draw_left_out(axes, figure, line, offset)
    for line in panel.drawn:
        if line.mark == "published":
            xs = [_x(figure, spot) + offsets.get(line.label, 0.0) for spot in line.spots]
            axes.plot(xs, [spot.y or 0.0 for spot in line.spots], "D", color="black", zorder=3)
    label_categories(axes, categories, inches)
    axes.grid(visible=False, axis="x")


def _draw_bars_of(axes: Axes, figure: FigureData, line: Line, offset: float, width: float) -> None:
    """The bars of one line; where it has no value, words instead of a bar."""
    known = [spot for spot in line.spots if spot.y is not None]
    if figure.kind == "boxes":
        _draw_boxes(axes, figure, line, offset, width)
        return
    axes.bar(
        [_x(figure, spot) + offset for spot in known],
        [spot.y or 0.0 for spot in known],
        width * 0.92,
        yerr=_errors(known),
        capsize=2,
        error_kw={"elinewidth": 0.8},
        **bar_of(place_of(figure, line), line.mark),
    )
    for spot in line.spots:
        if spot.y is None and not spot.left_out:
            axes.annotate(
                "no result",
                (_x(figure, spot) + offset, 0),
                xycoords=("data", "axes fraction"),
                xytext=(0, 3),
                textcoords="offset points",
                rotation=90,
                ha="center",
                va="bottom",
                fontsize=6,
                color="#666666",
            )


def _draw_boxes(axes: Axes, figure: FigureData, line: Line, offset: float, width: float) -> None:
    """Draw quartiles, with whiskers from the least to the most value."""
    known = [(_x(figure, spot) + offset, spot.box) for spot in line.spots if spot.box is not None]
    boxes = [
        {"whislo": box.least, "q1": box.lower, "med": box.median, "q3": box.upper, "whishi": box.most}
        for _, box in known
    ]
    colour = {"color": COLOURS[place_of(figure, line) % len(COLOURS)]}
    axes.bxp(
        boxes,
        positions=[x for x, _ in known],
        widths=width * 0.8,
        showfliers=False,
        manage_ticks=False,
        boxprops=colour,
        whiskerprops=colour,
        capprops=colour,
        medianprops=colour,
    )


def _errors(spots: Sequence[Spot]) -> list[list[float]] | None:
    """Lengths below and above the values, for those with an interval; None if there are none."""
    if not any(spot.low is not None for spot in spots):
        return None
    ends = [(spot.y or 0.0, spot.low, spot.high) for spot in spots]
    return [
        [0.0 if low is None else max(0.0, y - low) for y, low, _ in ends],
        [0.0 if high is None else max(0.0, high - y) for y, _, high in ends],
    ]


def _x(figure: FigureData, spot: Spot) -> float:
    if figure.x.categories is not None:
        return float(figure.x.categories.index(str(spot.x)))
    return float(spot.x)
