"""Stored documents: specs, plans, reports and events as JSON, which outlives the code that wrote it.

Every stored document carries its version under "schema"; a document without one has version 1. `to_document`
writes one of the present version. The `upgrade_…` functions turn an older one into the present form, one step
per version, as plain data. The `read…` functions also validate it, and are lenient: they ignore unknown keys,
and what they cannot read is a sentence in the answer, never an exception.

To change the form of a document: raise SCHEMA, add one step per table below (`_same`, if nothing changes),
and keep documents of the version before in tests/webapp/runs/stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from engine.domain.errors import SpecError
from engine.domain.plan import Plan
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.domain.values import Value, raise_spec_error
from engine.domain.world import present_world

SCHEMA = 6

Document = dict[str, Any]
Step = Callable[[Document], Document]
ValueT = TypeVar("ValueT", bound=Value)


class Stored(NamedTuple, Generic[ValueT]):
    """What was read of a document. `value` is None if it could not be read. `problem` says why, or that the
    document is newer than this program; it is empty for a document that was read completely.
    """

    value: ValueT | None
    problem: str = ""

    def needed(self) -> ValueT:
        """The value; raises `SpecError` with the problem if there is none."""
        if self.value is None:
            raise SpecError(self.problem)
        return self.value


def to_document(value: Value) -> Document:
    """The JSON of `value` with the present version."""
    return {"schema": SCHEMA, **value.model_dump(mode="json")}


def schema_of(document: Mapping[str, Any]) -> int:
    schema = document.get("schema", 1)
    return max(1, schema) if isinstance(schema, int) else 1


# Reading ------------------------------------------------------------------------------------------
def read_spec(document: Document, where: str) -> Stored[RunSpec]:
    return read(RunSpec, document, where, upgrade_spec)


def read_plan(document: Document, where: str) -> Stored[Plan]:
    return read(Plan, document, where, upgrade_plan)


def read_report(document: Document, where: str) -> Stored[RunReport]:
    return read(RunReport, document, where, upgrade_report)


def read(
    kind: type[ValueT], document: Document, where: str, upgrade: Step = lambda document: document
) -> Stored[ValueT]:
    """`document` as a value of `kind`; `where` is the document's name for people."""
    schema = schema_of(document)
    newer = (
        f"{where} was stored by a newer version of EdgeLoom (document version {schema}; this program reads "
        f"{SCHEMA})"
        if schema > SCHEMA
        else ""
    )
    current = {key: value for key, value in upgrade(document).items() if key != "schema"}
    try:
        value = kind.model_validate(current, extra="ignore", context={"extra": "ignore"})
    except ValidationError as error:
        return Stored(None, f"{newer} and cannot be read here." if newer else _complaint(error, where))
    return Stored(value, f"{newer}: what is new in it is not shown." if newer else "")


def _complaint(error: ValidationError, where: str) -> str:
    try:
        raise_spec_error(error, where)
    except SpecError as sentence:
        return str(sentence)


# Upgrading ----------------------------------------------------------------------------------------
def upgrade_spec(document: Document) -> Document:
    """The present form of a spec, or of the request from which the web application made one: both name a
    strategy and parameters.
    """
    return _upgrade(document, _SPEC_STEPS)


def upgrade_plan(document: Document) -> Document:
    return _upgrade(document, _PLAN_STEPS)


def upgrade_report(document: Document) -> Document:
    """The present form of a report; its spec and plan have the report's version."""
    return _upgrade(document, _REPORT_STEPS)


def upgrade_event(event: Document, schema: int) -> Document:
    """The present form of an event as JSON, stored with version `schema`. Plans and reports are inside some
    of them.
    """
    if schema >= SCHEMA:
        return event
    upgrade = {"plan": upgrade_plan, "report": upgrade_report}.get(event["type"])
    if upgrade is not None:
        current = upgrade({**event, "schema": schema})
        return {key: value for key, value in current.items() if key != "schema"}
    if event["type"] == "mark" and "plan" in event["facts"]:
        plan = upgrade_plan({**event["facts"]["plan"], "schema": schema})
        del plan["schema"]
        return {**event, "facts": {**event["facts"], "plan": plan}}
    return event


def upgrade_events_text(text: str, schema: int) -> str:
    """The present form of a JSON array of events; the text itself if it has the present form already, or a
    newer one.
    """
    if schema >= SCHEMA:
        return text
    return json.dumps([upgrade_event(event, schema) for event in json.loads(text)], separators=(",", ":"))


def _upgrade(document: Document, steps: Mapping[int, Step]) -> Document:
    """Apply the step of each version from the document's own on; a newer document stays as it is."""
    for schema in range(schema_of(document), SCHEMA):
        document = {**steps[schema](document), "schema": schema + 1}
    return document


def _same(document: Document) -> Document:
    return document


LAYOUT_KINDS_OF_VERSION_1 = {
    "single": "single",
    "accelerate": "pipeline",
    "gpipe": "pipeline",
    "pipeline_offload": "pipeline_offload",
    "edgeshard": "planned_pipeline",
    "megatron": "tensor_parallel",
    "deepspeed": "tensor_parallel",
    "galaxy": "galaxy",
    "tpi_llm": "sliding_window",
    "tpi_llm_offload": "sliding_window",
    "voltage": "positions",
    "edgeformer": "heads",
    "lime": "segments",
    "mcu": "tree",
    "adaptlink": "shares",
    "edge_only": "quantised",
    "cloud_only": "cloud",
}
"""The kind of layout that each strategy of version 1 had."""

ADDED_DURING_VERSION_1: dict[str, Document] = {
    "positions": {"last_layer_rows": "all", "causal_trim": False, "order": "auto", "repartition": False},
    "shares": {"partition": "columns", "heads": [], "backups": {}, "coverage": 1.0, "workers": []},
    "quantised": {"speed": 1.0},
    "cloud": {"upload_bytes": 0},
}
"""Kind of layout → values of the keys that the first plans of version 1 did not have yet."""


def _plan_1_to_2(plan: Document) -> Document:
    """Turn the untyped `extra` into a `layout` with its kind, which also replaces the name of its view."""
    kind = LAYOUT_KINDS_OF_VERSION_1.get(str(plan.get("strategy")), "")
    own = {key: value for key, value in plan.get("extra", {}).items() if key != "view"}
    if kind == "heads":  # the same as its `blocks`
        own.pop("stages", None)
    layout = {"kind": kind, **ADDED_DURING_VERSION_1.get(kind, {}), **own}
    return {**{key: value for key, value in plan.items() if key != "extra"}, "layout": layout}


def _report_1_to_2(report: Document) -> Document:
    """Let the plan take its step. A document that is no report stays as it is; `read` then gives
    the reason.
    """
    plan = report.get("plan")
    return {**report, "plan": _plan_1_to_2(plan)} if isinstance(plan, dict) else report


ADDED_DURING_VERSION_2: dict[str, Document] = {
    "heads": {"lenders": [], "weighed_heads": [], "table_entries": [], "same_prompt": False},
    "planned_pipeline": {"bound_s": 0.0},
    "galaxy": {"planner": "balance"},
    "tree": {"head_tiles": []},
}
"""Kind of layout → values of the keys that plans of version 2 did not have yet."""

PARAMS_2_TO_3: dict[str, dict[str, str | None]] = {}
"""Strategy → parameters of version 2 with their present name, or None for those that did nothing."""


def _plan_2_to_3(plan: Document) -> Document:
    """Give a layout the keys that it lacks. A document that is no plan stays as it is; `read` gives the
    reason.
    """
    layout = plan.get("layout")
    if not isinstance(layout, dict):
        return plan
    added = ADDED_DURING_VERSION_2.get(str(layout.get("kind")), {})
    if plan.get("strategy") == "accelerate":
        added, layout = _ends_of_version_2(plan), {**layout, "kind": "device_map"}
    return {**plan, "layout": {**added, **layout}}


def _ends_of_version_2(plan: Document) -> Document:
    """The device that had the embedding in a plan of `accelerate`; it also had the head."""
    holdings = plan.get("holdings", [])
    device = next((held["device"] for held in holdings if held["slice"]["part"] == "embed"), 0)
    return {"embed": device, "head": device}


def _spec_2_to_3(spec: Document) -> Document:
    """Give parameters their present names, and leave out those that did nothing."""
    names = PARAMS_2_TO_3.get(str(spec.get("strategy")))
    params = spec.get("params")
    if not names or not isinstance(params, dict):
        return spec
    renamed = {names.get(key, key): value for key, value in params.items()}
    return {**spec, "params": {key: value for key, value in renamed.items() if key is not None}}


def _report_2_to_3(report: Document) -> Document:
    """Let a report's plan and spec take their own steps."""
    steps = (("plan", _plan_2_to_3), ("spec", _spec_2_to_3))
    changed = {key: step(report[key]) for key, step in steps if isinstance(report.get(key), dict)}
    return {**report, **changed}


def _spec_3_to_4(spec: Document) -> Document:
    """Say by `planner` what other parameters said, or that a method had only the paper's way."""
    params = spec.get("params")
    if not isinstance(params, dict):
        return spec
    match spec.get("strategy"):
        case "gpipe" | "megatron":
            params = {"planner": "paper", **params}
        case "galaxy" if "planner" in params:
            params = {**params, "planner": "paper", "division": params["planner"]}
        case "voltage" if params.get("ratio") == "search":
            rest = {key: value for key, value in params.items() if key != "ratio"}
            params = {"last_layer_rows": "all", **rest, "planner": "best"}
    return {**spec, "params": params}


def _report_3_to_4(report: Document) -> Document:
    """Call the one prediction that with all changes known, which it was; the others were not kept. Its spec
    takes its own step.
    """
    others = {key: value for key, value in report.items() if key != "prediction"}
    if isinstance(others.get("spec"), dict):
        others["spec"] = _spec_3_to_4(others["spec"])
    known = report.get("prediction")
    return {**others, "predictions": {"with_all_changes_known": known}} if known else others


def _report_4_to_5(report: Document) -> Document:
    """Give the world its present name: that of a real run is `native` or `emulated`, as the spec says."""
    if "world" not in report:
        return report
    world, spec = present_world(report["world"]), report.get("spec")
    if world == "real":
        world = "native" if isinstance(spec, dict) and spec.get("dilation") == "native" else "emulated"
    return {**report, "world": world}


def _spec_5_to_6(spec: Document) -> Document:
    """Let the workload say for which length plans are made, which was a parameter of LIME."""
    params, workload = spec.get("params"), spec.get("workload")
    if not (isinstance(params, dict) and isinstance(workload, dict) and spec.get("strategy") == "lime"):
        return spec
    rest = {key: value for key, value in params.items() if key != "assumed_tokens"}
    assumed = params.get("assumed_tokens", 0)
    return {**spec, "params": rest, "workload": {"assumed_tokens": assumed, **workload}}


def _report_5_to_6(report: Document) -> Document:
    """Let the report's spec take its own step."""
    spec = report.get("spec")
    return {**report, "spec": _spec_5_to_6(spec)} if isinstance(spec, dict) else report


_SPEC_STEPS: Mapping[int, Step] = {1: _same, 2: _spec_2_to_3, 3: _spec_3_to_4, 4: _same, 5: _spec_5_to_6}
_PLAN_STEPS: Mapping[int, Step] = {1: _plan_1_to_2, 2: _plan_2_to_3, 3: _same, 4: _same, 5: _same}
_REPORT_STEPS: Mapping[int, Step] = {
    1: _report_1_to_2,
    2: _report_2_to_3,
    3: _report_3_to_4,
    4: _report_4_to_5,
    5: _report_5_to_6,
}
