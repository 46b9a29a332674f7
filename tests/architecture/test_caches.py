"""Caches keep a bounded number of values: an argument may be what people send, for months."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("engine", "topologies", "emulator", "webapp", "edgeloom")


SUSPECT = re.compile(r"^\s*@.*cache", re.MULTILINE)


def unbounded(source: str) -> list[str]:
    """The functions of modules and classes that keep a value for every argument that they ever get.

    One inside another function ends with its call.
    """
    if not SUSPECT.search(source):  # to parse every file takes seconds
        return []
    found = []
    bodies: list[ast.AST] = [ast.parse(source)]
    while bodies:
        for node in ast.iter_child_nodes(bodies.pop()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if any(keeps_all(decorator) for decorator in node.decorator_list) and has_parameters(node):
                    found.append(node.name)
            else:
                bodies.append(node)
    return found


def keeps_all(decorator: ast.expr) -> bool:
    text = ast.unparse(decorator).removeprefix("functools.")
    return text == "cache" or "maxsize=None" in text or text == "lru_cache(None)"


def has_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = function.args
    return bool(given.posonlyargs or given.args or given.kwonlyargs or given.vararg or given.kwarg)


@pytest.mark.parametrize("part", PARTS)
def test_no_function_keeps_a_value_for_every_argument_that_it_gets(part: str) -> None:
    found = {}
    for path in (ROOT / part).rglob("*.py"):
        if "node_modules" not in path.parts:
            for name in unbounded(path.read_text(encoding="utf-8")):
                found[f"{path.relative_to(ROOT)}: {name}"] = "give @lru_cache a maxsize"
    assert found == {}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("@cache\ndef f(x): ...", ["f"]),
        ("@functools.cache\ndef f(*, x): ...", ["f"]),
        ("class A:\n @lru_cache(maxsize=None)\n def f(self): ...", ["f"]),
        ("if True:\n @lru_cache(None)\n async def f(*x): ...", ["f"]),
        ("@cache\ndef f(): ...", []),
        ("@lru_cache(maxsize=8)\ndef f(x): ...", []),
        ("def outer(x):\n @cache\n def f(y): ...", []),
    ],
)
def test_the_search_finds_them_wherever_they_stand(source: str, names: list[str]) -> None:
    assert unbounded(source) == names
