"""What people read calls the command as they call it: `./loom` in a checkout only, by `COMMAND`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("edgeloom", "emulator", "engine", "topologies", "webapp")
"""What is in the wheel; bench is of a checkout only."""

CALLED = re.compile(r"\./loom\b|(?<![\w./-])loom (?=[a-z])")
SUSPECT = re.compile(r"(?<!\w)loom\b")
PLACE = "engine/domain/command_name.py"
COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)


def fixed_names(source: str) -> list[str]:
    """Texts of a module that call the command by a fixed name; the documentation of its code is none."""
    if not SUSPECT.search(source):  # to parse every file takes seconds
        return []
    nodes = list(ast.walk(ast.parse(source)))
    documentation = {node.value for node in nodes if isinstance(node, ast.Expr)}
    texts = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [node.value for node in texts if node not in documentation and CALLED.search(node.value)]


@pytest.mark.parametrize("part", SHIPPED)
def test_no_text_of_the_programs_calls_the_command_by_a_fixed_name(part: str) -> None:
    paths = [path for path in (ROOT / part).rglob("*.py") if "node_modules" not in path.parts]
    found = {str(path.relative_to(ROOT)): fixed_names(path.read_text(encoding="utf-8")) for path in paths}
    found.pop(PLACE, None)
    assert {path: texts for path, texts in found.items() if texts} == {}, "use COMMAND of " + PLACE


def test_no_page_calls_the_command_by_a_fixed_name() -> None:
    folder = ROOT / "webapp" / "frontend" / "src"
    paths = [path for ending in ("ts", "tsx") for path in folder.rglob(f"*.{ending}")]
    found = [
        str(path.relative_to(ROOT))
        for path in paths
        if CALLED.search(COMMENT.sub("", path.read_text(encoding="utf-8"))) and "generated" not in path.parts
    ]
    assert len(paths) > 100 and found == [], "use command of @/api/command"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('raise SpecError(f"{what}: run ./loom up.")', [": run ./loom up."]),
        ('HELP = "see `loom list models`"', ["see `loom list models`"]),
        ('def f():\n    """`./loom up`: start it."""', []),
        ('VOLUME = "edgeloom state"', []),
    ],
)
def test_a_fixed_name_is_found_in_texts_only(source: str, found: list[str]) -> None:
    assert fixed_names(source) == found
