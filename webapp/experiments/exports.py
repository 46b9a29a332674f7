"""Files of an experiment: its rows as CSV, JSON and Parquet, a table for LaTeX, figures, one HTML report."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.presented import Figure, Table
from engine.experiments.design.expand import Point
from engine.experiments.design.files import dump_toml
from engine.experiments.presentation import export, plot
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.presentation.figure_values import FigureData
from engine.experiments.presentation.report_html import html_report
from engine.experiments.results.pivot import table_data
from engine.experiments.results.rows import Row
from webapp.experiments import computations
from webapp.experiments.models import Execution

DRAWING = threading.Lock()
"""matplotlib's settings belong to the process, and requests are answered by several threads."""


class File(NamedTuple):
    content: str | bytes
    content_type: str


class Source(NamedTuple):
    """What files are made of. `chosen` names a figure or table; "" is the first figure, or all tables."""

    experiment: Experiment
    execution: Execution | None
    rows: Sequence[Row]
    chosen: str = ""


def file_of(kind: str, source: Source) -> File:
    """Raises `SpecError` for a kind that there is not, and for a figure or table that is not there."""
    if kind not in FILES:
        sentence = f"There is no export as {kind[:20]}: choose one of {', '.join(FILES)}."
        raise SpecError(sentence, [("format", "unknown")])
    content_type, make = FILES[kind]
    return File(make(source), content_type)


def points_of(execution: Execution | None) -> list[Point]:
    """The points of an execution as they were expanded."""
    if execution is None:
        return []
    cells = execution.cells.exclude(world="emulated").select_related("computation").order_by("index")
    points = {}
    for cell in cells:
        spec = computations.spec_of(cell.computation) if cell.computation else None
        points[cell.index] = Point(cell.coordinates, cell.seed, spec, cell.problem, cell.digest)
    return list(points.values())


def figure_of(source: Source) -> FigureData:
    found: Sequence[Figure] = source.experiment.figures
    figure = next((one for one in found if source.chosen in ("", one.name)), None)
    if figure is None:
        raise missing("figure", source, [one.name for one in found])
    return figure_data(source.experiment, figure, source.rows)


def latex_of(source: Source) -> str:
    """The chosen table, or all of them one after the other."""
    tables = source.experiment.tables or tables_of_figures(source.experiment)
    chosen = [one for one in tables if source.chosen in ("", one.name)]
    if not chosen:
        raise missing("table", source, [one.name for one in tables])
    texts = (export.latex(table_data(source.experiment, table, source.rows)) for table in chosen)
    return "\n".join(texts)


def tables_of_figures(experiment: Experiment) -> list[Table]:
    """The numbers of the figures, for an experiment without tables: series × x."""
    return [
        Table(
            name=figure.name,
            title=figure.title,
            metric=figure.metric,
            relation=figure.relation,
            relative_to=figure.relative_to,
            rows=tuple(name for name in (figure.facet, figure.series) if name) or (figure.x,),
            columns=(figure.x,) if figure.facet or figure.series else (),
            where=figure.where,
            worlds=figure.worlds,
        )
        for figure in experiment.figures
        if figure.kind != "scatter"
    ]


def missing(what: str, source: Source, names: Sequence[str]) -> SpecError:
    known = f"it has {', '.join(names)}" if names else f"it has no {what}s"
    asked = f"{what} {source.chosen[:40]}" if source.chosen else what
    return SpecError(f"{source.experiment.name} has no {asked}: {known}.", [("figure", "not there")])


def drawn(draw: Callable[[FigureData], str | bytes]) -> Callable[[Source], str | bytes]:
    def make(source: Source) -> str | bytes:
        with DRAWING:
            return draw(figure_of(source))

    return make


def report_of(source: Source) -> str:
    with DRAWING:
        return html_report(source.experiment, points_of(source.execution), source.rows)


FILES: dict[str, tuple[str, Callable[[Source], str | bytes]]] = {
    "toml": ("application/toml; charset=utf-8", lambda source: dump_toml(source.experiment)),
    "csv": ("text/csv; charset=utf-8", lambda source: export.csv_text(source.rows)),
    "json": ("application/json", lambda source: export.json_text(source.experiment, source.rows)),
    "parquet": ("application/vnd.apache.parquet", lambda source: export.parquet_bytes(source.rows)),
    "tex": ("application/x-tex; charset=utf-8", latex_of),
    "svg": ("image/svg+xml", drawn(plot.svg)),
    "pdf": ("application/pdf", drawn(plot.pdf)),
    "html": ("text/html; charset=utf-8", report_of),
}
"""Ending of the file → its type, and how it is made."""
