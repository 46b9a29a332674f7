"""Single device: one worker computes every layer. Other strategies are compared with this one.

A source that is another device embeds the prompt, sends it to the worker and receives the result. This is a
baseline of Hu, Li, "When the Edge
Meets Transformers: Distributed Inference with Transformer Models" (ICDCS 2024), section VI.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypeVar

from engine.domain.by_hand import PlanByHand, Unit
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Layout, Placement, Plan, Slice
from engine.domain.values import Count
from engine.domain.workload import Workload
from engine.ops.core import Block
from engine.ops.layers import Layers, layers
from engine.ops.operation import Op
from engine.ops.tensors import Tensor, payload_bytes
from engine.program.ctx import Ctx
from engine.program.strategy import DivisibleParams, ParamsT, Step, Strategy
from engine.strategies.shared.by_hand import of_device, wanted_device
from engine.strategies.shared.demand import (
    Demand,
    SizedOp,
    block_ops,
    check_memory,
    demand_of,
    end_ops,
    hidden,
)
from engine.strategies.shared.ends import (
    caches_of,
    end_holdings,
    end_work,
    layer_slices,
    pass_on_device,
)
from engine.strategies.shared.messages import message_s
from engine.strategies.shared.shares import layer_s


class SingleParams(DivisibleParams):
    units = ("layers",)
    device: str = Field(
        default="",
        description="Worker that computes; empty: of those that hold the model, the one with which a request "
        "is estimated to be fastest.",
    )


class OneDeviceLayout(Layout):
    """Base of the layouts with all layers on one device (rank)."""

    device: Count


class SingleLayout(OneDeviceLayout):
    """The rank that computes."""

    kind: Literal["single"] = "single"


OneDeviceLayoutT = TypeVar("OneDeviceLayoutT", bound=OneDeviceLayout, default=Any)


class OneDevice(Strategy[ParamsT, OneDeviceLayoutT]):
    """All layers on one device. Subclasses choose the device, and the operations that are the layers."""

    @abstractmethod
    def layers(self, model: ModelSpec, plan: Plan[OneDeviceLayoutT], step: Step) -> Layers:
        """All layers of the model."""

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[OneDeviceLayoutT]) -> PlanByHand:
        return of_device(cluster, model, plan.layout.device)

    def hand_steps(self, model: ModelSpec, params: ParamsT) -> Mapping[Unit, int]:
        return {"layers": model.num_layers}

    def why_not_ragged(self, plan: Plan[OneDeviceLayoutT]) -> str | None:
        return None

    async def forward(
        self, ctx: Ctx, plan: Plan[OneDeviceLayoutT], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        async def run(x: Tensor) -> Tensor:
            return await self._layers(ctx, plan, step, x)

        return await pass_on_device(ctx, step, tokens, plan.layout.device, run)

    async def _layers(self, ctx: Ctx, plan: Plan[OneDeviceLayoutT], step: Step, x: Tensor) -> Tensor:
        return await ctx.compute_layers(self.layers(ctx.model, plan, step), x)


class Single(OneDevice[SingleParams, SingleLayout]):
    name = "single"
    computes_int8 = True
    title = "Single device"
    paper = ""
    summary = "One worker holds and computes the whole model; nothing is distributed."
    Params = SingleParams
    Layout = SingleLayout

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: SingleParams
    ) -> Plan[SingleLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        named = wanted_device(self.name, cluster, model, params.device, params.plan)
        ranks = by_request_time(cluster, model, demand) if named is None else [named]
        rank, placement = first_that_fits(ranks, self.name, cluster, model, demand)
        return placement.with_layout(SingleLayout(device=rank))

    def layers(self, model: ModelSpec, plan: Plan[SingleLayout], step: Step) -> Layers:
        return layers(0, model.num_layers, caches_of(step))


class WholeModel(NamedTuple):
    """All layers on one device, and by rank what the devices need besides weights."""

    placement: Placement
    kv_bytes: Mapping[int, int]
    ops: Mapping[int, Sequence[SizedOp]]


def whole_model_on(
    rank: int,
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    slices: Callable[[int], Sequence[Slice]] = layer_slices,
    block: Callable[[Block], Op] = lambda op: op,
) -> WholeModel:
    """All layers on device `rank`: `slices` of each, and the operation that `block` makes of a plain one."""
    layers = [piece for layer in range(model.num_layers) for piece in slices(layer)]
    placement = Placement(
        strategy=name,
        holdings=(*end_holdings(cluster, model), *(HeldSlice(device=rank, slice=s) for s in layers)),
        work=(*end_work(cluster, model), *(ComputedSlice(device=rank, slice=s) for s in layers)),
    )
    kv_bytes = {rank: model.num_layers * demand.kv_bytes(model, model.num_kv_heads)}
    ops = {cluster.source_rank: [*end_ops(model, demand)]}
    for one in block_ops(model, demand):
        assert isinstance(one.op, Block)
        ops.setdefault(rank, []).append(one._replace(op=block(one.op)))
    return WholeModel(placement, kv_bytes, ops)


def checked(cluster: ClusterSpec, model: ModelSpec, whole: WholeModel) -> Placement:
    """The placement of a whole model; raises `PlanError` if memory is short."""
    remedy = "give it more memory, or choose a strategy that splits the weights (gpipe, megatron)"
    check_memory(cluster, model, whole.placement, whole.kv_bytes, whole.ops, remedy)
    return whole.placement


def by_request_time(cluster: ClusterSpec, model: ModelSpec, demand: Demand) -> list[int]:
    """The workers' ranks, those first with which a request is estimated to take the least time, ties to the
    source: all layers, and the way there and back of what each pass takes in and gives out.
    """
    source = cluster.source_rank
    given = 1 if demand.generates else demand.rows
    sizes = [(demand.rows, given), *[(1, 1)] * (demand.new_tokens - 1)]

    def request_s(rank: int) -> float:
        return model.num_layers * layer_s(cluster.devices[rank], model, demand) + sum(
            message_s(cluster, source, rank, payload_bytes(hidden(model, demand.batch, taken)))
            + message_s(cluster, rank, source, payload_bytes(hidden(model, demand.batch, given)))
            for taken, given in sizes
        )

    return sorted(cluster.workers, key=lambda rank: (request_s(rank), rank != source, rank))


def first_that_fits(
    ranks: Sequence[int], name: str, cluster: ClusterSpec, model: ModelSpec, demand: Demand
) -> tuple[int, Placement]:
    """The first of `ranks` whose memory has room for the whole model. Raises the first one's `PlanError` if
    none has.
    """
    refusals = []
    for rank in ranks:
        try:
            return rank, checked(cluster, model, whole_model_on(rank, name, cluster, model, demand))
        except PlanError as error:
            refusals.append(error)
    raise refusals[0]
