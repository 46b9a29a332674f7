"""GPipe: contiguous stages of layers, one per device; micro-batches follow each other through them.

Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism" (NeurIPS
2019); stages by memory as in Sun et al., "LIME" (section V): "allocates layers based on memory capacity".
"""

from __future__ import annotations

from pydantic import Field

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.values import Value
from engine.domain.workload import Workload
from engine.program.strategy import Params
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.kv_pressure import KV_PRESSURE_HELP, KVPressure, plan_under
from engine.strategies.shared.pipeline import Pipeline, plan_of_ends, plan_of_stages
from engine.strategies.shared.stages import StagesBy, stages_of


class GPipeParams(Params):
    by: StagesBy = Field(
        default="memory",
        description="Layers per device in proportion to its free memory, to its speed, or equal.",
    )
    kv_pressure: KVPressure = Field(default="oom", description=KV_PRESSURE_HELP)


class GPipe(Pipeline):
    name = "gpipe"
    title = "Pipeline (GPipe)"
    paper = "Huang et al., GPipe, NeurIPS 2019"
    summary = "Each device holds a run of consecutive layers; requests of a burst follow each other through."
    Params = GPipeParams

    def plan(self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: Value) -> Plan:
        assert isinstance(params, GPipeParams)
        demand = demand_of(model, workload, self.batches_bursts)
        ends = plan_of_ends(self.name, cluster, model)
        return plan_under(
            params.kv_pressure,
            model,
            demand,
            lambda demand: plan_of_stages(ends, stages_of(cluster, model, demand, ends, params.by), {}),
        )
