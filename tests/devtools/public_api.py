"""The names and signatures of the package `edgeloom`, one a line: what people outside build upon.

`./loom docs` writes them to tests/edgeloom/public_api.txt. A change of a line there is a change for others:
it belongs into the changelog, and a line that goes has been deprecated for a minor version.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Literal, get_origin

MODULES = (
    "edgeloom",
    "edgeloom.cluster",
    "edgeloom.method",
    "edgeloom.method.collectives",
    "edgeloom.method.demand",
    "edgeloom.method.operations",
    "edgeloom.method.planning",
    "edgeloom.method.running",
    "edgeloom.metric",
    "edgeloom.testing",
)
FILE = "tests/edgeloom/public_api.txt"


def public_api() -> str:
    lines = [line for module in MODULES for name in _names(module) for line in _lines(module, name)]
    return "\n".join(lines) + "\n"


def _names(module: str) -> list[str]:
    return sorted(import_module(module).__all__)


def _lines(module: str, name: str) -> Iterator[str]:
    found, place = getattr(import_module(module), name), f"{module}.{name}"
    if inspect.isfunction(found) or hasattr(found, "__wrapped__"):
        yield f"{place}{_signature(found)}"
    elif isinstance(found, type):
        yield f"class {place}"
        for member, text in sorted(_members(found).items()):
            yield f"    {place}.{member}{text}"
    else:
        yield f"{place} = {found!r}" if get_origin(found) is Literal else place


def _members(kind: type) -> dict[str, str]:
    """Fields with their types, methods with their signatures; those of other libraries' bases are theirs."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith(("engine.", "edgeloom", "topologies")):
            continue
        for member, annotation in inspect.get_annotations(base).items():
            if not member.startswith("_"):
                found[member] = f": {annotation}"
        for member, value in vars(base).items():
            function = getattr(value, "__func__", value)
            if not member.startswith("_") and inspect.isfunction(function):
                found[member] = _signature(function)
            elif isinstance(value, property):
                found[member] = " (property)"
    return found


def _signature(function: Any) -> str:
    """As it is written: annotations are text already."""
    return str(inspect.signature(function)).replace("'", "")
