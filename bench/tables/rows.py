"""A benchmark's result as a table of text, printed as plain text or as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bench.tables.chart import Chart, Scatter


class Table(NamedTuple):
    """A table of results. `summary` stands above the table; `raw` is kept beside the document, `files` where
    they say.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    chart: Chart | Scatter | None = None
    summary: Table | None = None
    raw: str = ""
    files: Mapping[Path, str] = {}


def as_text(table: Table) -> str:
    widths = [
        max(len(row[index]) for row in (table.columns, *table.rows)) for index in range(len(table.columns))
    ]
    lines = [table.title]
    for row in (table.columns, *table.rows):
        lines.append("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    return "\n".join(lines)


def as_markdown(table: Table) -> str:
    """Its title, and its rows below if there are any."""
    if not table.rows:
        return table.title
    lines = [table.title, "", "| " + " | ".join(table.columns) + " |"]
    lines.append("|" + " ---: |" * len(table.columns))
    lines += ["| " + " | ".join(row) + " |" for row in table.rows]
    return "\n".join(lines)
