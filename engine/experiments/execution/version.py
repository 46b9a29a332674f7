"""The version of the code that results depend on: a hash of its files, without comments and docstrings."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import sys
import uuid
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.domain.cache_directory import cache_directory
from engine.experiments.design.syntax import parsed

ENGINE = Path(__file__).parents[2]
ROOMS = (
    *("domain", "ops", "plugins", "confined", "models", "schedulers", "program"),
    *("worlds", "planning", "strategies", "reports", "runs"),
)
"""The rooms of the engine that make a run's numbers: `runs` and all that it imports."""

TENSORS_ONLY = ("worlds/real", "ops/torch_kernels")
"""Folders in them that a prediction on shapes does not load."""

ENDINGS = (".py", ".toml", ".c")
DIGITS = 12

STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Where a statement, or a part of one, has others."""

MOST_KEPT = 5000
"""Files whose code the cache knows: all of EdgeLoom, some times over."""


@lru_cache(maxsize=2)
def code_version(on_shapes: bool = True) -> str:
    """The version of the code that predictions depend on (`on_shapes`: those without tensors), in 12
    hexadecimal digits.

    The files are read once per process.
    """
    without = [ENGINE / folder for folder in TENSORS_ONLY] if on_shapes else []
    return version_of((ENGINE / room for room in ROOMS), without)


def version_of(folders: Iterable[Path], without: Iterable[Path] = ()) -> str:
    """A hash of the names and contents of all code and tables below `folders`, but those below `without`.
    Comments, docstrings and the layout of code do not count.

    What each file comes to is kept in the cache by a hash of its bytes: parsing all code takes seconds, every
    process of a server asks at its start, for several selections of files, and few files change at a time.
    """
    files = _files(folders, without)
    known = _known()
    fresh: dict[str, str] = {}
    comes_to: dict[str, str] = {}
    for name, path in files.items():
        content = path.read_bytes()
        if path.suffix == ".py":
            raw = _hash(content)
            if raw not in known:
                fresh[raw] = _hash(_without_words(content))
            comes_to[name] = known.get(raw) or fresh[raw]
        else:
            comes_to[name] = _hash(content)
    if fresh:
        _keep(known | fresh)
    return _hash("".join(f"{name}\0{one}\0" for name, one in comes_to.items()).encode())[:DIGITS]


def _kept() -> Path:
    """Where it is kept what files come to: for this Python, as others may write code in other words."""
    return cache_directory() / f"versions-{_hash(sys.version.encode())[:DIGITS]}.json"


def _known() -> dict[str, str]:
    with contextlib.suppress(OSError, TypeError, ValueError):
        return dict(json.loads(_kept().read_text()))
    return {}


def _keep(known: dict[str, str]) -> None:
    """The newest, of several selections and some versions; two processes that write at once lose some."""
    with contextlib.suppress(OSError):  # a cache that cannot be written only costs time
        kept = _kept()
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_name(f"{kept.name}.{uuid.uuid4().hex}")
        draft.write_text(json.dumps(dict(list(known.items())[-MOST_KEPT:])))
        draft.replace(kept)


def _files(folders: Iterable[Path], without: Iterable[Path]) -> dict[str, Path]:
    """The files that count, by their names from the folder's on."""
    left_out = tuple(without)
    return {
        f"{folder.name}/{path.relative_to(folder).as_posix()}": path
        for folder in folders
        for path in sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS)
        if not any(path.is_relative_to(other) for other in left_out)
    }


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _without_words(code: bytes) -> bytes:
    """What code does: its syntax tree as text, without docstrings."""
    tree: ast.Module = parsed(code)
    waiting: list[Any] = [tree]
    while waiting:  # statements alone: no expression has a docstring, and most of a tree is expressions
        node = waiting.pop()
        for name in STATEMENTS:
            found = getattr(node, name, None)
            waiting += found if isinstance(found, list) else ()
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not _is_text(one)] or [ast.Pass()]
    return ast.unparse(tree).encode()


def _is_text(statement: ast.stmt) -> bool:
    """A docstring, or the text under a constant that explains it."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
