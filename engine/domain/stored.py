"""Stored documents: specs, plans, reports and events as JSON, which outlives the code that wrote it.

Every stored document carries its version under "schema". `to_document` writes one of the present version.
Documents of the version before are read, too; one without a version may be of either. The `upgrade_…`
functions turn one of the version before into the present form, as plain data. The `read…` functions also
validate it, and are lenient: they ignore unknown keys, and what they cannot read is a sentence in the answer,
never an exception.

To change the form of a document: raise SCHEMA, replace the steps below by those from the version before, and
the documents in tests/webapp/runs/stored by such of that version.
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

SCHEMA = 6
OLDEST = SCHEMA - 1
"""The oldest version that is read."""

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
    schema = document.get("schema", OLDEST)
    return schema if isinstance(schema, int) else OLDEST


# Reading ------------------------------------------------------------------------------------------
def read_spec(document: Document, where: str) -> Stored[RunSpec]:
    return read(RunSpec, document, where, upgrade_spec)


def read_plan(document: Document, where: str) -> Stored[Plan]:
    return read(Plan, document, where, lambda plan: _upgrade(plan, _plan_5_to_6))


def read_report(document: Document, where: str) -> Stored[RunReport]:
    return read(RunReport, document, where, upgrade_report)


def read(
    kind: type[ValueT], document: Document, where: str, upgrade: Step = lambda document: document
) -> Stored[ValueT]:
    """`document` as a value of `kind`; `where` is the document's name for people."""
    schema = schema_of(document)
    if schema < OLDEST:
        return Stored(
            None,
            f"{where} was stored by an older version of EdgeLoom (document version {schema}; this program "
            f"reads {OLDEST} and {SCHEMA}): read it with the version that stored it.",
        )
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
        return Stored(
            None, f"{newer} and cannot be read here." if newer else _complaint(error, where, current)
        )
    return Stored(value, f"{newer}: what is new in it is not shown." if newer else "")


def _complaint(error: ValidationError, where: str, data: Document) -> str:
    try:
        raise_spec_error(error, where, data)
    except SpecError as sentence:
        return str(sentence)


# Upgrading ----------------------------------------------------------------------------------------
def upgrade_spec(document: Document) -> Document:
    """The present form of a spec, or of the request from which the web application made one: both name a
    strategy and parameters.
    """
    return _upgrade(document, _spec_5_to_6)


def upgrade_report(document: Document) -> Document:
    """The present form of a report; its spec has the report's version."""
    return _upgrade(document, _report_5_to_6)


def upgrade_event(event: Document, schema: int) -> Document:
    """The present form of an event as JSON, stored with version `schema`. Plans and reports are inside some
    of them.
    """
    if schema >= SCHEMA:
        return event
    match event:
        case {"type": "plan"}:
            return _plan_5_to_6(event)
        case {"type": "report"}:
            return _report_5_to_6(event)
        case {"facts": {"plan": dict(plan)}}:  # of a mark: the plan made after a failure
            return {**event, "facts": {**event["facts"], "plan": _plan_5_to_6(plan)}}
    return event


def upgrade_events_text(text: str, schema: int) -> str:
    """The present form of a JSON array of events; the text itself if it has the present form already, or a
    newer one.
    """
    if schema >= SCHEMA:
        return text
    return json.dumps([upgrade_event(event, schema) for event in json.loads(text)], separators=(",", ":"))


def _upgrade(document: Document, step: Step) -> Document:
    """Apply the step from the version before; a present document, and a newer one, stay as they are."""
    return document if schema_of(document) >= SCHEMA else {**step(document), "schema": SCHEMA}


OF_5 = "lime", "edgeformer"
"""Methods that had parameters which are the workload's now."""


def _spec_5_to_6(spec: Document) -> Document:
    """Let the workload say for which length plans are made, which was a parameter of LIME, and whether there
    are KV caches, which was one of EdgeFormer.
    """
    params, workload = spec.get("params"), spec.get("workload")
    if not (isinstance(params, dict) and isinstance(workload, dict) and spec.get("strategy") in OF_5):
        return spec
    moved: Document = {}
    if spec.get("strategy") == "lime":
        moved = {"assumed_tokens": params.get("assumed_tokens", 0)}
    if spec.get("strategy") == "edgeformer":
        moved = without_caches(params.get("decode"), workload)
    rest = {key: value for key, value in params.items() if key not in {"assumed_tokens", "decode"}}
    return {**spec, "params": rest, "workload": {**moved, **workload}}


def without_caches(decode: Any, workload: Document) -> Document:
    """What a workload says in place of EdgeFormer's parameter `decode`. Caches stay where no tokens follow
    the prompt or a scheduler admits requests.
    """
    scheduler = workload.get("scheduler") or ("auto" if workload.get("pattern") == "serve" else "fcfs")
    can_be = workload.get("new_tokens") != 0 and scheduler == "fcfs"
    return {"kv_cache": False} if decode == "recompute" and can_be else {}


def _plan_5_to_6(plan: Document) -> Document:
    """Let the parameters that an EdgeFormer's plan repeats say no more whether there are KV caches."""
    layout = plan.get("layout")
    if not (isinstance(layout, dict) and isinstance(layout.get("params"), dict)):
        return plan
    params = {key: value for key, value in layout["params"].items() if key != "decode"}
    return {**plan, "layout": {**layout, "params": params}}


def _report_5_to_6(report: Document) -> Document:
    """Let the report's spec and plan take their own steps."""
    steps = {"spec": _spec_5_to_6, "plan": _plan_5_to_6}
    own = {key: step(report[key]) for key, step in steps.items() if isinstance(report.get(key), dict)}
    return {**report, **own}
