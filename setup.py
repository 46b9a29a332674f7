"""Builds the wheel with one package at its top: names like `engine` are anybody's.

Beside the public package `edgeloom` a checkout has `engine`, `emulator`, `topologies` and `webapp`. In the
wheel they are in `edgeloom/_own`, and every import of them, or name of a module in a text, says so. All else
is in pyproject.toml.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile, copytree, ignore_patterns
from typing import NamedTuple

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

OWN = ("emulator", "engine", "topologies", "webapp")
PLACE = "edgeloom._own"
PAGE = "webapp/frontend/dist/index.html"
NAME = re.compile(rf"({'|'.join(OWN)})(\.\w+)+(:\w+)?")
"""What a text has that is the name of a module, or of something in one."""

PROGRAM = re.compile(rf"(?<=^from )({'|'.join(OWN)})(?=\.)")
"""In a program for `python -c`."""


class Change(NamedTuple):
    """Bytes [start, stop) of a line become `text`."""

    line: int
    start: int
    stop: int
    text: str


class BuildPy(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            move(Path(self.build_lib))
            if not (Path(self.build_lib, *PLACE.split(".")) / PAGE).is_file():
                self.warn(f"this wheel's server will have no pages: {PAGE} is not built: run ./loom setup.")


class EggInfo(egg_info):
    def run(self) -> None:
        super().run()
        (Path(self.egg_info) / "top_level.txt").write_text("edgeloom\n", encoding="utf-8")


def move(built: Path) -> None:
    """Move our own packages below `edgeloom/_own`, and rewrite what names them."""
    parts = [built / name for name in OWN if (built / name).is_dir()]
    modules = {
        ".".join(path.relative_to(built).with_suffix("").parts)
        for part in parts
        for path in part.rglob("*.py")
    }
    modules |= {name.removesuffix(".__init__") for name in modules}
    for path in [
        *(built / "edgeloom").rglob("*.py"),
        *(path for part in parts for path in part.rglob("*.py")),
    ]:
        path.write_bytes(rewritten(path.read_bytes(), str(path.relative_to(built)), modules))
    place = built.joinpath(*PLACE.split("."))
    place.mkdir(exist_ok=True)
    (place / "__init__.py").write_text(
        '"""What EdgeLoom is made of; no part of its interface."""\n', encoding="utf-8"
    )
    for part in parts:
        part.rename(place / part.name)
    for page in ("docs", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        copy(Path(page), place / page)


def copy(source: Path, target: Path) -> None:
    """A page of the manual, or all: the server shows them."""
    if source.is_dir():
        copytree(source, target, ignore=ignore_patterns("results/*.json", "__pycache__"))
    elif source.is_file():
        copyfile(source, target)


def rewritten(source: bytes, file: str, modules: set[str]) -> bytes:
    lines = source.split(b"\n")
    for change in sorted(changes(ast.parse(source), file, modules), reverse=True):
        line = lines[change.line - 1]
        lines[change.line - 1] = line[: change.start] + change.text.encode() + line[change.stop :]
    return b"\n".join(lines)


def changes(tree: ast.Module, file: str, modules: set[str]) -> Iterator[Change]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in OWN:
            start = node.col_offset + len("from ")
            yield Change(node.lineno, start, start + len(node.module), f"{PLACE}.{node.module}")
        elif isinstance(node, ast.Import) and any(one.name.partition(".")[0] in OWN for one in node.names):
            yield of_import(node, file)
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and node.end_lineno == node.lineno
        ):
            text = PROGRAM.sub(rf"{PLACE}.\1", node.value)
            if NAME.fullmatch(text) and is_in(text, modules):
                text = f"{PLACE}.{text}"
            if text != node.value:
                yield Change(node.lineno, node.col_offset, node.end_col_offset or 0, repr(text))


def of_import(node: ast.Import, file: str) -> Change:
    """`import x` binds x, which a statement with the new name must bind, too."""
    (one, *others) = node.names
    if others or ("." in one.name and one.asname is None):
        raise SystemExit(
            f"{file}, line {node.lineno}: import it as `from … import …`, which the wheel can rename."
        )
    text = f"import {PLACE}.{one.name} as {one.asname}" if one.asname else f"from {PLACE} import {one.name}"
    return Change(node.lineno, node.col_offset, node.end_col_offset or 0, text)


def is_in(text: str, modules: set[str]) -> bool:
    """Whether it is a module, or one with a name in it, which files such as `engine.toml` are not."""
    name = text.partition(":")[0]
    return name in modules or name.rpartition(".")[0] in modules - set(OWN)


setup(cmdclass={"build_py": BuildPy, "egg_info": EggInfo})
