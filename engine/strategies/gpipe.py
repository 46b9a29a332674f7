"""GPipe: a pipeline of consecutive layers, one stage per device, through which micro-batches pass in order.

Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism" (NeurIPS
2019); stages by memory as in Sun et al., "LIME" (section V): "allocates layers based on memory capacity".
"""

from __future__ import annotations

from pydantic import Field

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.workload import Workload
from engine.program.strategy import DivisibleParams
from engine.strategies.shared.by_hand import of_stages, stages_by_hand
from engine.strategies.shared.demand import Demand, demand_of
from engine.strategies.shared.kv_pressure import KV_PRESSURE_HELP, KVPressure, plan_under
from engine.strategies.shared.pipeline import Pipeline, PipelineLayout, ends_placement, stages_placement
from engine.strategies.shared.stages import StagesBy, most_layers, stages_of


class GPipeParams(DivisibleParams):
    units = ("layers",)
    by: StagesBy = Field(
        default="memory",
        description="Layers per device in proportion to its free memory, to its speed, or equal.",
    )
    kv_pressure: KVPressure = Field(default="oom", description=KV_PRESSURE_HELP)


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
        ends = ends_placement(self.name, cluster, model)

        def plan_for(demand: Demand) -> Plan[PipelineLayout]:
            if params.plan is not None:
                stages = stages_by_hand(
                    self.name, cluster, model, params.plan, most_layers(cluster, model, demand, ends)
                )
            else:
                stages = stages_of(cluster, model, demand, ends, params.by)
            return stages_placement(ends, stages, model.num_layers).with_layout(PipelineLayout(stages=stages))

        return plan_under(params.kv_pressure, model, demand, plan_for)

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[PipelineLayout]) -> PlanByHand:
        return of_stages(cluster, plan.layout.stages)
