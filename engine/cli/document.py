"""Writes generated text between two markers of a document."""

from __future__ import annotations

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
