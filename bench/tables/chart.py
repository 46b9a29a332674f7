"""Draws the line chart of a benchmark's table as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 176, 28, 44
SLACK = 0.02  # of a grid step, by which a value may stick out
COLOURS = ("#4c78a8", "#e45756", "#54a24b", "#b279a2", "#f58518", "#72b7b2", "#9d755d", "#333333")


class Chart(NamedTuple):
    """Series of (x, y) by name, x on a logarithmic scale; `x_text` and `y_text` format values."""

    title: str
    x_name: str
    y_name: str
    series: dict[str, tuple[tuple[float, float], ...]]
    x_text: Callable[[float], str]
    y_text: Callable[[float], str]


def as_svg(chart: Chart) -> str:
    """Raises `ValueError` if there is not a single point."""
    points = [point for line in chart.series.values() for point in line]
    if not points:
        raise ValueError(f"the chart {chart.title!r} has no points: measure something first")
    xs, ys = sorted({x for x, _ in points}), [y for _, y in points]
    low, high = _rounded(min(ys), max(ys))

    def at(x: float, y: float) -> tuple[float, float]:
        span = math.log(xs[-1] / xs[0]) or 1.0
        across = LEFT + math.log(x / xs[0]) / span * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - (y - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="11" role="img">',
        f"<title>{escape(chart.title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text_at(LEFT, 16, chart.title, "start"),
        text_at((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, chart.x_name, "middle"),
        text_at(6, TOP - 6, chart.y_name, "start") if chart.y_name else "",
    ]
    for step in range(5):
        y = low + (high - low) * step / 4
        _, down = at(xs[0], y)
        parts.append(f'<path d="M{LEFT} {down:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        parts.append(text_at(LEFT - 6, down + 4, chart.y_text(y), "end"))
    for x in xs:
        parts.append(text_at(at(x, low)[0], HEIGHT - BOTTOM + 16, chart.x_text(x), "middle"))
    for index, (name, line) in enumerate(chart.series.items()):
        colour = COLOURS[index % len(COLOURS)]
        places = [at(x, y) for x, y in line]
        path = "L".join(f"{across:.1f} {down:.1f}" for across, down in places)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{d:.1f}" r="2.5" fill="{colour}"/>' for a, d in places]
        parts.append(text_at(WIDTH - RIGHT + 12, TOP + 14 * index + 8, name, "start", colour))
    return "\n".join([*filter(None, parts), "</svg>\n"])


def _rounded(low: float, high: float) -> tuple[float, float]:
    """A range of four round steps around the values."""
    step = max((high - low) / 4, abs(high) * 1e-3, 1e-9)
    magnitude = 10.0 ** math.floor(math.log10(step))
    step = next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= step)
    start = math.floor(low / step + SLACK) * step
    while start + (4 + SLACK) * step < high:
        step *= 2
        start = math.floor(low / step + SLACK) * step
    return start, start + 4 * step


def text_at(x: float, y: float, text: str, anchor: str, colour: str = "#333333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def lines(points: Sequence[tuple[str, float, float]]) -> dict[str, tuple[tuple[float, float], ...]]:
    """(name, x, y) → series, in the order of the first mention."""
    names = dict.fromkeys(name for name, _, _ in points)
    return {name: tuple((x, y) for own, x, y in points if own == name) for name in names}
