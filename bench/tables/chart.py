"""Draws the charts of benchmarks as SVG: lines over a logarithmic axis, and marks beside a diagonal."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, NamedTuple

LOOKS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "edgeloom",
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.edgecolor": "#dddddd",
    "grid.color": "#dddddd",
    "legend.frameon": False,
}


class Chart(NamedTuple):
    """Series of (x, y) by name, x on a logarithmic scale; `x_text` and `y_text` format values."""

    title: str
    x_name: str
    y_name: str
    series: dict[str, tuple[tuple[float, float], ...]]
    x_text: Callable[[float], str]
    y_text: Callable[[float], str]


class Scatter(NamedTuple):
    """Marks (x, y) by name, both positive, on logarithmic scales; `text` formats values. `band`: the area in
    which y is up to this share more than x, or x more than y, is shaded.
    """

    title: str
    x_name: str
    y_name: str
    series: dict[str, tuple[tuple[float, float], ...]]
    text: Callable[[float], str]
    band: float = 0.0


def as_svg(chart: Chart | Scatter) -> str:
    """The chart drawn by matplotlib. Raises `ValueError` if it has not a single point."""
    if not any(chart.series.values()):
        raise ValueError(f"the chart {chart.title!r} has no points: measure something first")
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    with matplotlib.rc_context(LOOKS):
        figure = Figure(figsize=(6.4, 3.0) if isinstance(chart, Chart) else (7.0, 5.3), layout="constrained")
        axes = figure.subplots()
        axes.set_title(chart.title, loc="left")
        axes.set(xscale="log", xlabel=chart.x_name, ylabel=chart.y_name)
        if isinstance(chart, Chart):
            for name, line in chart.series.items():
                axes.plot(*zip(*line, strict=True), ".-", label=name, linewidth=1.2)
            xs = sorted({x for line in chart.series.values() for x, _ in line})
            axes.set_xticks(xs, [chart.x_text(x) for x in xs])
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: chart.y_text(y)))
        else:
            axes.set(yscale="log", aspect="equal")
            for (name, marks), shape in zip(chart.series.items(), cycle("os^"), strict=False):
                axes.plot(*zip(*marks, strict=True), shape, label=name, markersize=3.5, alpha=0.7)
            values = [value for marks in chart.series.values() for mark in marks for value in mark]
            ends = (min(values) / 1.5, max(values) * 1.5)
            axes.plot(ends, ends, color="#888888", linewidth=0.8)
            axes.fill_between(
                ends,
                [end / (1 + chart.band) for end in ends],
                [end * (1 + chart.band) for end in ends],
                color="#eeeeee",
            )
            axes.set(xlim=ends, ylim=ends)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(FuncFormatter(lambda value, _: chart.text(value)))
        figure.legend(loc="outside right upper")
        written = io.StringIO()
        figure.savefig(written, format="svg", bbox_inches="tight", metadata={"Date": None})
    return written.getvalue()


def lines(points: Sequence[tuple[str, float, float]]) -> dict[str, tuple[tuple[float, float], ...]]:
    """Series of points (name, x, y), in the order of the first mention."""
    names = dict.fromkeys(name for name, _, _ in points)
    return {name: tuple((x, y) for own, x, y in points if own == name) for name in names}
