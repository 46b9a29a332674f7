"""What planning workers compute for a run before it starts: its prediction for a form, its plan, its need."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from django.db.models import Q

from engine.domain.host_times import HostProfile
from engine.domain.plan import Plan
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.runs.holds import DEVICE_BYTES, SESSION_BYTES, weights_bytes
from engine.runs.made_plan import MadePlan
from engine.runs.on_nodes import played_by_server
from engine.runs.predict import Prepared, simulate
from engine.worlds.real.dilation import CAUTIOUS, demands
from webapp.base import budgets
from webapp.jobs import answers
from webapp.jobs.need import Need
from webapp.runs.models import Run

LOOK_S = 1.0
"""Seconds between two looks at whether somebody still wants a prediction."""
SIMULATE_S = 3.0
"""Wall seconds for the prediction that says how many cores a run needs: somebody waits for it."""


def request(spec: RunSpec, person: int) -> dict[str, Any]:
    """The simulated world's `report` and its `editable` plan as JSON. Raises `SpecError` if that takes longer
    than a person waits, the planner's errors, `TooMany` or `Unavailable`.
    """
    budgets.check_awaited_prediction(spec)
    return answers.ask("plan.predict", [spec.model_dump(mode="json")], person, budgets.is_large_run(spec))


class Planned(NamedTuple):
    """A run's checked plan, and how many cores the run needs for its dilation."""

    made: MadePlan
    cores: int = 1


def plan(spec: RunSpec, person: int) -> Planned:
    """Ask a planning worker for the plan of a run, and the cores that it needs. Raises as `request`."""
    answer = answers.ask("plan.plan_run", [spec.model_dump(mode="json")], person, budgets.is_large_run(spec))
    return Planned(MadePlan.parse(answer["plan"], "plan"), answer["cores"])


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


# What it needs of a worker ------------------------------------------------------------------------
def need_of(spec: RunSpec, plan: Plan, cores: int = 1) -> Need:
    """What a run needs of a host: the weights of all devices, once more for the reference, and a cautious
    share for every process; `cores` as `cores_for` says.
    """
    processes = SESSION_BYTES + DEVICE_BYTES * len(spec.cluster.devices)
    return Need(
        memory_bytes=weights_bytes(spec, plan) + processes,
        cores=cores,
        model=spec.weights.digest,
        model_name=spec.model.name,
        method=spec.method_code,
        boards=boards_of(spec),
    )


def boards_of(spec: RunSpec) -> tuple[str, ...]:
    """The boards that a run takes: none unless it is on boards."""
    return tuple(device.node for device in spec.cluster.devices if device.node) if spec.on_nodes else ()


def cores_for(prepared: Prepared, profile: HostProfile | None = None) -> int:
    """Cores with which a run keeps the dilation that it asks for, by its prediction without disturbances.

    One where the dilation is chosen for the cores; beside boards, one for each device that is played;
    at native speed, one for each worker of the cluster. `profile` has the times of a core, unless the run has
    them. Of a long run, only the beginning is predicted, as much as takes `SIMULATE_S`.
    """
    spec = prepared.spec
    if spec.on_nodes:
        return max(1, len(played_by_server(spec)))
    if spec.dilation == "auto":
        return 1
    if spec.dilation == "native":
        return len(spec.cluster.workers)
    calm = prepared._replace(spec=spec.model_copy(update={"scenario": Scenario()}))
    until_s = time.monotonic() + SIMULATE_S
    trace, _ = simulate(calm, lambda: time.monotonic() > until_s)
    with_one_core = demands(spec, spec.profile or profile or CAUTIOUS, trace, cores=1)["cores"]
    return max(1, math.ceil(with_one_core / float(spec.dilation)))
