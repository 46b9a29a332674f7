"""`true`, which Python takes for 1, is no number in a request: as the number of a cluster it was 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from tests.webapp.openapi.test_words import bodies
from webapp.clusters.scenarios import PromptsIn
from webapp.events.process_log import LogQuery
from webapp.runs.schemas import FigureQuery, Filters

TEXTS: set[type[BaseModel]] = {Filters, FigureQuery, LogQuery, PromptsIn}
"""Of addresses and forms, which have nothing but texts."""


def atoms(kind: Any, metadata: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The classes in an annotation, with what it says of each."""
    if get_origin(kind) is Annotated:
        inner, *more = get_args(kind)
        yield from atoms(inner, (*more, *metadata))
    elif get_args(kind):
        for one in get_args(kind):
            yield from atoms(one, metadata)
    else:
        yield kind, metadata


def models(kind: Any, seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """The models of the server in an annotation, and in their fields."""
    for one, _ in atoms(kind):
        is_model = isinstance(one, type) and issubclass(one, BaseModel) and one not in seen
        if is_model and one.__module__.startswith("webapp."):
            seen.add(one)
            for field in one.model_fields.values():
                models(field.annotation, seen)
    return seen


def takes_true(metadata: tuple[Any, ...]) -> bool:
    try:
        return bool(TypeAdapter(Annotated[int, *(metadata or ("",))]).validate_python(True))
    except ValidationError:
        return False


def test_no_body_takes_true_for_a_whole_number() -> None:
    found: set[type[BaseModel]] = set()
    for _, kind in bodies():
        models(kind, found)
    numbers = [
        (f"{model.__name__}.{name}", metadata)
        for model in found - TEXTS
        for name, field in model.model_fields.items()
        for kind, metadata in atoms(field.annotation, tuple(field.metadata))
        if kind is int
    ]
    assert len(numbers) >= 6
    assert not [name for name, metadata in numbers if takes_true(metadata)]
