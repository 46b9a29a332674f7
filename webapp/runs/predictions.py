"""What planning workers compute for a run before it starts: its prediction for a form, and its plan."""

from __future__ import annotations

from typing import Any

from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from webapp import planning


def request(spec: RunSpec, person: int) -> dict[str, Any]:
    """The simulated world's `report` and its `editable` plan as JSON. Raises the planner's errors, `TooMany`
    or `Unavailable`.
    """
    return planning.ask("plan.predict", [spec.model_dump(mode="json")], person)


def plan(spec: RunSpec, person: int) -> Plan:
    """The strategy's checked plan. Raises as `request`."""
    answer = planning.ask("plan.plan_run", [spec.model_dump(mode="json")], person)
    return Plan.parse(answer["plan"], "plan")
