"""Exports: a run's report as CSV, its trace in the Chrome format that Perfetto opens, and a list of runs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from engine.domain.events import TRACE, TraceItem
from engine.domain.report import RunReport
from engine.domain.spreadsheet import harmless
from engine.domain.stored import read_spec
from engine.domain.trace import Span
from engine.reports.attribution import critical_path
from engine.reports.compare import flatten
from engine.reports.metric import Subject
from engine.reports.metrics import metrics_of_a, shown_in, values_of
from engine.reports.perfetto import chrome_trace
from webapp.events.archive import history
from webapp.runs.models import Run
from webapp.runs.schemas import PathPiece

ABOUT = ("world", "outcome", "seed")
JUDGED = ("correctness", "fidelity", "predictions")
TABLES: Mapping[str, Subject] = MappingProxyType(
    {"requests": "request", "devices": "device", "links": "link"}
)


def report_csv(report: RunReport) -> str:
    """A report as CSV in long form, one number per row: table, row, column, value. Spreadsheets pivot it,
    scripts filter it.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("table", "row", "column", "value"))
    writer.writerows([harmless(value) for value in row] for row in rows_of(report))
    return out.getvalue()


def rows_of(report: RunReport) -> Iterator[tuple[str, str, str, Any]]:
    """Every figure that the report has, how it was judged, what was asked for, and its parts."""
    document = report.model_dump(mode="json")
    figures = values_of(report, metrics_of_a("run"))
    for part in (pick(document, ABOUT), figures, pick(document, JUDGED)):
        for path, value in flatten(part).items():
            yield "run", "", path, value
    for path, value in flatten(document["spec"]).items():
        yield "spec", "", path, value
    for table, subject in TABLES.items():
        metrics = metrics_of_a(subject)
        for index, item in enumerate(getattr(report, table)):
            yield from cells_of(table, index, {**values_of(item, metrics), **document[table][index]})
    for pair in document.get("pairs", ()):
        yield from cells_of("pairs", 0, {"name": f"{pair['sender']} → {pair['receiver']}"} | pair)
    for index, row in enumerate(document["layers"]):
        yield from cells_of("layers", index, row)


def pick(document: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: document[key] for key in keys}


def cells_of(table: str, index: int, row: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    label = row.get("name") or str(row.get("index", index))
    for column, value in row.items():
        yield table, label, column, json.dumps(value) if isinstance(value, list) else value


LISTED = ("id", "name", "status", "outcome", "created_at", "owner", "cluster_name", "model", "strategy")
VERDICTS = ("correct", "valid", "lossy")


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """A value per run, as lists show it; a column `params.NAME` per parameter and `NAME` per further figure.

    Parameters of one name may have several types, so that they are text.
    """
    params = sorted({name for row in rows for name in row["params"]})
    figures = [one.name for one in shown_in("list") if any(one.name in row["figures"] for row in rows)]
    columns = {name: [row[name] for row in rows] for name in LISTED}
    columns |= {f"params.{name}": [_text(row["params"].get(name)) for row in rows] for name in params}
    columns |= {name: [row["figures"].get(name) for row in rows] for name in figures}
    columns |= {name: [row[name] for row in rows] for name in VERDICTS}
    return columns | {"tags": [" ".join(row["tags"]) for row in rows]}


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def runs_csv(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Runs as CSV; text that a spreadsheet would take for a formula gets an apostrophe in front."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for values in zip(*columns.values(), strict=True):
        writer.writerow([harmless(value) for value in values])
    return out.getvalue().encode()


def runs_parquet(columns: Mapping[str, Sequence[Any]]) -> bytes:
    import pyarrow.parquet as pq  # large, and only needed here
    from pyarrow import table

    out = io.BytesIO()
    pq.write_table(table(dict(columns)), out)
    return out.getvalue()


def trace_of(run: Run) -> list[TraceItem]:
    """Spans and marks of the run's events, stored and live. Raises Redis' errors."""
    events = (event for batch in history(run.pk, 0) for event in json.loads(batch.events))
    return TRACE.validate_python([event for event in events if event["type"] in ("span", "mark")])


def path_of(run: Run, report: RunReport) -> list[PathPiece]:
    """The critical path of a run, the last piece first. Raises Redis' errors."""
    if not report.requests:
        return []
    cluster = report.spec.cluster
    start_s = min(request.arrival_s for request in report.requests)
    spans = [item for item in trace_of(run) if isinstance(item, Span)]
    path = critical_path(spans, cluster, cluster.source, start_s, start_s + report.latency_s)
    ranks = {device.name: rank for rank, device in enumerate(cluster.devices)}
    return [
        PathPiece(
            device=ranks[piece.device],
            kind=piece.span.kind if piece.span else "wait",
            start_s=piece.start_s,
            end_s=piece.end_s,
        )
        for piece in path
    ]


def perfetto(run: Run) -> dict[str, Any]:
    cluster = read_spec(run.spec, f"The spec of {run}").needed().cluster
    return chrome_trace(cluster, trace_of(run), title=str(run))
