"""What EdgeShard did: the stages of its plans, and how far from the optimum they can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import MethodReport, PlanAt, layouts_of
from engine.domain.units import human_s
from engine.domain.values import Count, NonNegative, Value
from engine.strategies.edgeshard.layout import PlannedPipelineLayout
from engine.strategies.edgeshard.segments import Objective

OPTIMAL = 1 + 1e-9


class PlannedStages(Value):
    """One plan: devices with their layers [start, stop), and the objective with its bound.

    `is_optimal` holds if no other stages have a smaller `planned_s` in the planner's model.
    """

    time_s: NonNegative
    stages: tuple[tuple[str, Count, Count], ...]
    objective: Objective
    planner: str
    planned_s: NonNegative
    bound_s: NonNegative
    is_optimal: bool
    source_has_first_layer: bool


class EdgeShardReport(MethodReport):
    """The plans of a run in order."""

    kind: Literal["edgeshard"] = "edgeshard"
    plans: tuple[PlannedStages, ...]

    @classmethod
    def of(cls, cluster: ClusterSpec, plans: Sequence[PlanAt]) -> EdgeShardReport:
        return cls(plans=tuple(_planned(cluster, *one) for one in layouts_of(plans, PlannedPipelineLayout)))

    def lines(self) -> tuple[str, ...]:
        return tuple(line for plan in self.plans for line in _lines(plan))


def _planned(cluster: ClusterSpec, time_s: float, layout: PlannedPipelineLayout) -> PlannedStages:
    return PlannedStages(
        time_s=time_s,
        stages=tuple((cluster.devices[s.device].name, s.start, s.stop) for s in layout.stages),
        objective=layout.objective,
        planner=layout.planner,
        planned_s=layout.planned_s,
        bound_s=layout.bound_s,
        is_optimal=layout.planned_s <= layout.bound_s * OPTIMAL,
        source_has_first_layer=layout.stages[0].device == cluster.source_rank,
    )


def _lines(plan: PlannedStages) -> tuple[str, str]:
    stages = ", ".join(f"{name} layers {start}-{stop - 1}" for name, start, stop in plan.stages)
    what = "latency of a request" if plan.objective == "latency" else "slowest stage or link"
    if plan.is_optimal:
        proof = "no other stages have less"
    elif plan.bound_s:
        proof = f"no stages have less than {human_s(plan.bound_s)}"
    else:
        proof = "its distance to the optimum is unknown"
    return (
        f"Stages from {human_s(plan.time_s)} on: {stages}.",
        f"Planned for the least {what}: {human_s(plan.planned_s)} ({plan.planner}); {proof}.",
    )
