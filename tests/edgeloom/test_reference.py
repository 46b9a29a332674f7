"""The reference has an entry for every public name of the programming interface, and none says too little."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from pydantic import BaseModel

from engine.domain import report
from engine.domain.units import unit_of_field
from engine.ops.operation import Operation
from engine.ops.shapes import check_shapes
from tests.devtools import reference
from tests.devtools.documents import TABLES
from tests.devtools.public_api import MODULES
from tests.devtools.reference_operations import Call, calls
from tests.devtools.rooms import ROOT

PUBLIC = {name for module in MODULES for name in import_module(module).__all__}
ITSELF = {"Tensor", "Count", "Positive", "NonNegative", "Fraction", "Note"}
"""Types that say nothing of what an argument is for."""
NAMED = (PUBLIC - ITSELF) | {name for name, one in vars(report).items() if isinstance(one, type)}
SHAPE = re.compile(r"\[[^\]]*\]|shape")


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_entry_on_a_page_of_the_manual(module: str) -> None:
    pages = {file for file, _ in TABLES.values() if file.startswith("docs/reference/")}
    (section,) = [
        text
        for page in pages
        for text in re.split(r"(?m)^## ", (ROOT / page).read_text("utf-8"))
        if text.startswith(f"`{module}`\n")
    ]
    entries = set(re.findall(r"(?m)^### `(\w+)`$", section))
    assert entries == set(import_module(module).__all__)


def gaps(module: str) -> Iterator[str]:
    """What nobody says of the names of a module."""
    for name in import_module(module).__all__:
        thing = getattr(import_module(module), name)
        function = getattr(thing, "__wrapped__", thing)
        if inspect.isfunction(function):
            yield from of_function(name, function)
        elif inspect.isclass(thing) and thing.__module__.startswith(reference.OURS):
            yield from of_class(name, thing)
        elif not reference.assigned(module, name)[1]:
            yield f"{name}: no text below its assignment"


def of_function(name: str, function: Any, about: str = "") -> Iterator[str]:
    said = inspect.getdoc(function) or ""
    if not said:
        yield f"{name}: no docstring"
    for one in inspect.signature(function).parameters.values():
        if one.name in ("self", "cls"):
            continue
        if not is_told(one.name, str(one.annotation), said + about):
            yield f"{name}: what is {one.name}"
        if re.search(r"\bTensor\b", str(one.annotation)) and not SHAPE.search(said + about):
            yield f"{name}: which shape has {one.name}"


def of_class(name: str, kind: type) -> Iterator[str]:
    said = inspect.getdoc(kind) or ""
    if not kind.__doc__:
        yield f"{name}: no docstring"
    bases = [base for base in kind.__mro__[1:] if base in reference.public_classes()]
    inherited = {field.name for base in bases for field in reference.fields(base)}
    for field in reference.fields(kind):
        if field.name not in inherited and not (field.said or is_told(field.name, field.type, said)):
            yield f"{name}.{field.name}: what is it"
    if not issubclass(kind, BaseModel | BaseException) and reference.constructor(kind):
        for one in inspect.signature(kind).parameters.values():
            if not is_told(one.name, str(one.annotation), said):
                yield f"{name}: what is {one.name}"
    for member, value in reference.methods(kind).items():
        if member in vars(kind):
            if inspect.isroutine(value):
                yield from of_function(f"{name}.{member}", value, said)
            elif not inspect.getdoc(value):
                yield f"{name}.{member}: no docstring"


def is_told(name: str, annotation: str, said: str) -> bool:
    """By a name that means the same everywhere, its unit, a type with an entry, or the docstring."""
    return (
        name in reference.COMMON
        or bool(unit_of_field(name))
        or bool(set(re.findall(r"\w+", annotation)) & NAMED)
        or bool(re.search(rf"\b{name}\b", said))
    )


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_say_what_each_argument_and_field_is_and_which_shape_a_tensor_has(module: str) -> None:
    assert list(gaps(module)) == []


def test_what_is_not_said_is_found() -> None:
    def scaled(x: "Tensor", often: int, size_bytes: int) -> None:  # noqa: F821, UP037
        """Scale it."""

    assert list(of_function("scaled", scaled)) == [
        "scaled: what is x",
        "scaled: which shape has x",
        "scaled: what is often",
    ]


def test_every_part_of_a_report_has_its_fields_with_units() -> None:
    page = (ROOT / "docs/reference/python.md").read_text("utf-8")
    for line in (
        "| `latency_s` | `float` | `0.0` | s |",
        "| `energy_j` | `float` | `0.0` | J |",
        "| `bytes` | `int` |  | B |",
        "| `rate_bit_per_s` | `float` |  | bit/s |",
    ):
        assert line in page, line


def test_the_table_of_costs_has_every_operation() -> None:
    module = import_module("edgeloom.method.operations")
    public = {one for one in map(vars(module).get, module.__all__) if inspect.isclass(one)}
    operations = {one for one in public if issubclass(one, Operation) and one is not Operation}
    assert {type(call.op) for call in calls()} == operations


@pytest.mark.parametrize("call", calls(), ids=lambda call: type(call.op).__name__)
def test_a_call_of_the_table_is_one_that_the_simulated_world_takes(call: Call) -> None:
    check_shapes(call.op, call.spec, call.inputs, "here")
    call.op.cost(call.spec, call.inputs, call.cached)
