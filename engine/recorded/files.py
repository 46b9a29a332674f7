"""The name of a recorded file with its options, its text, and its lines as numbers or columns.

A name is `FILE`, `FILE@LINK` or `FILE@LINK,option=value,…`. Errors name the file and the line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from engine.domain.errors import SpecError
from engine.domain.values import Value

MAX_BYTES = 64_000_000
MAX_LINE = 10_000
"""Characters of a line of a table."""
FRACTION = re.compile(r"(?<=:\d\d)\.\d+")
"""What follows the whole seconds of a time: Azure writes seven digits."""

Options = TypeVar("Options", bound=Value)


class Named(NamedTuple):
    """A file, the link that stands behind it, if any, and its options as they are written."""

    path: Path
    link: str
    options: str


def parse_name(text: str) -> Named:
    """The parts of `FILE@LINK,option=value`. A file whose whole name is `text` has none."""
    return Named(Path(text), "", "") if Path(text).is_file() else split_name(text)


def split_name(text: str) -> Named:
    """The parts of `FILE@LINK,option=value`, whichever files there are."""
    name, _, options = text.partition(",")
    file, at, link = name.rpartition("@")
    return Named(Path(file if at else name), link if at else "", options)


def parse_options(kind: type[Options], text: str, where: str) -> Options:
    """The options of `key=value,key=value`, which become the fields of `kind`. Raises `SpecError`."""
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (one.strip() for one in part.partition("="))
        if not equals or key in found or key not in kind.model_fields:
            known = ", ".join(kind.model_fields)
            raise SpecError(
                f"{where}: the option {part[:60]!r}: expected each of these once at most: {known}."
            )
        found[key] = value
    return kind.parse(found, f"{where}, options")


def text_of(path: Path, what: str) -> str:
    """The text of a regular file of at most `MAX_BYTES`. Raises `SpecError`."""
    try:
        if path.exists() and not path.is_file():  # a device may never end, a pipe may never begin
            raise SpecError(f"{path}: cannot read {what}: it is not a regular file.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise SpecError(
                f"{path}: is larger than {MAX_BYTES // 1_000_000} MB: cut it, as with head -n 100000."
            )
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SpecError(f"{path}: cannot read {what}: {reason}.") from error


def columns_of(text: str) -> list[str]:
    """The names in the first line of a table of commas."""
    first = text.lstrip("\n").partition("\n")[0][:MAX_LINE]
    return [name.strip() for name in next(csv.reader([first]), [])]


def rows_of(text: str, where: str, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines below the names of a table with the `needed` columns, each with its number.

    Raises `SpecError` for a column that is not there, and for a line with more or fewer cells.
    """
    lines = csv.reader(text.splitlines(), strict=True)
    names: list[str] = []
    try:
        for cells in lines:
            cells = [cell.strip() for cell in cells]
            if not any(cells):
                continue
            if not names:
                names = cells
                if missing := [name for name in needed if names.count(name) != 1]:
                    raise SpecError(
                        f"{where}: has no column {missing[0]}, or two: there are {', '.join(names)}."
                    )
                continue
            if len(cells) != len(names):
                raise SpecError(
                    f"{where}, line {lines.line_num}: has {len(cells)} cells, expected {len(names)}, as many "
                    "as columns."
                )
            yield lines.line_num, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise SpecError(f"{where}, line {lines.line_num}: is no line of a CSV table: {error}.") from error


def numbers_of(text: str, where: str, count: int) -> Iterator[tuple[int, list[float]]]:
    """The lines of `count` numbers with spaces between them, each with its number. Raises `SpecError`."""
    for number, line in enumerate(text.splitlines(), 1):
        cells = line[:MAX_LINE].split()
        if not cells:
            continue
        if len(cells) != count:
            raise SpecError(f"{where}, line {number}: has {len(cells)} columns, expected {count}.")
        yield number, [number_of(cell, f"{where}, line {number}") for cell in cells]


def number_of(text: str, where: str) -> float:
    """A finite number that is not negative. Raises `SpecError`."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise SpecError(f"{where}: expected a number of at least 0, got {text[:40]!r}.")
    return value


def moment_of(text: str, where: str, form: str = "") -> float:
    """Seconds from 1970 to a date and time as ISO 8601 writes it, or as `form` says (`strptime`).

    It is in UTC if it names no zone. Raises `SpecError`.
    """
    fraction = FRACTION.search(text)
    whole = FRACTION.sub("", text, count=1)
    try:
        moment = datetime.strptime(whole, form) if form else datetime.fromisoformat(whole)
    except ValueError:
        example = f"{datetime(2020, 1, 31):{form or '%Y-%m-%d %H:%M:%S'}}"
        raise SpecError(f"{where}: expected a time such as {example}, got {text[:40]!r}.") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.timestamp() + (float(f"0{fraction[0]}") if fraction else 0.0)
