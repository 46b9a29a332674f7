"""What the method of a run did, from the run's plans and trace. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.errors import RunError
from engine.domain.method_report import MethodReport, PlanAt
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.strategies.outside import errors_of
from engine.strategies.registry import plan_from_json, strategy


def method_report(spec: RunSpec, plan: Plan, trace: Sequence[Span | Mark]) -> MethodReport | None:
    """The summary of the run's strategy; `plan` is the first plan, the later ones are in `trace`."""
    plans = (PlanAt(0.0, plan), *later_plans(trace))
    chosen = strategy(spec.strategy)
    with errors_of(chosen, "`summarise` raised", RunError):
        return chosen.summarise(spec.cluster, spec.model, plans, trace)


def later_plans(trace: Sequence[Span | Mark]) -> tuple[PlanAt, ...]:
    """The plans that replaced the first one, in order of time."""
    marks = [item for item in trace if isinstance(item, Mark) and item.name == "replanned"]
    return tuple(
        PlanAt(mark.time_s, plan_from_json(mark.facts["plan"]))
        for mark in sorted(marks, key=lambda mark: mark.time_s)
    )
