"""The version of the code that results depend on: a hash of its files, without comments and docstrings."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from engine.experiments.design.syntax import parsed

ENGINE = Path(__file__).parents[2]
ROOMS = ("domain", "ops", "models", "program", "strategies", "worlds", "runs", "reports")
"""The rooms of the engine that make a run's numbers."""

TENSORS_ONLY = ("worlds/real", "ops/torch_kernels")
"""Folders in them that a prediction on shapes does not load."""

ENDINGS = (".py", ".toml")
DIGITS = 12


@lru_cache(maxsize=2)
def code_version(on_shapes: bool = True) -> str:
    """Of what predictions depend on (`on_shapes`: those without tensors), 12 hexadecimal digits.

    The files are read once per process.
    """
    without = [ENGINE / folder for folder in TENSORS_ONLY] if on_shapes else []
    return hash_of((ENGINE / room for room in ROOMS), without)


def hash_of(folders: Iterable[Path], without: Iterable[Path] = ()) -> str:
    """Of the names and contents of all code and tables below `folders`, but those below `without`. Comments,
    docstrings and the layout of code do not count.
    """
    found = hashlib.sha256()
    left_out = tuple(without)
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS):
            if not any(path.is_relative_to(other) for other in left_out):
                found.update(f"{folder.name}/{path.relative_to(folder).as_posix()}\0".encode())
                found.update(_content(path) + b"\0")
    return found.hexdigest()[:DIGITS]


def _content(path: Path) -> bytes:
    """What a file does: of code its syntax tree as text, of a table its bytes."""
    if path.suffix != ".py":
        return path.read_bytes()
    tree: ast.Module = parsed(path.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree).encode()


def _is_text(statement: ast.stmt) -> bool:
    """A docstring, or the text under a constant that explains it."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
