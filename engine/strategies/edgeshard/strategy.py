"""EdgeShard: a pipeline whose stages minimise latency or the bottleneck, over some of the devices.

Zhang et al., "EdgeShard: Efficient LLM Inference via Collaborative Edge Computing" (IEEE Internet of
Things Journal 2024), Algorithms 1 and 2. In the paper the first layer stays on the source, so that no raw
data leaves it (`first_layer` source); by default the source may compute no layer and send embedded tokens
instead, as a source that is a terminal does. The result returns to the source. Times are of a whole request:
prefill and all decode steps (the paper averages the two).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import PlanAt
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement, Plan
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.strategies.edgeshard.layout import DecodeSchedule, PlannedPipelineLayout
from engine.strategies.edgeshard.plan import (
    Candidate,
    FirstLayer,
    candidate_of,
    planned_s_of,
    rooms_by_first_layer,
)
from engine.strategies.edgeshard.report import EdgeShardReport
from engine.strategies.edgeshard.segments import Objective
from engine.strategies.planner.choice import PLANNER_HELP, PlannedParams, PlannerChoice
from engine.strategies.planner.pipelines import (
    PipelineSeconds,
    best_batch,
    best_pipelines,
    does_fit,
    pipeline_seconds,
)
from engine.strategies.shared.by_hand import of_stages, stages_by_hand
from engine.strategies.shared.demand import Demand, demand_of
from engine.strategies.shared.kv_pressure import KV_PRESSURE_HELP, KVPressure, plan_under
from engine.strategies.shared.pipeline import Pipeline, ends_placement, stages_placement
from engine.strategies.shared.stages import Stage, check_stages_fit, most_layers, rooms_of


class EdgeShardParams(PlannedParams):
    units = ("layers",)
    planner: PlannerChoice = Field(
        default="paper", description=PLANNER_HELP.format(rule="one request of a burst after the other")
    )
    objective: Literal["auto", "latency", "throughput"] = Field(
        default="auto",
        description="What the stages minimise: the time of one request, or the slowest stage or link; "
        "auto: latency for single requests, for bursts the one that ends the burst sooner.",
    )
    first_layer: FirstLayer = Field(
        default="anywhere",
        description="source: the first layer stays on the source, as in the paper; anywhere: the source may "
        "also compute no layer.",
    )
    schedule: DecodeSchedule = Field(
        default="no-bubbles",
        description="no-bubbles: a request of a burst starts its next token at once; bubbles: all wait "
        "until all have the current one.",
    )
    kv_pressure: KVPressure = Field(default="oom", description=KV_PRESSURE_HELP)


class EdgeShard(Pipeline[EdgeShardParams, PlannedPipelineLayout]):
    name = "edgeshard"
    title = "Planned pipeline (EdgeShard)"
    paper = "Zhang et al., EdgeShard, IEEE IoT Journal 2024"
    summary = "A pipeline over the devices that are worth it, with stages cut for latency or throughput."
    rule = (
        "Its stages are the best for one request per micro-batch by the sum of its parts: in a burst a "
        "faster device can be slower."
    )
    Params = EdgeShardParams
    Layout = PlannedPipelineLayout
    Report = EdgeShardReport

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: EdgeShardParams
    ) -> Plan[PlannedPipelineLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        ends = ends_placement(self.name, cluster, model)

        def plan_for(demand: Demand) -> Plan[PlannedPipelineLayout]:
            return self._plan(cluster, model, demand, params)

        def check(plan: Plan[PlannedPipelineLayout], demand: Demand) -> None:
            demand = demand._replace(batch=plan.layout.micro_batch)
            check_stages_fit(cluster, model, demand, ends, plan.layout.stages)

        return plan_under(params.kv_pressure, model, demand, plan_for, check)

    def _plan(
        self, cluster: ClusterSpec, model: ModelSpec, demand: Demand, params: EdgeShardParams
    ) -> Plan[PlannedPipelineLayout]:
        ends = ends_placement(self.name, cluster, model)

        def plan_with(of: Demand, stages: tuple[Stage, ...]) -> Plan[PlannedPipelineLayout]:
            layout = PlannedPipelineLayout(
                stages=stages,
                objective="latency",
                schedule=params.schedule,
                micro_batch=of.batch,
                planner="by_hand",
                planned_s=0.0,
                bound_s=0.0,
            )
            return stages_placement(ends, stages, model.num_layers).with_layout(layout)

        seconds = pipeline_seconds(self, cluster, model, demand, plan_with)
        if params.plan is not None:
            return self._by_hand(cluster, model, demand, params, params.plan, seconds)
        if params.planner == "best" and params.objective == "auto":
            ways = best_pipelines(cluster, model, demand, ends, seconds, params.first_layer)
            alike = [one.candidate for one in ways if one.batch == ways[0].batch]
            return _planned(ends, model, params, ways[0].candidate, alike, ways[0].batch)
        rooms = rooms_of(cluster, model, demand, ends)
        objectives: tuple[Objective, ...] = ("latency", "throughput")
        if params.objective != "auto":
            objectives = (params.objective,)
        elif demand.sequences == 1:
            objectives = ("latency",)
        candidates = [
            found
            for objective in objectives
            for some in rooms_by_first_layer(cluster, model, demand, rooms, params.first_layer)
            if (found := candidate_of(cluster, model, demand, some, objective)) is not None
        ]
        if params.objective == "auto":
            best = min(candidates, key=lambda one: one.burst_s(demand.sequences))
        else:
            best = min(candidates, key=lambda one: one.planned_s)
        return _planned(ends, model, params, best, candidates, demand.batch)

    def _by_hand(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        demand: Demand,
        params: EdgeShardParams,
        plan: PlanByHand,
        seconds: PipelineSeconds,
    ) -> Plan[PlannedPipelineLayout]:
        """The plan with these stages, and their planned time."""
        ends = ends_placement(self.name, cluster, model)

        def given(of: Demand) -> tuple[Stage, ...]:
            return stages_by_hand(self.name, cluster, model, plan, most_layers(cluster, model, of, ends))

        stages = given(demand)
        if params.planner == "best":
            demand = best_batch(demand, stages, seconds, lambda of: does_fit(lambda: given(of)))
        objective: Objective = "throughput" if params.objective == "throughput" else "latency"
        planned_s = planned_s_of(cluster, model, demand, stages, objective)
        layout = PlannedPipelineLayout(
            stages=stages,
            objective=objective,
            schedule=params.schedule,
            micro_batch=demand.batch,
            planner="by_hand",
            planned_s=planned_s,
            bound_s=planned_s,
        )
        return stages_placement(ends, stages, model.num_layers).with_layout(layout)

    def by_hand(
        self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[PlannedPipelineLayout]
    ) -> PlanByHand:
        return of_stages(cluster, plan.layout.stages)

    def summarise(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        plans: Sequence[PlanAt],
        trace: Sequence[Span | Mark],
    ) -> EdgeShardReport:
        return EdgeShardReport.of(cluster, plans)

    def continuous(self, plan: Plan[PlannedPipelineLayout]) -> bool:
        return plan.layout.schedule == "no-bubbles"


def _planned(
    ends: Placement,
    model: ModelSpec,
    params: EdgeShardParams,
    best: Candidate,
    candidates: Sequence[Candidate],
    batch: int,
) -> Plan[PlannedPipelineLayout]:
    """The plan of `best`, for micro-batches of `batch` requests, with the bound that the others give."""
    layout = PlannedPipelineLayout(
        stages=best.stages,
        micro_batch=batch,
        objective=best.objective,
        schedule=params.schedule,
        planner="exact" if best.exact else "search",
        planned_s=best.planned_s,
        # No bound is above a plan: the two add up the same times in another order.
        bound_s=min(best.planned_s, *(one.bound_s for one in candidates if one.objective == best.objective)),
    )
    return stages_placement(ends, best.stages, model.num_layers).with_layout(layout)
