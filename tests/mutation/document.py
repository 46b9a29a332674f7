"""The sections of docs/results/tests.md that commands write, each between a line with its name and an end."""

from __future__ import annotations

from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "results" / "tests.md"


def read_section(name: str, document: Path = DOCUMENT) -> str:
    """What is between the markers of `name`."""
    return document.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")[2].partition("<!-- end")[0]


def write_section(name: str, text: str, document: Path = DOCUMENT) -> None:
    """Replace what is between the markers of `name`. Raises `ValueError` if they are missing."""
    before, begin, rest = document.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end {name} -->")
    if not begin or not end:
        raise ValueError(f"{document}: the markers <!-- {name} --> and <!-- end {name} --> are missing.")
    document.write_text(f"{before}{begin}{text}\n{end}{after}", encoding="utf-8")
