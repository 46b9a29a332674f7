"""Syntax trees of Python's parser, made by one thread at a time."""

from __future__ import annotations

import ast
from threading import Lock
from typing import Any, Literal

PARSING = Lock()
"""CPython 3.11 counts the depth of syntax trees for all threads together: of two that parse at the same time,
one can end with a SystemError.
"""


def parsed(source: str | bytes, mode: Literal["exec", "eval"] = "exec") -> Any:
    """The tree of `source`: `ast.Module`, with "eval" `ast.Expression`. Raises what `ast.parse` raises."""
    with PARSING:
        return ast.parse(source, mode=mode)
