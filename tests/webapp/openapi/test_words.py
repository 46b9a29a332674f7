"""Whatever is wrong with a field of a request, the answer says it in our words, at the field's own path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter, ValidationError

from engine.domain.complaints import problems
from tests.support.foreign_words import FOREIGN
from webapp.api import api

WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**400,
    1e99,
    float("nan"),
    "a b\0",
    "9" * 5000,
    [],
    [None],
    {},
    {"a": 1},
)
DEEPEST = 2
PATH = re.compile(r"([^\[\].]+)?(\.[^\[\].]+|\[\d+\])*")


def bodies() -> Iterator[tuple[str, type[Any]]]:
    """The types of what requests have in their bodies and queries, by the names of the views."""
    for _, router in api._routers:
        for view in router.path_operations.values():
            for operation in view.operations:
                for model in operation.models:
                    for name, field in model.model_fields.items():
                        if "Uploaded" not in str(field.annotation):
                            yield f"{operation.view_func.__name__}.{name}", field.annotation


def wrong_values(schema: dict[str, Any], known: dict[str, Any], depth: int = 0) -> Iterator[Any]:
    """Values that are wrong in one place each, as deep as the schema goes."""
    if "$ref" in schema:
        schema = known[schema["$ref"].rpartition("/")[2]]
    yield from WRONG
    if depth == DEEPEST:
        return
    for one in schema.get("anyOf", schema.get("oneOf", ())):
        yield from wrong_values(one, known, depth + 1)
    for name, part in schema.get("properties", {}).items():
        for value in wrong_values(part, known, depth + 1):
            yield {name: value}
    if isinstance(schema.get("items"), dict):
        for value in wrong_values(schema["items"], known, depth + 1):
            yield [value]


def test_no_field_of_any_request_is_refused_in_foreign_words() -> None:
    tried = 0
    for name, kind in bodies():
        adapter = TypeAdapter(kind)
        schema = adapter.json_schema()
        for value in wrong_values(schema, schema.get("$defs", {})):
            try:
                adapter.validate_python(value)
            except ValidationError as error:
                tried += 1
                for path, words in problems(error.errors(), value):
                    where = f"{name}, {str(value)[:200]}: {path}: {words}"
                    assert not FOREIGN.search(re.sub(r"got '.*'$", "", words)), where
                    assert PATH.fullmatch(path) and "-" not in path.replace("-1", ""), where
    assert tried > 1000
