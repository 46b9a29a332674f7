"""TOML that somebody else wrote: every text ends in tables or in `TOMLDecodeError`, in little time."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

MAX_KEY_PARTS = 30
"""Most parts of a dotted key: the time of `tomllib` grows with the square of their number."""

STRING_OR_COMMENT = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\\?\Z)'
    r"|'''.*?(?:'''|\Z)"
    r'|"(?:\\.|[^"\\\n])*"?'
    r"|'[^'\n]*'?"
    r"|(#)[^\n]*",
    re.DOTALL,
)
"""Every alternative matches whatever follows its opening, an unended text up to the end: one that could fail
there would scan to the end again at each next opening.
"""
_LONG_KEY = re.compile(rf"(?<![\w-])(?:[\w-]+[ \t]*\.[ \t]*){{{MAX_KEY_PARTS}}}")


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a text. Raises `tomllib.TOMLDecodeError`, and `RecursionError` for deep nesting.

    A byte order mark may precede it.
    """
    text = text.removeprefix("\ufeff")
    # A quoted part of a key stays a part; what stands in texts and comments is no key.
    keys = STRING_OR_COMMENT.sub(lambda found: "" if found.group(1) else "q", text)
    if found := _LONG_KEY.search(keys):
        start = found.group()[:20]
        raise tomllib.TOMLDecodeError(f"the key {start}… has more than {MAX_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # of `int`: Python reads no number that is longer
        raise tomllib.TOMLDecodeError("a number has more than 4300 digits") from error


def as_in_file(tables: Mapping[str, str], text: str) -> str:
    """`devices[1].name` → `device[1].name`: what a file calls the fields that its `tables` fill."""
    for table, field in tables.items():
        text = re.sub(rf"\b{field}(?=\[|:|\b$)", table, text)
    return text
