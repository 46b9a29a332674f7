"""The OpenAPI document and the front end's types: complete answers, every event, and drift is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from django.core.management import CommandError, call_command

from engine.domain.events import RunState
from engine.strategies.registry import STRATEGIES
from webapp.api import api
from webapp.openapi.document import Document
from webapp.openapi.management.commands import write_api_types
from webapp.openapi.management.commands.write_api_types import for_types


def schemas() -> dict[str, Any]:
    components: dict[str, Any] = api.get_openapi_schema(path_prefix="/api/")["components"]["schemas"]
    return components


def referred(schema: Any) -> set[str]:
    """Names of the components that `schema` refers to."""
    if isinstance(schema, list):
        return {name for item in schema for name in referred(item)}
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"].rpartition("/")[2]} if isinstance(schema.get("$ref"), str) else set()
    return own.union(*(referred(value) for value in schema.values()))


def test_every_component_that_is_named_is_there() -> None:
    assert referred(schemas()) <= schemas().keys()


WHERE_THERE_IS_ONE = {
    "RunSpec": {"method", "draft_weights"},
    "ModelSpec": {"activation_bits", "draft", "likely_acceptance"},
    "Slice": {"draft"},
    "RunReport": {"rule", "pairs"},
}
"""What a document has only of a method that is not EdgeLoom's own or has a rule, or of a run on boards or in
whole numbers."""


def test_an_answer_has_every_field_though_a_request_may_leave_some_out() -> None:
    for name in ("RunSpec", "ModelSpec", "Slice", "RunReport", "Plan", "ClusterSpec", "RunDetail"):
        told = set(schemas()[name]["properties"]) - WHERE_THERE_IS_ONE.get(name, set())
        assert set(schemas()[name]["required"]) == told, name
    assert {"bare", "bits"} <= set(schemas()["Slice"]["properties"])
    assert "profile" in schemas()["RunSpec"]["properties"]
    assert set(schemas()["RunRequest"]["required"]) == {"model", "strategy"}


def test_a_replay_has_the_fields_of_a_run_and_tells_no_defaults_as_the_run_has_them() -> None:
    fields = schemas()["ReplayRequest"]["properties"]
    assert fields.keys() == schemas()["RunRequest"]["properties"].keys()
    assert "required" not in schemas()["ReplayRequest"]
    assert [name for name, field in fields.items() if "default" in field] == []


def test_a_frame_of_the_web_socket_may_have_every_kind_of_event() -> None:
    names = referred(schemas()["EventFrame"])
    kinds = {schemas()[name]["properties"]["type"]["const"] for name in names}
    assert kinds == {
        "span",
        "attempt",
        "mark",
        "state",
        "clock",
        "links",
        "log",
        "change_refused",
        "process_log",
        "request_refused",
        "rest_predicted",
        "plan",
        "report",
    }
    assert schemas()["StateChanged"]["properties"]["state"]["enum"] == list(get_args(RunState))
    assert schemas()["StateChanged"]["required"] == ["type", "state", "detail"]


def test_a_plan_has_the_layout_of_one_of_the_strategies() -> None:
    assert referred(schemas()["Plan"]["properties"]["layout"]) == {"Layout"}
    kinds = {schemas()[name]["properties"]["kind"]["const"] for name in referred(schemas()["Layout"])}
    assert kinds == {strategy.Layout.model_fields["kind"].default for strategy in STRATEGIES}


def test_types_need_no_titles_and_defaults_but_fields_of_these_names_stay() -> None:
    schema = {"title": "A", "properties": {"title": {"title": "Title", "default": 1}, "default": {}}}
    assert for_types(schema) == {"properties": {"title": {}, "default": {}}}


def test_types_that_differ_from_the_api_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    types = tmp_path / "generated" / "schema.ts"
    monkeypatch.setattr(write_api_types, "TYPES", types)
    monkeypatch.setattr(write_api_types, "written", lambda: "export {}\n")
    monkeypatch.setattr(write_api_types.settings, "BASE_DIR", tmp_path, raising=False)
    with pytest.raises(CommandError, match=r"^generated/schema\.ts differs from the API"):
        call_command("write_api_types", "--check")
    call_command("write_api_types")
    call_command("write_api_types", "--check")
    types.write_text("changed by hand")
    with pytest.raises(CommandError, match=r"^generated/schema\.ts differs from the API"):
        call_command("write_api_types", "--check")


def test_two_models_of_one_name_are_refused_instead_of_one_hiding_the_other() -> None:
    document = Document.__new__(Document)
    document.answered, document.added, document.schemas = set(), {}, {}
    document._add({"Shard": {"type": "array"}}, "serialization")
    document._add({"Shard": {"type": "array"}}, "serialization")
    with pytest.raises(ValueError, match="two models are called Shard"):
        document._add({"Shard": {"type": "object"}}, "serialization")
