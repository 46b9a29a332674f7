"""The version of the code that results depend on: a hash of its files, without comments and docstrings."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from engine.domain.cache_directory import cache_directory
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
    """The version of the code that predictions depend on (`on_shapes`: those without tensors), in 12
    hexadecimal digits.

    The files are read once per process.
    """
    without = [ENGINE / folder for folder in TENSORS_ONLY] if on_shapes else []
    return version_of((ENGINE / room for room in ROOMS), without)


def version_of(folders: Iterable[Path], without: Iterable[Path] = ()) -> str:
    """A hash of the names and contents of all code and tables below `folders`, but those below `without`.
    Comments, docstrings and the layout of code do not count.

    The last answer for these files is kept in the cache with the hash of their bytes: parsing all code takes
    two seconds, and every process of a server asks at its start.
    """
    files = _files(folders, without)
    raw = _hash({name: path.read_bytes() for name, path in files.items()} | {sys.version: b""})
    kept = cache_directory() / f"version-{_hash(dict.fromkeys(files, b''))[:DIGITS]}"
    with contextlib.suppress(OSError, ValueError):
        of, version = kept.read_text().split()
        if of == raw:
            return version
    version = _hash_of(files)
    with contextlib.suppress(OSError):  # a cache that cannot be written only costs time
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_name(f"{kept.name}.{os.getpid()}")
        draft.write_text(f"{raw} {version}\n")
        draft.replace(kept)
    return version


def _files(folders: Iterable[Path], without: Iterable[Path]) -> dict[str, Path]:
    """The files that count, by their names from the folder's on."""
    left_out = tuple(without)
    return {
        f"{folder.name}/{path.relative_to(folder).as_posix()}": path
        for folder in folders
        for path in sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS)
        if not any(path.is_relative_to(other) for other in left_out)
    }


def _hash_of(files: dict[str, Path]) -> str:
    return _hash({name: _content(path) for name, path in files.items()})[:DIGITS]


def _hash(contents: dict[str, bytes]) -> str:
    found = hashlib.sha256()
    for name, content in contents.items():
        found.update(name.encode() + b"\0" + content + b"\0")
    return found.hexdigest()


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
