"""The OpenAPI document: paths and schemas of the HTTP API, and the events that the WebSocket sends.

Django Ninja describes the API. `Document` changes two things: a model that is in requests and in responses
has the response's schema, in which every field is present; and it adds what no path names, the WebSocket's
frames and the layouts of all methods. `manage.py write_api_types` generates the front end's types from it.
"""

from __future__ import annotations

from typing import Any

from ninja.openapi.schema import REF_TEMPLATE, OpenAPISchema
from ninja.schema import NinjaGenerateJsonSchema
from pydantic.json_schema import JsonSchemaMode
from pydantic_core import core_schema

from engine.domain.events import Event
from engine.domain.values import Value
from engine.strategies.registry import layout_types, report_types


class EventFrame(Value):
    """One message of a run's WebSocket; one without events is a heartbeat."""

    cursor: str
    head: str
    events: list[Event]
    server_time: float


class AnswersAreComplete(NinjaGenerateJsonSchema):
    """Makes fields with a default required in answers, where they are always present."""

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        if self.mode == "serialization":
            return field.get("serialization_exclude_if") is None
        return super().field_is_required(field, total)


class Document(OpenAPISchema):
    """Ninja's document with complete answers and the schema of an event frame."""

    def __init__(self, api: Any, path_prefix: str) -> None:
        self.answered: set[str] = set()
        self.added: dict[tuple[str, JsonSchemaMode], dict[str, Any]] = {}
        super().__init__(api, path_prefix)

    def get_components(self) -> dict[str, Any]:
        for model in (EventFrame, *layout_types(), *report_types()):
            self._create_schema_from_model(model, remove_level=False, mode="serialization", keep=True)
        self.schemas["Layout"] = _one_of(layout_types(), "What a method decided; `kind` names it.")
        if report_types():
            self.schemas["MethodReport"] = _one_of(report_types(), "What a method did; `kind` names it.")
        components: dict[str, Any] = super().get_components()
        return components

    def _create_schema_from_model(
        self,
        model: Any,
        by_alias: bool = True,
        remove_level: bool = True,
        mode: JsonSchemaMode = "validation",
        keep: bool = False,
    ) -> tuple[dict[str, Any], bool]:
        """The schema of a request's or answer's wrapper, whose only property is its body; all others become
        components. With `keep`, `model` itself becomes one too.
        """
        if hasattr(model, "__ninja_flatten_map__"):
            return super()._create_schema_from_model(model, by_alias, remove_level, mode)
        schema = model.model_json_schema(
            ref_template=REF_TEMPLATE, by_alias=by_alias, schema_generator=AnswersAreComplete, mode=mode
        )
        self._add(schema.pop("$defs", {}), mode)
        if keep:
            self._add({model.__name__: schema}, mode)
        if remove_level and len(schema["properties"]) == 1:
            ((name, body),) = schema["properties"].items()
            return body, name in schema.get("required", ())
        return schema, True

    def _add(self, definitions: dict[str, Any], mode: JsonSchemaMode) -> None:
        for name, definition in definitions.items():
            if self.added.setdefault((name, mode), definition) != definition:
                raise ValueError(f"two models are called {name}: rename one of them")
            if mode == "serialization":
                self.answered.add(name)
            elif name in self.answered:
                continue
            self.schemas[name] = definition


def _one_of(models: tuple[type[Value], ...], description: str) -> dict[str, Any]:
    kinds = [{"$ref": REF_TEMPLATE.format(model=model.__name__)} for model in models]
    return {"anyOf": kinds, "description": description}
