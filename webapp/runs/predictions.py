"""What planning workers compute for a run before it starts: its prediction for a form, and its plan."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from django.db.models import Q

from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from webapp import budgets, planning
from webapp.runs.models import Run

LOOK_S = 1.0


def request(spec: RunSpec, person: int) -> dict[str, Any]:
    """The simulated world's `report` and its `editable` plan as JSON. Raises the planner's errors, `TooMany`
    or `Unavailable`.
    """
    return planning.ask("plan.predict", [spec.model_dump(mode="json")], person, budgets.is_large_run(spec))


class Planned(NamedTuple):
    """The strategy's checked plan, and how many cores the run needs for its dilation."""

    plan: Plan
    cores: int = 1


def plan(spec: RunSpec, person: int) -> Planned:
    """Raises as `request`."""
    answer = planning.ask("plan.plan_run", [spec.model_dump(mode="json")], person, budgets.is_large_run(spec))
    return Planned(Plan.parse(answer["plan"], "plan"), answer["cores"])


class Unwanted:
    """Whether nobody wants the prediction of a run any more: it was deleted, or cancelled before it started.

    It looks into the database every `LOOK_S`.
    """

    def __init__(self, run_id: int, clock: Callable[[], float] = time.monotonic):
        self.run_id, self.clock = run_id, clock
        self.looks_s = clock()

    def __call__(self) -> bool:
        if self.clock() < self.looks_s:
            return False
        self.looks_s = self.clock() + LOOK_S
        unwanted = Q(status="cancelled", report=None)
        return not Run.objects.filter(pk=self.run_id).exclude(unwanted).exists()
