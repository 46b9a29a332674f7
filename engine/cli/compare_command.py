"""`loom compare`: show the reports of earlier runs side by side."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from engine.cli.tables import console_for, table
from engine.domain import stored
from engine.domain.errors import SpecError
from engine.domain.numbers_as_text import shown
from engine.domain.report import RunReport
from engine.domain.units import human_s
from engine.reports.compare import Comparison, MetricRow, compare

SPARKS = "▁▂▃▄▅▆▇█"
SPARK_CELLS = 48
STYLES = {"better": "green", "worse": "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reports", nargs="+", metavar="RUN.json", help="2 to 50 reports written by --json")
    parser.add_argument(
        "--baseline", type=int, default=1, metavar="N", help="the run that the others are compared with (1)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    if not 1 <= args.baseline <= len(args.reports):
        raise SpecError(f"--baseline {args.baseline}: expected a run's number, 1 to {len(args.reports)}.")
    reports = [read_report(Path(path)) for path in args.reports]
    comparison = compare(reports, args.baseline - 1)
    if args.json:
        sys.stdout.write(comparison.model_dump_json(indent=2) + "\n")
        return 0
    console = console_for(sys.stdout)
    console.print(_metrics_table(comparison))
    console.print(_params_table(comparison))
    for line in _sparklines(comparison):
        console.print(line)
    return 0


def read_report(path: Path) -> RunReport:
    """A report that `--json` wrote; raises `SpecError` with the file and the field."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SpecError(f"{path}: cannot read the report: {reason}.") from error
    except json.JSONDecodeError as error:
        raise SpecError(f"{path}: no valid JSON: {error}.") from error
    if not isinstance(data, dict):
        raise SpecError(f"{path}: is not a report: expected an object.")
    return stored.read_report(data, str(path)).needed()


def _headings(comparison: Comparison) -> list[str]:
    """The names of the runs, numbered because two runs may have the same name."""
    return [
        f"{index + 1}{' (baseline)' if index == comparison.baseline else ''}\n{run.name}\n{run.outcome}"
        for index, run in enumerate(comparison.runs)
    ]


def _metrics_table(comparison: Comparison) -> Table:
    result = table("", *_headings(comparison))
    for row in comparison.metrics:
        if all(value in (None, 0) for value in row.values):
            continue
        cells = [_metric_cell(row, index, index == comparison.baseline) for index in range(len(row.values))]
        result.add_row(row.title, *cells)
    return result


def _metric_cell(row: MetricRow, index: int, is_baseline: bool) -> Text:
    value, delta = row.values[index], row.deltas[index]
    if value is None:
        return Text("—")
    text = Text(shown(value, row.unit))
    if is_baseline or delta is None:
        return text
    verdict = row.cells[index].verdict
    return text.append(f"  {delta:+.1%}", style=STYLES.get(verdict or "", ""))


def _params_table(comparison: Comparison) -> Table | Text:
    differing = [row for row in comparison.params if row.differs]
    if not differing:
        return Text("The runs have equal specs.\n")
    result = table("differs", *(str(index + 1) for index in range(len(comparison.runs))))
    for row in differing:
        result.add_row(row.path, *(_shown(value) for value in row.values))
    return result


def _shown(value: Any) -> str:
    """`value` as JSON, so that false, 0, "" and null look different."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"


def _sparklines(comparison: Comparison) -> list[Text]:
    """Seconds per token of each run, on one scale."""
    most_s = max((second for series in comparison.series for second in series.token_s), default=0.0)
    if most_s == 0:
        return []
    lines = [Text(f"time per token, up to {human_s(most_s)}", style="bold")]
    for series in comparison.series:
        cells = "".join(
            SPARKS[round(second / most_s * (len(SPARKS) - 1))] for second in series.token_s[:SPARK_CELLS]
        )
        lines.append(Text(f"{series.run + 1}  {cells}"))
    return lines
