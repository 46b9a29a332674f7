"""GPipe: a pipeline of consecutive layers, one stage per device, through which micro-batches pass in order.

Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism" (NeurIPS
2019); stages by memory as in Sun et al., "LIME" (section V): "allocates layers based on memory capacity".
"""

from __future__ import annotations

import contextlib

from pydantic import Field

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement, Plan
from engine.domain.workload import Workload
from engine.strategies.planner.choice import PLANNER_HELP, PlannedParams, PlannerChoice
from engine.strategies.planner.pipelines import best_batch, best_pipelines, does_fit, pipeline_seconds
from engine.strategies.shared.by_hand import of_stages, stages_by_hand
from engine.strategies.shared.demand import Demand, block_ops, check_memory, demand_of
from engine.strategies.shared.kv_pressure import KV_PRESSURE_HELP, KVPressure, plan_under
from engine.strategies.shared.last_head import HEAD_HELP, HeadPlace, last_head_ops, with_last_head
from engine.strategies.shared.pipeline import Pipeline, PipelineLayout, ends_placement, stages_placement
from engine.strategies.shared.stages import (
    Stage,
    StagesBy,
    check_stages_fit,
    most_layers,
    source_first,
    stages_of,
)


class GPipeParams(PlannedParams):
    units = ("layers",)
    rule = ("by",)
    planner: PlannerChoice = Field(
        default="best",
        description=PLANNER_HELP.format(
            rule="all devices by rank, with as many layers as `by` says; the default if `by` is given"
        ),
    )
    by: StagesBy = Field(
        default="memory",
        description="With planner=paper, layers per device in proportion to its free memory, to its speed, "
        "or equal.",
    )
    kv_pressure: KVPressure = Field(default="oom", description=KV_PRESSURE_HELP)
    head: HeadPlace = Field(default="source", description=HEAD_HELP)


class GPipe(Pipeline[GPipeParams, PipelineLayout]):
    name = "gpipe"
    title = "Pipeline (GPipe)"
    paper = "Huang et al., GPipe, NeurIPS 2019"
    summary = "Each device holds a run of consecutive layers; requests of a burst follow each other through."
    rule = (
        "All devices have layers, in the order of their list: another order, or more memory, can be slower."
    )
    Params = GPipeParams
    Layout = PipelineLayout

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: GPipeParams
    ) -> Plan[PipelineLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        ends = ends_placement(self.name, cluster, model)

        def plan_for(demand: Demand) -> Plan[PipelineLayout]:
            return self._plan(cluster, model, demand, params)

        def check(plan: Plan[PipelineLayout], demand: Demand) -> None:
            demand, stages = demand._replace(batch=plan.layout.micro_batch), plan.layout.stages
            check_stages_fit(cluster, model, demand, ends, stages)
            if plan.layout.head is not None:
                _with_head(cluster, model, demand, ends, stages)

        return plan_under(params.kv_pressure, model, demand, plan_for, check)

    def _plan(
        self, cluster: ClusterSpec, model: ModelSpec, demand: Demand, params: GPipeParams
    ) -> Plan[PipelineLayout]:
        moves_head = params.head == "last" and demand.generates
        source = ends_placement(self.name, cluster, model)
        ends = with_last_head(source, source_first(cluster)[-1]) if moves_head else source

        def plan_with(of: Demand, stages: tuple[Stage, ...]) -> Plan[PipelineLayout]:
            return self._with_stages(cluster, model, of, stages, moves_head)

        seconds = pipeline_seconds(self, cluster, model, demand, plan_with)
        if params.plan is None and params.planner == "best":
            for found in best_pipelines(cluster, model, demand, source, seconds):
                of = demand._replace(batch=found.batch)
                with contextlib.suppress(PlanError):  # the last device has no room for the head
                    return plan_with(of, found.stages)
        if params.plan is None:
            stages = stages_of(cluster, model, demand, ends, params.by)
            return plan_with(demand, stages)
        by_hand = params.plan

        def given(of: Demand) -> tuple[Stage, ...]:
            return stages_by_hand(self.name, cluster, model, by_hand, most_layers(cluster, model, of, ends))

        stages = given(demand)
        if params.planner == "best":
            demand = best_batch(demand, stages, seconds, lambda of: does_fit(lambda: given(of)))
        return plan_with(demand, stages)

    def _with_stages(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        demand: Demand,
        stages: tuple[Stage, ...],
        moves_head: bool,
    ) -> Plan[PipelineLayout]:
        ends = ends_placement(self.name, cluster, model)
        if moves_head:
            return _with_head(cluster, model, demand, ends, stages)
        layout = PipelineLayout(stages=stages, micro_batch=demand.batch)
        return stages_placement(ends, stages, model.num_layers).with_layout(layout)

    def chooses_last(self, plan: Plan[PipelineLayout]) -> bool:
        return plan.layout.head is not None

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[PipelineLayout]) -> PlanByHand:
        return of_stages(cluster, plan.layout.stages)


def _with_head(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, ends: Placement, stages: tuple[Stage, ...]
) -> Plan[PipelineLayout]:
    """The plan of `stages` whose last device has the output matrix. Raises `PlanError` if it has no room."""
    last = stages[-1].device
    if last == cluster.source_rank:
        return stages_placement(ends, stages, model.num_layers).with_layout(
            PipelineLayout(stages=stages, micro_batch=demand.batch)
        )
    placement = stages_placement(with_last_head(ends, last), stages, model.num_layers)
    kv_bytes = stages[-1].num_layers * demand.kv_bytes(model, model.num_kv_heads)
    ops = (*block_ops(model, demand), *last_head_ops(model, demand))
    remedy = "leave the head on the source, or give the last device fewer layers"
    check_memory(cluster, model, placement, {last: kv_bytes}, {last: ops}, remedy)
    return placement.with_layout(PipelineLayout(stages=stages, micro_batch=demand.batch, head=last))
