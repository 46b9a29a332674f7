"""Edge-Only: the whole model on one edge device, quantised to 8 or 4 bits if it does not fit otherwise.

The baseline "Edge-Only" of Hu et al., "AdaptLink" (AAAI 2025 workshop), where 8 and 4 bits fit models into 24
GB. How fast quantised products are depends on device and library (the paper's 8-bit run takes nine times as
long as its 4-bit one). Here a device has the rates that it states for such weights, or what boards of its
kind reach; the parameters `speed_8bit` and `speed_4bit` say how much faster or slower than that it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Bits, Plan
from engine.domain.values import Fraction, Positive
from engine.domain.workload import Workload
from engine.ops.core import Block
from engine.ops.layers import Layers, layers
from engine.ops.operation import Op
from engine.ops.quantised import QuantisedBlock, quantised_layers, quantised_slices
from engine.program.strategy import Step
from engine.strategies.adaptlink.roles import primary_of
from engine.strategies.adaptlink.time import RequestTime
from engine.strategies.shared.by_hand import wanted_device
from engine.strategies.shared.demand import Demand, demand_of, needed_bytes
from engine.strategies.shared.ends import caches_of
from engine.strategies.single import (
    OneDevice,
    OneDeviceLayout,
    SingleParams,
    WholeModel,
    checked,
    whole_model_on,
)


class EdgeOnlyParams(SingleParams):
    device: str = Field(default="", description="Worker that computes; empty: as `choice` says.")
    choice: Literal["predicted", "most_memory"] = Field(
        default="predicted",
        description="The worker of the shortest predicted request, or the fastest of those with most memory, "
        "as the primary of AdaptLink.",
    )
    bits: Literal["auto", "none", "8", "4"] = Field(
        default="auto",
        description="Bits per weight; auto: the model's own numbers if they fit, else 8 bits, else 4.",
    )
    beta: Fraction = Field(default=0.9, gt=0, description="Fraction of its memory that auto may fill.")
    speed_8bit: Positive = Field(default=1.0, description="How much faster 8-bit layers are than modelled.")
    speed_4bit: Positive = Field(default=1.0, description="How much faster 4-bit layers are than modelled.")


class QuantisedLayout(OneDeviceLayout):
    """The rank that computes, the bits per weight (0: not quantised), and how much faster than modelled."""

    kind: Literal["quantised"] = "quantised"
    bits: Bits
    speed: Positive
    lossy: bool


class EdgeOnly(OneDevice[EdgeOnlyParams, QuantisedLayout]):
    name = "edge_only"
    title = "Edge only (quantised)"
    paper = "Baseline of Hu et al., AdaptLink, AAAI 2025 workshop"
    summary = "One edge device has the whole model, in 8 or 4 bits if it does not fit otherwise."
    lossless = False
    rule = "Weights have fewer bits only where the model does not fit otherwise: more memory can be slower."
    Params = EdgeOnlyParams
    Layout = QuantisedLayout

    def lossless_params(self) -> dict[str, Any]:
        return {"bits": "none"}

    def is_lossy(self, plan: Plan[QuantisedLayout]) -> bool:
        return plan.layout.lossy

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: EdgeOnlyParams
    ) -> Plan[QuantisedLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        named = wanted_device(self.name, cluster, model, params.device, params.plan)
        ranks = cluster.workers if named is None else (named,)
        if named is None and params.choice == "most_memory":
            ranks = (primary_of(cluster, model, demand),)
        choices: dict[str, tuple[Bits, ...]] = {"auto": (0, 8, 4), "none": (0,), "8": (8,), "4": (4,)}
        allowed = choices[params.bits]
        limit = params.beta if params.bits == "auto" else 1.0
        for bits in allowed:
            fits = [
                rank
                for rank in ranks
                if self._needed_bytes(rank, cluster, model, demand, bits)
                <= limit * cluster.devices[rank].usable_bytes
            ]
            if fits:
                break
        largest = max(ranks, key=lambda rank: (cluster.devices[rank].usable_bytes, -rank))
        speed = {0: 1.0, 8: params.speed_8bit, 4: params.speed_4bit}[bits]
        times = RequestTime(cluster, model, demand)
        rank = min(fits or [largest], key=lambda rank: times.alone_s(rank, self._as_block(bits, speed)))
        whole = self._whole(rank, cluster, model, demand, bits)
        layout = QuantisedLayout(device=rank, bits=bits, speed=speed, lossy=bits > 0)
        return checked(cluster, model, whole).with_layout(layout)

    def layers(self, model: ModelSpec, plan: Plan[QuantisedLayout], step: Step) -> Layers:
        bits = plan.layout.bits
        if not bits:
            return layers(0, model.num_layers, caches_of(step))
        return quantised_layers(model.num_layers, bits, caches_of(step), plan.layout.speed)

    def _as_block(self, bits: Bits, speed: float) -> Callable[[Block], Op]:
        return lambda op: QuantisedBlock(op.layer, bits, op.cache, speed) if bits else op

    def _needed_bytes(
        self, rank: int, cluster: ClusterSpec, model: ModelSpec, demand: Demand, bits: Bits
    ) -> int:
        whole = self._whole(rank, cluster, model, demand, bits)
        return needed_bytes(model, whole.placement, rank, whole.kv_bytes, whole.ops)

    def _whole(
        self, rank: int, cluster: ClusterSpec, model: ModelSpec, demand: Demand, bits: Bits
    ) -> WholeModel:
        if not bits:
            return whole_model_on(rank, self.name, cluster, model, demand)
        return whole_model_on(
            rank,
            self.name,
            cluster,
            model,
            demand,
            slices=lambda layer: quantised_slices(layer, bits),
            block=lambda op: QuantisedBlock(op.layer, bits, op.cache),
        )
