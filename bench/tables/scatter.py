"""Draws marks over two logarithmic axes with the same unit, with the diagonal, as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape
from typing import NamedTuple

from bench.tables.chart import COLOURS, text_at

SIZE, LEFT, RIGHT, TOP, BOTTOM = 460, 64, 176, 28, 44
SHAPES = ("circle", "square", "triangle")


class Scatter(NamedTuple):
    """Marks (x, y) by name, both positive; `text` formats values. `band`: the area in which y differs from x
    by no more than this share is shaded.
    """

    title: str
    x_name: str
    y_name: str
    series: dict[str, tuple[tuple[float, float], ...]]
    text: Callable[[float], str]
    band: float = 0.0


def scatter_svg(chart: Scatter) -> str:
    """Raises `ValueError` if there is not a single mark."""
    values = [value for marks in chart.series.values() for mark in marks for value in mark]
    if not values:
        raise ValueError(f"the picture {chart.title!r} has no marks: measure something first")
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    width, height = LEFT + SIZE + RIGHT, TOP + SIZE + BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        across, up = ((math.log10(value) - low) / (high - low) * SIZE for value in (x, y))
        return LEFT + across, TOP + SIZE - up

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11" role="img">',
        f"<title>{escape(chart.title)}</title>",
        f'<clipPath id="area"><rect x="{LEFT}" y="{TOP}" width="{SIZE}" height="{SIZE}"/></clipPath>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        text_at(LEFT, 16, chart.title, "start"),
        text_at(LEFT + SIZE / 2, height - 6, chart.x_name, "middle"),
        text_at(6, TOP - 6, chart.y_name, "start"),
    ]
    for step in range(low, high + 1):
        value = 10.0**step
        across, down = at(value, value)
        parts.append(f'<path d="M{LEFT} {down:.1f}h{SIZE}M{across:.1f} {TOP}v{SIZE}" stroke="#dddddd"/>')
        parts.append(text_at(LEFT - 6, down + 4, chart.text(value), "end"))
        parts.append(text_at(across, TOP + SIZE + 16, chart.text(value), "middle"))
    least, most = 10.0**low, 10.0**high
    corners = (
        at(least, least * (1 - chart.band)),
        at(most, most * (1 - chart.band)),
        at(most, most * (1 + chart.band)),
        at(least, least * (1 + chart.band)),
    )
    outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    parts.append(f'<polygon points="{outline}" fill="#eeeeee" clip-path="url(#area)"/>')
    (x0, y0), (x1, y1) = at(least, least), at(most, most)
    parts.append(f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="#888888" fill="none"/>')
    for index, (name, marks) in enumerate(chart.series.items()):
        colour, shape = COLOURS[index % len(COLOURS)], SHAPES[index // len(COLOURS) % len(SHAPES)]
        parts += [_mark(shape, *at(x, y), colour) for x, y in marks]
        place = LEFT + SIZE + 18, TOP + 14 * index + 8
        parts += [
            _mark(shape, place[0], place[1] - 4, colour),
            text_at(place[0] + 8, place[1], name, "start"),
        ]
    return "\n".join([*parts, "</svg>\n"])


def _mark(shape: str, x: float, y: float, colour: str) -> str:
    look = f'fill="{colour}" fill-opacity="0.7"'
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" {look}/>'
    if shape == "square":
        return f'<rect x="{x - 2.7:.1f}" y="{y - 2.7:.1f}" width="5.4" height="5.4" {look}/>'
    return f'<path d="M{x:.1f} {y - 3.4:.1f}l3.4 6h-6.8z" {look}/>'
