"""Writes generated text between two markers of a document, and its long tables as CSV beside it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.domain.errors import SpecError


def write_between(document: Path, start: str, end: str, text: str) -> None:
    """Replace what is between the markers `start` and `end`; raises `SpecError` if they are missing."""
    try:
        before, found_start, rest = document.read_text(encoding="utf-8").partition(start)
    except OSError as error:
        raise SpecError(f"{document}: cannot be read: {error.strerror}: run this in a checkout.") from error
    _, found_end, after = rest.partition(end)
    if not found_start or not found_end:
        raise SpecError(f"{document}: the markers {start} and {end} are missing: put them back.")
    document.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")


MARKS = re.compile(r"`|\[([^\]]*)\]\([^)]*\)|\\(?=[|_*])")
"""What Markdown has in a cell and a table of plain text has not."""


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Cells of Markdown as CSV of plain text."""
    text = io.StringIO()
    lines = ([MARKS.sub(r"\1", str(cell)) for cell in row] for row in (columns, *rows))
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def table_file(document: Path, name: str) -> Path:
    """Where a table of a document stands as CSV: in the folder with the document's name."""
    return document.with_suffix("") / f"{name}.csv"


def table_link(document: Path, name: str, rows: int) -> str:
    """The paragraph that the manual draws as the table (webapp/manual/rendering.py)."""
    return f"[All {rows} rows]({document.stem}/{name}.csv)"


def write_table(document: Path, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a table of a document as CSV; returns the paragraph for it."""
    file = table_file(document, name)
    file.parent.mkdir(exist_ok=True)
    file.write_text(as_csv(columns, rows), encoding="utf-8")
    return table_link(document, name, len(rows))
