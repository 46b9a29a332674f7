"""Read which file imports which, from the source text: Python with `ast`, TypeScript with a pattern.

Imports inside functions and under `TYPE_CHECKING` count like all others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

TYPESCRIPT_IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*["']((?:\.|@/)[^"']*)["']""")
HOLD_STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of syntax trees."""

TYPESCRIPT_ENDINGS = ("", ".ts", ".tsx", "/index.ts", "/index.tsx")


def python_files(folder: Path) -> list[Path]:
    """The Python files of a folder, or the one file that `folder` is."""
    if folder.is_file():
        return [folder]
    return sorted(path for path in folder.rglob("*.py") if "node_modules" not in path.parts)


def typescript_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in (".ts", ".tsx"))


def imported_modules(path: Path, root: Path) -> tuple[str, ...]:
    """Full names of everything that a Python file imports; `from a import b` gives a and a.b."""
    return _read(path, root).imported


def is_documented(path: Path, root: Path) -> bool:
    """Whether a Python file begins with a docstring that says something."""
    return _read(path, root).is_documented


class Read(NamedTuple):
    """What a Python file says."""

    imported: tuple[str, ...]
    is_documented: bool


def _read(path: Path, root: Path) -> Read:
    return _parsed(path.read_text(encoding="utf-8"), path.relative_to(root).with_suffix("").parts[:-1])


@cache
def _parsed(text: str, package: tuple[str, ...]) -> Read:
    tree = ast.parse(text)
    found: list[str] = []
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            found += (module, *(f"{module}.{alias.name}" for alias in node.names))
    return Read(tuple(found), bool(ast.get_docstring(tree)))


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements. To walk through their expressions, too, takes longer than to parse them."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        for name in HOLD_STATEMENTS:
            waiting += getattr(node, name, ())
        yield node


def imported_typescript(path: Path, source: Path) -> Iterator[Path]:
    """The files of `source` that a TypeScript file imports; `@/` stands for `source`."""
    for match in TYPESCRIPT_IMPORT.finditer(path.read_text(encoding="utf-8")):
        base = source / match[1][2:] if match[1].startswith("@/") else path.parent / match[1]
        for ending in TYPESCRIPT_ENDINGS:
            file = Path(f"{base}{ending}")
            if file.is_file():
                yield file.resolve()
                break


def python_graph(folders: list[Path], root: Path) -> dict[str, set[str]]:
    """Module → the modules of `folders` that it imports. A package's name stands for its __init__.py.

    Importing a.b.c also runs the packages a and a.b: they count as imported, unless the importing module is
    itself inside them (they are then being imported already).
    """
    files = {_module(path, root): path for folder in folders for path in python_files(folder)}
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        named = set(imported_modules(path, root))
        packages = {package for target in named for package in _packages(target)} - set(_packages(name))
        graph[name] = ((named | packages) & set(files)) - {name}
    return graph


def circles(graph: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Sets of nodes of which each reaches all others."""
    reached = {node: _reachable(graph, node) for node in graph}
    together = {
        frozenset(other for other in reached[node] if node in reached.get(other, set())) for node in graph
    }
    return {group for group in together if group}


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += graph.get(node, ())
    return found


def _packages(module: str) -> Iterator[str]:
    """a.b.c → a, a.b"""
    names = module.split(".")
    return (".".join(names[:end]) for end in range(1, len(names)))


def _module(path: Path, root: Path) -> str:
    names = path.relative_to(root).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)
