"""Voltage: every device holds all layers and computes its own positions; one all-gather per layer.

Hu, Li, "When the Edge Meets Transformers: Distributed Inference with Transformer Models" (ICDCS 2024).
The paper describes one forward pass; for generation see `positions_program.py`.
"""

from __future__ import annotations

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.workload import Workload
from engine.strategies.shared.demand import demand_of
from engine.strategies.voltage.best import chosen_plan
from engine.strategies.voltage.layout import PositionsLayout
from engine.strategies.voltage.plan import VoltageParams
from engine.strategies.voltage.positions_program import Positions


class Voltage(Positions[VoltageParams]):
    name = "voltage"
    title = "Position partition (Voltage)"
    paper = "Hu, Li, Voltage, ICDCS 2024"
    is_baseline = False
    summary = "Every device holds all layers and computes some positions; one all-gather per layer."
    rule = (
        "All devices take part, in the order of their list: another order, or one better device or link, "
        "can be slower."
    )
    Params = VoltageParams

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: VoltageParams
    ) -> Plan[PositionsLayout]:
        if not workload.kv_cache:  # its own way of going without
            params = params.model_copy(update={"decode": "recompute"})
            workload = workload.model_copy(update={"kv_cache": True})
        demand = demand_of(model, workload, self.batches_bursts)
        return chosen_plan(self, cluster, model, demand, params)
