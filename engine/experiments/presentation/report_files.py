"""Writes what an experiment found into a folder: data, figures, tables, and one HTML file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.domain.errors import HostError
from engine.domain.experiment import Experiment
from engine.experiments.design.expand import Point
from engine.experiments.design.files import dump_toml
from engine.experiments.presentation.export import (
    csv_text,
    json_text,
    parquet_bytes,
    records_of_figure,
    records_of_rows,
    records_of_table,
)
from engine.experiments.presentation.latex import latex
from engine.experiments.presentation.origin import origin_of
from engine.experiments.presentation.plot import pdf
from engine.experiments.presentation.report_html import drawn_figures, html_report
from engine.experiments.results.pivot import table_data, tables_of
from engine.experiments.results.rows import Row


def write_report(
    experiment: Experiment, points: Sequence[Point], rows: Sequence[Row], folder: Path
) -> tuple[Path, ...]:
    """The files that were written, the HTML file first. Raises `HostError` if one cannot be."""
    written = []
    for name, content in files_of(experiment, points, rows):
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        except OSError as error:
            raise HostError(f"{path}: cannot write the report: {error.strerror}.") from error
        written.append(path)
    return tuple(written)


def files_of(
    experiment: Experiment, points: Sequence[Point], rows: Sequence[Row]
) -> Iterator[tuple[str, str | bytes]]:
    """Name and content of every file."""
    origin = origin_of(experiment, rows)
    records = records_of_rows(rows, origin)
    figures = drawn_figures(experiment, rows, origin)
    yield "report.html", html_report(experiment, points, rows, origin, figures)
    yield "experiment.toml", dump_toml(experiment)
    yield "points.csv", csv_text(records)
    yield "points.json", json_text(experiment, rows, origin)
    yield "points.parquet", parquet_bytes(records)
    for name, (data, drawn) in figures.items():
        yield f"figures/{name}.svg", drawn
        yield f"figures/{name}.pdf", pdf(data, origin)
        yield f"figures/{name}.csv", csv_text(records_of_figure(data, origin))
    for table in tables_of(experiment):
        shown = table_data(experiment, table, rows)
        yield f"tables/{table.name}.tex", latex(shown, origin)
        yield f"tables/{table.name}.csv", csv_text(records_of_table(shown, origin))
