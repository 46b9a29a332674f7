"""Every library that the code imports is declared, and every declared one is in the lock file."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.devtools.imports import imported_modules, python_files

ROOT = Path(__file__).parents[2]
OWN = {"bench", "edgeloom", "emulator", "engine", "tests", "topologies", "webapp"}
FILES = {
    "engine": ("engine", "pictures", "torch", "results"),
    "topologies": ("engine", "drawings"),
    "emulator": ("engine", "torch", "emulator", "results", "node"),
    "webapp": ("engine", "web", "results"),
    "bench": ("engine", "torch", "emulator", "results", "web"),
}
"""Part → the requirements files that declare its libraries."""

OF_BENCHMARKS = {"playwright": "dev.in", "guidellm": "guidellm.txt"}
"""Library → the file that declares it. Only the benchmarks of the service import these, when they run."""


def normal(name: str) -> str:
    """PEP 503: Django_Ninja, django.ninja and django-ninja are one."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(file: str) -> set[str]:
    lines = (ROOT / "requirements" / file).read_text(encoding="utf-8").splitlines()
    rows = [line.partition("#")[0].strip() for line in lines]
    return {normal(re.split(r"[\[<>=!~ ]", row)[0]) for row in rows if row and not row.startswith("-")}


@cache
def distributions() -> dict[str, list[str]]:
    return dict(packages_distributions())


@pytest.mark.parametrize("part", FILES)
def test_every_library_that_a_part_imports_is_in_its_requirements(part: str) -> None:
    allowed = {name for file in FILES[part] for name in declared(f"{file}.in")}
    missing = {}
    for path in python_files(ROOT / part):
        for module in imported_modules(path, ROOT):
            top = module.partition(".")[0]
            if top in OWN or top in sys.stdlib_module_names:
                continue
            if top in OF_BENCHMARKS and path.is_relative_to(ROOT / "bench/service"):
                assert normal(top) in declared(OF_BENCHMARKS[top])
                continue
            owners = {normal(name) for name in distributions().get(top, [top])}
            if not owners & allowed:
                missing[top] = path.relative_to(ROOT).as_posix()
    assert not missing


def test_the_lock_files_have_a_version_of_everything_declared() -> None:
    runtime = {
        name
        for file in ("engine", "drawings", "pictures", "torch", "node", "emulator", "results", "web")
        for name in declared(f"{file}.in")
    }
    assert runtime <= declared("runtime.txt")
    assert declared("dev.in") <= declared("dev.txt") | declared("runtime.txt")


def test_runtime_in_takes_every_requirements_file_of_the_package() -> None:
    lines = (ROOT / "requirements/runtime.in").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "-r engine.in",
        "-r drawings.in",
        "-r pictures.in",
        "-r torch.in",
        "-r emulator.in",
        "-r results.in",
        "-r web.in",
    ]
    assert not declared("runtime.in")
