"""Exports: a run's report as CSV, its trace in the Chrome format that Perfetto opens, and a list of runs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.domain.events import TRACE, TraceItem
from engine.domain.spreadsheet import harmless
from engine.domain.stored import read_spec
from engine.reports.compare import flatten
from engine.reports.perfetto import chrome_trace
from webapp.events.archive import history
from webapp.runs.models import Run

TABLES = ("requests", "devices", "links", "layers")
FIGURES = (
    "world",
    "dilation",
    "outcome",
    "latency_s",
    "ttft_s",
    "tpot_s",
    "tokens_per_s",
    "attribution",
    "correctness",
    "fidelity",
    "predictions",
    "seed",
)


def report_csv(report: dict[str, Any]) -> str:
    """Long form, one number per row: table, row, column, value. Spreadsheets pivot it, scripts filter it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("table", "row", "column", "value"))
    writer.writerows([harmless(value) for value in row] for row in rows_of(report))
    return out.getvalue()


def rows_of(report: dict[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    for path, value in flatten({key: report[key] for key in FIGURES}).items():
        yield "run", "", path, value
    for path, value in flatten(report["spec"]).items():
        yield "spec", "", path, value
    for table in TABLES:
        for index, row in enumerate(report[table]):
            label = row.get("name") or str(row.get("index", index))
            for column, value in row.items():
                yield table, label, column, json.dumps(value) if isinstance(value, list) else value


LISTED = ("id", "name", "status", "outcome", "created_at", "owner", "cluster_name", "model", "strategy")
MEASURED = ("latency_s", "ttft_s", "tpot_s", "tokens_per_s", "correct", "valid", "lossy")


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """A value per run, as lists show it; a column `params.NAME` per parameter and `NAME` per further figure.

    Parameters of one name may have several types, so that they are text.
    """
    params = sorted({name for row in rows for name in row["params"]})
    figures = sorted({name for row in rows for name in row["figures"]})
    columns = {name: [row[name] for row in rows] for name in LISTED}
    columns |= {f"params.{name}": [_text(row["params"].get(name)) for row in rows] for name in params}
    columns |= {name: [row[name] for row in rows] for name in MEASURED}
    columns |= {name: [row["figures"].get(name) for row in rows] for name in figures}
    return columns | {"tags": [" ".join(row["tags"]) for row in rows]}


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def runs_csv(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Text that a spreadsheet would take for a formula gets an apostrophe in front."""
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


def perfetto(run: Run) -> dict[str, Any]:
    cluster = read_spec(run.spec, f"The spec of {run}").needed().cluster
    return chrome_trace(cluster, trace_of(run), title=str(run))
