"""The first line of a docstring says what the thing is or does; what it raises comes after that."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("bench", "edgeloom", "emulator", "engine", "topologies", "webapp")


SUSPECT = re.compile(r"""["']\s*Raises""")


def begins_with_raises(source: str) -> list[str]:
    """Names of functions and classes whose docstring begins with the errors that they raise."""
    if not SUSPECT.search(source):  # to parse every file takes seconds
        return []
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and (ast.get_docstring(node) or "").startswith("Raises")
    ]


@pytest.mark.parametrize("part", PARTS)
def test_no_docstring_begins_with_what_it_raises(part: str) -> None:
    found = {}
    for path in (ROOT / part).rglob("*.py"):
        if "node_modules" not in path.parts:
            for name in begins_with_raises(path.read_text(encoding="utf-8")):
                found[f"{path.relative_to(ROOT)}: {name}"] = "say first what it does"
    assert found == {}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('def f():\n """Raises `SpecError`."""', ["f"]),
        ('class A:\n async def f(self):\n  """\n  Raises 403 unless it may."""', ["f"]),
        ('def f():\n """Check that it fits. Raises `SpecError`."""', []),
        ("def f(): ...", []),
    ],
)
def test_the_docstrings_are_told_apart(source: str, names: list[str]) -> None:
    assert begins_with_raises(source) == names
