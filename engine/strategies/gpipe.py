"""GPipe: a pipeline of consecutive layers, one stage per device, through which micro-batches pass in order.

Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism" (NeurIPS
2019); stages by memory as in Sun et al., "LIME" (section V): "allocates layers based on memory capacity".
"""

from __future__ import annotations

from pydantic import Field

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement, Plan
from engine.domain.workload import Workload
from engine.program.strategy import DivisibleParams
from engine.strategies.shared.by_hand import of_stages, stages_by_hand
from engine.strategies.shared.demand import Demand, block_passes, check_memory, demand_of
from engine.strategies.shared.kv_pressure import KV_PRESSURE_HELP, KVPressure, plan_under
from engine.strategies.shared.last_head import HEAD_HELP, HeadPlace, last_head_passes, with_last_head
from engine.strategies.shared.pipeline import Pipeline, PipelineLayout, ends_placement, stages_placement
from engine.strategies.shared.stages import Stage, StagesBy, most_layers, source_first, stages_of


class GPipeParams(DivisibleParams):
    units = ("layers",)
    by: StagesBy = Field(
        default="memory",
        description="Layers per device in proportion to its free memory, to its speed, or equal.",
    )
    kv_pressure: KVPressure = Field(default="oom", description=KV_PRESSURE_HELP)
    head: HeadPlace = Field(default="source", description=HEAD_HELP)


class GPipe(Pipeline[GPipeParams, PipelineLayout]):
    name = "gpipe"
    title = "Pipeline (GPipe)"
    paper = "Huang et al., GPipe, NeurIPS 2019"
    summary = "Each device holds a run of consecutive layers; requests of a burst follow each other through."
    Params = GPipeParams
    Layout = PipelineLayout

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: GPipeParams
    ) -> Plan[PipelineLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        source = ends_placement(self.name, cluster, model)
        moves_head = params.head == "last" and demand.generates
        ends = with_last_head(source, source_first(cluster)[-1]) if moves_head else source

        def plan_for(demand: Demand) -> Plan[PipelineLayout]:
            if params.plan is not None:
                stages = stages_by_hand(
                    self.name, cluster, model, params.plan, most_layers(cluster, model, demand, ends)
                )
            else:
                stages = stages_of(cluster, model, demand, ends, params.by)
            if moves_head:
                return _with_head(cluster, model, demand, source, stages)
            return stages_placement(source, stages, model.num_layers).with_layout(
                PipelineLayout(stages=stages)
            )

        return plan_under(params.kv_pressure, model, demand, plan_for)

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
        return stages_placement(ends, stages, model.num_layers).with_layout(PipelineLayout(stages=stages))
    placement = stages_placement(with_last_head(ends, last), stages, model.num_layers)
    kv_bytes = stages[-1].num_layers * demand.kv_bytes(model, model.num_kv_heads)
    passes = (*block_passes(model, demand), *last_head_passes(model, demand))
    remedy = "leave the head on the source, or give the last device fewer layers"
    check_memory(cluster, model, placement, {last: kv_bytes}, {last: passes}, remedy)
    return placement.with_layout(PipelineLayout(stages=stages, head=last))
