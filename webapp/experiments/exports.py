"""Files of an experiment: its rows as CSV, JSON and Parquet, a table for LaTeX, figures, one HTML report,
and all of it as a study.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from django.utils import timezone

import topologies
from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.presented import Figure, Presented, Table
from engine.experiments.design.expand import Point
from engine.experiments.design.files import dump_toml
from engine.experiments.presentation import export, plot
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.presentation.figure_values import FigureData
from engine.experiments.presentation.latex import latex
from engine.experiments.presentation.origin import Origin, origin_of
from engine.experiments.presentation.report_html import drawn_figures, html_report
from engine.experiments.results.pivot import table_data, tables_of
from engine.experiments.results.rows import Row
from engine.experiments.studies.archive import write_archive
from engine.experiments.studies.contents import About, Carried, Clusters, contents_of
from engine.experiments.studies.environment import environment
from webapp.experiments.design.sources import sources
from webapp.experiments.models import Execution
from webapp.experiments.points import PREDICTED, spec_of

Kind = TypeVar("Kind", bound=Presented)

DRAWING = threading.Lock()
"""The lock of drawing: matplotlib's settings belong to the process, and requests are answered by several
threads.
"""


class File(NamedTuple):
    content: str | bytes
    content_type: str


class Source(NamedTuple):
    """What files are made of. `figure` and `table` are each the name of one of the experiment's own, or one
    that somebody has composed; with neither, figures are the first, tables are all, and data are all points.
    `with_sources`: a study has the source of methods that are not EdgeLoom's.
    """

    experiment: Experiment
    execution: Execution | None
    rows: Sequence[Row]
    figure: Figure | str = ""
    table: Table | str = ""
    size: str = ""
    with_sources: bool = False

    @property
    def origin(self) -> Origin:
        version = self.execution.version if self.execution else 0
        return origin_of(self.experiment, self.rows, version)


def file_of(kind: str, source: Source) -> File:
    """A figure, a table or the rows as a file. Raises `SpecError` for a kind, a figure or a table that is not
    there.
    """
    if kind not in FILES:
        sentence = f"There is no export as {kind[:20]}: choose one of {', '.join(FILES)}."
        raise SpecError(sentence, [("format", "unknown")])
    content_type, make = FILES[kind]
    return File(make(source), content_type)


def points_of(execution: Execution | None) -> list[Point]:
    """The points of an execution as they were expanded."""
    if execution is None:
        return []
    cells = execution.cells.filter(world__in=PREDICTED).select_related("run").order_by("index")
    points = {}
    for cell in cells:
        spec = spec_of(cell.run) if cell.run else None
        points[cell.index] = Point(cell.coordinates, cell.seed, spec, cell.problem, cell.digest)
    return list(points.values())


def figure_of(source: Source) -> FigureData:
    figure = chosen(source, "figure", source.figure, source.experiment.figures)[0]
    return figure_data(source.experiment, figure, source.rows)


def latex_of(source: Source) -> str:
    """The chosen table, or all of them one after the other."""
    tables = tables_of(source.experiment)
    found = chosen(source, "table", source.table, tables)
    return "\n".join(
        latex(table_data(source.experiment, table, source.rows), source.origin) for table in found
    )


def records_of(source: Source) -> list[export.Record]:
    """The numbers of the table or of the figure that is named, else all points."""
    if source.table:
        tables = tables_of(source.experiment)
        table = chosen(source, "table", source.table, tables)[0]
        return export.records_of_table(table_data(source.experiment, table, source.rows), source.origin)
    if source.figure:
        return export.records_of_figure(figure_of(source), source.origin)
    return export.records_of_rows(source.rows, source.origin)


def chosen(source: Source, what: str, wanted: Kind | str, own: Sequence[Kind]) -> Sequence[Kind]:
    """A composed one itself, or those of the experiment with this name; "" is all of them. Raises
    `SpecError` if there is none.
    """
    if not isinstance(wanted, str):
        return [wanted]
    found = [one for one in own if wanted in ("", one.name)]
    if not found:
        names = [one.name for one in own]
        known = f"it has {', '.join(names)}" if names else f"it has no {what}s"
        asked = f"{what} {wanted[:40]}" if wanted else what
        raise SpecError(f"{source.experiment.name} has no {asked}: {known}.", [(what, "not there")])
    return found


def drawn(draw: Callable[[FigureData, Origin, str], str | bytes]) -> Callable[[Source], str | bytes]:
    def make(source: Source) -> str | bytes:
        with DRAWING:
            return draw(figure_of(source), source.origin, source.size)

    return make


def study_of(source: Source) -> bytes:
    """The whole of it, as `loom study` opens and repeats it."""
    known = sources()
    about = About(timezone.now().date().isoformat(), environment(), with_sources=source.with_sources)
    with DRAWING:
        carried = Carried(source.experiment, points_of(source.execution), source.rows)
        _, files = contents_of([carried], about, Clusters(known.cluster, topologies.dump_toml))
    target = io.BytesIO()
    write_archive(files, target)
    return target.getvalue()


def report_of(source: Source) -> str:
    with DRAWING:
        figures = drawn_figures(source.experiment, source.rows, source.origin)
        points = points_of(source.execution)
        return html_report(source.experiment, points, source.rows, source.origin, figures)


FILES: dict[str, tuple[str, Callable[[Source], str | bytes]]] = {
    "toml": ("application/toml; charset=utf-8", lambda source: dump_toml(source.experiment)),
    "csv": ("text/csv; charset=utf-8", lambda source: export.csv_text(records_of(source))),
    "json": (
        "application/json",
        lambda source: export.json_text(source.experiment, source.rows, source.origin),
    ),
    "parquet": ("application/vnd.apache.parquet", lambda source: export.parquet_bytes(records_of(source))),
    "tex": ("application/x-tex; charset=utf-8", latex_of),
    "svg": ("image/svg+xml", drawn(plot.svg)),
    "pdf": ("application/pdf", drawn(plot.pdf)),
    "zip": ("application/zip", study_of),
    "html": ("text/html; charset=utf-8", report_of),
}
"""Ending of the file → its type, and how it is made."""
