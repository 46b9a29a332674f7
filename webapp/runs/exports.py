"""Exports of a run: its report as CSV, its trace in the Chrome format that Perfetto opens."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from engine.domain.events import TRACE, TraceItem
from engine.domain.stored import read_spec
from engine.reports.compare import flatten
from engine.reports.perfetto import chrome_trace
from webapp.runs.archive import history
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
    "prediction",
    "seed",
)


def report_csv(report: dict[str, Any]) -> str:
    """Long form, one number per row: table, row, column, value. Spreadsheets pivot it, scripts filter it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("table", "row", "column", "value"))
    writer.writerows(rows_of(report))
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


def trace_of(run: Run) -> list[TraceItem]:
    """Spans and marks of the run's events, stored and live. Raises Redis' errors."""
    events = (event for batch in history(run.pk, 0) for event in json.loads(batch.events))
    return TRACE.validate_python([event for event in events if event["type"] in ("span", "mark")])


def perfetto(run: Run) -> dict[str, Any]:
    cluster = read_spec(run.spec, f"The spec of {run}").needed().cluster
    return chrome_trace(cluster, trace_of(run), title=str(run))
