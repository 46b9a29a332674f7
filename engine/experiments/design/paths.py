"""Paths into a run: which there are, their units, and setting the values that they name.

A path is a field of `RunSpec` and of the values in it, as `workload.new_tokens`. An item of a list is named
by its number, its name (of a link: `a--b`), or `*` for all: `cluster.links[*].bit_per_s`. Besides, there are

    cluster.num_devices           only the first n devices, with the links among them and to switches
    cluster.num_workers           the first n workers work; the others become terminals
    cluster.copies[NAME]          n devices in place of NAME, called NAME-1 …, each with NAME's links
    cluster.devices[*].preset     all of a preset's fields, but the device's own name, role and title
"""

from __future__ import annotations

import difflib
import re
import types
import typing
from functools import cache
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel

from engine.domain.errors import SpecError
from engine.domain.links import link_name
from engine.domain.spec import RunSpec
from engine.domain.units import unit_of_field
from engine.strategies.registry import every

SPECIAL = ("cluster.num_devices", "cluster.num_workers", "cluster.copies[*]", "cluster.devices[*].preset")
NOT_VARIED = {
    "seed": "give `seeds` beside the factors",
    "world": "give `worlds` beside the factors",
    "name": "it changes nothing",
    "method": "it follows from `strategy`",
}
STEP = re.compile(r"\.?([A-Za-z_][A-Za-z0-9_]*)|\[([^\[\]]+)\]")


class Step(NamedTuple):
    """A field by `name`, or an item of a list by `item`; the other is empty."""

    name: str = ""
    item: str = ""


def parse_path(path: str) -> tuple[Step, ...]:
    """`links[a--b].delay_s` → its steps. Raises `SpecError` for text that is no path."""
    steps, at = [], 0
    while at < len(path):
        found = STEP.match(path, at)
        if found is None:
            raise SpecError(
                f"{path}: is no path: expected something like {SPECIAL[0]} or cluster.links[*].bit_per_s."
            )
        steps.append(Step(found[1] or "", found[2] or ""))
        at = found.end()
    if not steps or not steps[0].name:
        raise SpecError(f"{path!r}: is no path: expected a field of a run, as workload.new_tokens.")
    return tuple(steps)


def check_path(path: str) -> None:
    """Check that a run has such a field; raises `SpecError`, which names the nearest one."""
    steps = parse_path(path)
    if steps[0].name in NOT_VARIED:
        raise SpecError(f"{path}: is no path of a factor: {NOT_VARIED[steps[0].name]}.")
    general = "".join("[*]" if step.item else f".{step.name}" for step in steps)[1:]
    is_inside_a_param = (
        steps[0].name == "params" and len(steps) > 1 and f"params.{steps[1].name}" in known_paths()
    )
    if general in known_paths() or is_inside_a_param or (steps[0].name != "params" and _exists(steps)):
        return
    near = difflib.get_close_matches(general, known_paths(), n=1, cutoff=0.0)
    raise SpecError(f"{path}: a run has no such field: the nearest is {near[0]}.")


def unit_of(path: str) -> str | None:
    """The unit of the values at `path`, "" for names and counts; None where the path does not tell."""
    unit = unit_of_field(parse_path(path)[-1].name)
    return unit if unit or path.startswith("params.") else ""


def known_paths() -> tuple[str, ...]:
    """Every path, with `[*]` for items: what may be varied, and what wrong paths are compared with."""
    params = {f"params.{name}" for chosen in every() for name in chosen.Params.model_fields}
    return (*_paths_of_runs(), *sorted(params))


@cache
def _paths_of_runs() -> tuple[str, ...]:
    found = [*SPECIAL, *_fields_of(RunSpec, "", depth=3)]
    return tuple(path for path in dict.fromkeys(found) if path.partition(".")[0] not in NOT_VARIED)


def _fields_of(kind: type[BaseModel], before: str, depth: int) -> list[str]:
    found = []
    for name, field in kind.model_fields.items():
        path = f"{before}{name}"
        found.append(path)
        for inner, is_list in _models_in(field.annotation):
            if depth > 1:
                found += _fields_of(inner, f"{path}[*]." if is_list else f"{path}.", depth - 1)
    return found


def _exists(steps: tuple[Step, ...]) -> bool:
    """Whether the types of `RunSpec` have a field at these steps."""
    at: list[Any] = [RunSpec]
    for step in steps:
        if any(_is_free(kind) for kind in at):
            return True
        if step.item:
            at = [inner for kind in at for inner in _items_of(kind)]
        else:
            models = [
                kind for kind in _plain_types(at) if isinstance(kind, type) and issubclass(kind, BaseModel)
            ]
            at = [
                kind.model_fields[step.name].annotation for kind in models if step.name in kind.model_fields
            ]
        if not at:
            return False
    return True


def _plain_types(kinds: list[Any]) -> list[Any]:
    """Members of unions, without what `Annotated` adds."""
    found: list[Any] = []
    for kind in kinds:
        origin = typing.get_origin(kind)
        if origin is Annotated:
            found += _plain_types([typing.get_args(kind)[0]])
        elif origin in (typing.Union, types.UnionType):
            found += _plain_types(list(typing.get_args(kind)))
        else:
            found.append(kind)
    return found


def _items_of(kind: Any) -> list[Any]:
    """Types of the items of a tuple."""
    return [
        item
        for plain in _plain_types([kind])
        if typing.get_origin(plain) is tuple
        for item in typing.get_args(plain)
        if item is not Ellipsis
    ]


def _is_free(kind: Any) -> bool:
    """A mapping: it has whatever keys are put into it."""
    return any(typing.get_origin(plain) is dict for plain in _plain_types([kind]))


def _models_in(annotation: Any) -> list[tuple[type[BaseModel], bool]]:
    """The values in a field, and whether they are items of a list."""
    plain = [(kind, False) for kind in _plain_types([annotation])]
    items = [(kind, True) for inner in _items_of(annotation) for kind in _plain_types([inner])]
    return [
        (kind, is_list)
        for kind, is_list in plain + items
        if isinstance(kind, type) and issubclass(kind, BaseModel)
    ]


# Setting ------------------------------------------------------------------------------------------
def set_at(document: dict[str, Any], path: str, value: Any) -> None:
    """Put `value` at `path` of `document`, a run or a part of one as plain data, in place.

    Raises `SpecError` where a list has no such item; the sentence names what it has.
    """
    steps = parse_path(path)
    targets: list[Any] = [document]
    for step in steps[:-1]:
        targets = [inner for target in targets for inner in _below(target, step, path)]
    last = steps[-1]
    for target in targets:
        if last.item:
            for index in _indices(target, last.item, path):
                target[index] = value
        elif isinstance(target, dict):
            target[last.name] = value
        else:
            raise SpecError(f"{path}: {last.name} is no field there.")


def _below(target: Any, step: Step, path: str) -> list[Any]:
    if step.item:
        return [target[index] for index in _indices(target, step.item, path)]
    if not isinstance(target, dict):
        raise SpecError(f"{path}: {step.name} is no field there.")
    if target.get(step.name) is None:
        target[step.name] = {}
    return [target[step.name]]


def _indices(target: Any, item: str, path: str) -> list[int]:
    if not isinstance(target, list):
        raise SpecError(f"{path}: [{item}] names an item of a list, and there is none.")
    if item == "*":
        return list(range(len(target)))
    if item.isdigit():
        if int(item) < len(target):
            return [int(item)]
        raise SpecError(f"{path}: there are {len(target)} items, counted from 0.")
    found = [index for index, row in enumerate(target) if item in names_of(row)]
    if not found:
        known = ", ".join(names_of(row)[0] for row in target if names_of(row)) or "none with a name"
        raise SpecError(f"{path}: there is no {item}: there are {known}.")
    return found


def names_of(row: Any) -> tuple[str, ...]:
    """What an item of a list is called: a link by both orders of its ends."""
    if isinstance(row, dict) and "name" in row:
        return (str(row["name"]),)
    if isinstance(row, dict) and {"a", "b"} <= row.keys():
        a, b, number = str(row["a"]), str(row["b"]), int(row.get("parallel", 1))
        return (link_name(a, b, number), link_name(b, a, number))
    return ()
