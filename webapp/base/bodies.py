"""Read the JSON bodies of requests, and refuse what no part behind could handle, with one sentence each.

JSON allows more than databases and arithmetic do: numbers of any length, NUL characters, halves of surrogate
pairs, any depth of nesting, and in Python's reading also NaN and Infinity.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from django.http import HttpRequest
from django.utils.datastructures import MultiValueDict
from ninja.parser import Parser

from engine.domain.errors import SpecError

MAX_DEPTH = 40
MAX_INTEGER = 2**63 - 1
"""The largest whole number of a column in SQLite and in PostgreSQL."""


class CheckedParser(Parser):
    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """Read a body of JSON. Raises `SpecError`; Ninja answers 400 and keeps it as the cause."""
        return checked_json(request.body)

    def parse_querydict(
        self, data: MultiValueDict[str, str], list_fields: list[str], request: HttpRequest
    ) -> dict[str, Any]:
        """Read the values of a query or a form. Raises `SpecError`."""
        for values in data.lists():
            check_value(list(values))
        found: dict[str, Any] = super().parse_querydict(data, list_fields, request)
        return found


def checked_json(body: bytes) -> dict[str, Any]:
    """The value of a JSON text. Raises `SpecError`."""
    try:
        document = json.loads(body, parse_int=_whole, parse_constant=_no_number)
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError:
        raise SpecError("The request's body is not UTF-8 text: send JSON.") from None
    except json.JSONDecodeError as error:
        raise SpecError(f"The request's body is no JSON: {error}.") from None
    check_value(document)
    found: dict[str, Any] = document
    return found


def check_value(document: Any) -> None:
    """Check that a database can store every text, and nothing is nested deeper than `MAX_DEPTH`; raises
    `SpecError`.
    """
    rows: list[tuple[Any, int]] = [(document, 1)]
    while rows:
        value, depth = rows.pop()
        if isinstance(value, str):
            check_text(value)
        elif isinstance(value, dict | list) and depth > MAX_DEPTH:
            raise _too_deep()
        elif isinstance(value, dict):
            rows += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            rows += [(part, depth + 1) for part in value]


def check_text(text: str) -> None:
    """Check for characters that PostgreSQL (NUL) or UTF-8 (half a surrogate pair) does not have; raises
    `SpecError`.
    """
    if "\0" in text:
        raise SpecError(f"The text {text[:40]!r} has a NUL character: remove it.")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise SpecError(f"The text {text[:40]!r} has half a surrogate pair: send whole characters.")


def _whole(digits: str) -> int:
    if len(digits) <= 20:
        number = int(digits)
        if abs(number) <= MAX_INTEGER:
            return number
    raise SpecError(
        f"The number {digits[:12]}… has {len(digits)} characters: expected at most {MAX_INTEGER}."
    )


def _no_number(name: str) -> NoReturn:
    raise SpecError(f"The request's body has {name}, which is no JSON: send a number.")


def _too_deep() -> SpecError:
    return SpecError(f"The request's body is nested deeper than {MAX_DEPTH} levels: expected fewer.")
