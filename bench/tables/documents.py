"""Writes tables and charts of benchmarks into docs/results/."""

from __future__ import annotations

import os
import time
from pathlib import Path

from bench.tables.chart import as_svg
from bench.tables.rows import Table, as_markdown
from emulator.calibration.known import host_name
from emulator.network.probe import probe
from engine.cli.document import write_between, write_table

DOCUMENTS = Path(__file__).resolve().parents[2] / "docs" / "results"
MOST_ROWS = 12
"""Of a table in a document; a longer one stands beside it."""
FIRST_ROWS = 5
"""Of a longer table without a summary, in the document."""


def write(directory: Path, document: str, name: str, result: Table) -> None:
    """Write the table into the section `name` of a document; its chart, and all of a long one, beside it."""
    picture = ""
    if result.chart is not None:
        file = directory / f"{document}-{name}.svg"
        file.write_text(as_svg(result.chart), encoding="utf-8")
        picture = f"![{result.chart.title}]({file.name})\n\n"
    if result.raw:
        (directory / f"{document}-{name}.json").write_text(result.raw + "\n", encoding="utf-8")
    for path, text in result.files.items():
        path.write_text(text, encoding="utf-8")
    summary, link = "", ""
    if result.summary is not None:
        summary = as_markdown(result.summary) + "\n\n"
    if len(result.rows) > MOST_ROWS:
        link = "\n\n" + write_table(directory / f"{document}.md", name, result.columns, result.rows)
        result = result._replace(rows=result.rows[: 0 if summary else FIRST_ROWS])
    write_section(directory / f"{document}.md", name, picture + summary + section(result, link))


def section(result: Table, link: str = "") -> str:
    """A table in Markdown and a link to all of it, followed by the machine, the date and the load."""
    found, busy = probe(), os.getloadavg()[1]
    where = f"{host_name()}, {found.cores} cores, Linux {found.kernel}, {time.strftime('%Y-%m-%d')}"
    return f"{as_markdown(result)}{link}\n\n{where}; {busy:.1f} processes ran or waited, 5 minutes' mean"


def write_section(document: Path, name: str, text: str) -> None:
    """Replace the text between this benchmark's markers; raises `SpecError` if the markers are missing."""
    write_between(document, f"<!-- bench {name} -->", f"<!-- end {name} -->", text)
