"""Hugging Face Accelerate's `device_map`: layers fill the devices one after the other, greedily.

Gugger et al., "Accelerate: Training and inference at scale made simple, efficient and adaptable" (2022),
version 1.15. Placement considers weights and memory only, neither speed nor links. Execution is strictly
sequential; a burst is one batch. Embedding and head stay on the source. Accelerate offloads layers that fit
nowhere to the first device's disk; here such a plan is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec, tower_model
from engine.domain.plan import Placement, Plan
from engine.domain.values import Positive
from engine.domain.workload import Workload
from engine.models.families.registry import family
from engine.ops.sizes import weight_bytes
from engine.program.strategy import Params
from engine.strategies.accelerate.device_map import OFFLOAD, Module, balanced, infer_device_map
from engine.strategies.shared.demand import (
    Pass,
    block_passes,
    check_memory,
    demand_of,
    end_passes,
    weights_bytes,
)
from engine.strategies.shared.ends import layer_slices
from engine.strategies.shared.pipeline import Pipeline, PipelineLayout, ends_placement, stages_placement
from engine.strategies.shared.stages import Stage, consecutive, source_first


class AccelerateParams(Params):
    device_map: Literal["auto", "balanced_low_0", "sequential"] = Field(
        default="auto",
        description="auto: equal shares of the weights; balanced_low_0: spare the first device; "
        "sequential: fill each device before the next.",
    )
    memory_frac: Positive = Field(
        default=0.9,
        le=1,
        description="Share of a device's memory that weights may take; the rest is for KV and activations.",
    )


class Accelerate(Pipeline[AccelerateParams, PipelineLayout]):
    name = "accelerate"
    title = "Layers by device map (Accelerate)"
    paper = "Gugger et al., Hugging Face Accelerate, 2022"
    summary = "Layers fill the devices greedily by memory; one device computes while the others wait."
    batches_bursts = True
    Params = AccelerateParams
    Layout = PipelineLayout

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: AccelerateParams
    ) -> Plan[PipelineLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        ends = ends_placement(self.name, cluster, model)
        stages = _stages(cluster, model, ends, params)
        placement = stages_placement(ends, stages, model.num_layers)
        passes: dict[int, list[Pass]] = {stage.device: [*block_passes(model, demand)] for stage in stages}
        passes.setdefault(cluster.source_rank, []).extend(end_passes(model, demand))
        kv_bytes = demand.kv_bytes(model, model.num_kv_heads)
        check_memory(
            cluster,
            model,
            placement,
            {stage.device: stage.num_layers * kv_bytes for stage in stages},
            passes,
            "lower memory_frac so that KV caches fit, or add memory",
        )
        return placement.with_layout(PipelineLayout(stages=stages))


def _stages(
    cluster: ClusterSpec, model: ModelSpec, ends: Placement, params: AccelerateParams
) -> tuple[Stage, ...]:
    """The device map as stages; raises `PlanError` if layers are left for which no device has room."""
    ranks = source_first(cluster)
    block_bytes = sum(weight_bytes(model, piece) for piece in layer_slices(0))
    layers = Module("layers", children=tuple(Module(str(n), block_bytes) for n in range(model.num_layers)))
    used = {str(rank): weights_bytes(ends, model, rank) for rank in ranks}
    max_bytes: Mapping[str, float] = {
        str(rank): params.memory_frac * cluster.devices[rank].memory_bytes for rank in ranks
    }
    if params.device_map != "sequential":
        total_bytes = layers.bytes + sum(used.values())
        leaf_bytes = total_bytes // num_leaves(model)
        low_0 = params.device_map == "balanced_low_0"
        max_bytes = balanced(max_bytes, total_bytes, block_bytes, leaf_bytes, low_0)
    device_map = infer_device_map([layers], max_bytes, used=used)
    homes = [*device_map.values()]
    if OFFLOAD in homes:
        room = ", ".join(
            f"{cluster.devices[rank].name} has {cluster.devices[rank].memory_bytes / 1e6:.1f} MB for "
            f"{homes.count(str(rank))}"
            for rank in ranks
        )
        raise PlanError(
            f"{ends.strategy}: {model.name} needs {model.num_layers} layers of {block_bytes / 1e6:.1f} MB "
            f"and {room}: {homes.count(OFFLOAD)} are left, so add devices or memory, or raise memory_frac."
        )
    return consecutive(ranks, [homes.count(str(rank)) for rank in ranks])


def num_leaves(model: ModelSpec) -> int:
    """The number of modules with tensors of their own in Hugging Face's model. A tied head has none; RoPE has
    a buffer.
    """
    tied = "lm_head.weight" if model.tied_head else ""
    # a fused Q, K, V matrix counts once
    modules = {stored.name: name for name, stored in family(model.family).tensors.items() if name != tied}
    in_layers = sum(name.startswith("layers.") for name in modules.values())
    in_tower = sum(name.startswith("vision.layers.") for name in modules.values())
    tower_layers = tower_model(model).num_layers if model.has_tower else 0
    outside = len(modules) - in_layers - in_tower + (model.positions == "rope")
    return model.num_layers * in_layers + tower_layers * in_tower + outside
