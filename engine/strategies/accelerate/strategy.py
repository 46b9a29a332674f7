"""Hugging Face Accelerate's `device_map`: modules fill the devices one after the other, greedily.

Gugger et al., "Accelerate: Training and inference at scale made simple, efficient and adaptable" (2022),
version 1.15. Placement considers weights and memory only, neither speed nor links. Execution is strictly
sequential; a burst is one batch. The source is the first device. The head is where the map has it: a tied one
with the embedding, any other behind the last layer, from where logits return to the source.

Not as in the package: the final norm goes with the head and position tables with the embedding; a vision
tower and the embedding behind it stay on the source; a terminal keeps embedding and head, and only layers are
mapped. Accelerate offloads modules that fit nowhere to the first device's disk; here such a plan is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from pydantic import Field

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Placement, Plan
from engine.domain.units import human
from engine.domain.values import Count, Positive
from engine.domain.workload import Workload
from engine.ops.layers import layers
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx
from engine.program.strategy import DivisibleParams, Step, Strategy
from engine.strategies.accelerate.device_map import OFFLOAD, balanced, infer_device_map
from engine.strategies.accelerate.modules import ModuleTree, module_tree
from engine.strategies.shared.by_hand import of_stages, stages_by_hand, workers_of
from engine.strategies.shared.demand import SizedOp, block_ops, check_memory, demand_of, end_ops
from engine.strategies.shared.ends import (
    caches_of,
    draw_tokens,
    embed,
    end_slices,
    result_of,
    tag,
    wanted_rows,
)
from engine.strategies.shared.pipeline import StagesLayout, stages_placement
from engine.strategies.shared.stages import Stage, consecutive, source_first


class AccelerateParams(DivisibleParams):
    units = ("layers",)
    settings = ("embedding", "head")
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


class DeviceMapLayout(StagesLayout):
    """Stages of layers, and the ranks that have the embedding and the final norm with the head."""

    kind: Literal["device_map"] = "device_map"
    embed: Count
    head: Count


class Homes(NamedTuple):
    """Ranks of embedding and head, and the stages of the layers between them."""

    embed: int
    stages: tuple[Stage, ...]
    head: int


class Accelerate(Strategy[AccelerateParams, DeviceMapLayout]):
    name = "accelerate"
    title = "Layers by device map (Accelerate)"
    paper = "Gugger et al., Hugging Face Accelerate, 2022"
    summary = "Layers fill the devices greedily by memory; one device computes while the others wait."
    batches_bursts = True
    rule = (
        "The package fills the devices in the order of their list by memory alone: another order, or more "
        "memory, can be slower."
    )
    Params = AccelerateParams
    Layout = DeviceMapLayout

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: AccelerateParams
    ) -> Plan[DeviceMapLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        homes = (
            _by_hand(self.name, cluster, model, params.plan)
            if params.plan is not None
            else _homes(self.name, cluster, model, params)
        )
        placement = stages_placement(_ends(self.name, model, homes), homes.stages, model.num_layers)
        ops: dict[int, list[SizedOp]] = {stage.device: [*block_ops(model, demand)] for stage in homes.stages}
        *begin, end = end_ops(model, demand)
        ops.setdefault(homes.embed, []).extend(begin)
        ops.setdefault(homes.head, []).append(end)
        kv_bytes = demand.kv_bytes(model, model.num_kv_heads)
        check_memory(
            cluster,
            model,
            placement,
            {stage.device: stage.num_layers * kv_bytes for stage in homes.stages},
            ops,
            "lower memory_frac so that KV caches fit, or add memory",
        )
        return placement.with_layout(DeviceMapLayout(**homes._asdict()))

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[DeviceMapLayout]) -> PlanByHand:
        ends = {"embedding": plan.layout.embed, "head": plan.layout.head}
        names = {end: cluster.devices[rank].name for end, rank in ends.items() if rank != cluster.source_rank}
        return of_stages(cluster, plan.layout.stages).model_copy(update=names)

    def why_not_ragged(self, plan: Plan[DeviceMapLayout]) -> str | None:
        return None

    async def forward(
        self, ctx: Ctx, plan: Plan[DeviceMapLayout], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        layout, source = plan.layout, ctx.cluster.source_rank
        x = await _moved(ctx, tokens, source, layout.embed, tag(step, "tokens"))
        if ctx.rank == layout.embed:
            x = await embed(ctx, step, x)
        at, purpose = layout.embed, tag(step, "hidden")
        for stage in layout.stages:
            x = await _moved(ctx, x, at, stage.device, purpose)
            if ctx.rank == stage.device:
                x = await ctx.compute_layers(layers(stage.start, stage.stop, caches_of(step)), x)
            at, purpose = stage.device, tag(step, "hidden", stage.stop - 1)
        if ctx.rank == at != layout.head:
            x = wanted_rows(step, x)
        x = await _moved(ctx, x, at, layout.head, purpose)
        if ctx.rank == layout.head:
            x = await result_of(ctx, step, x)
        x = await _moved(ctx, x, layout.head, source, tag(step, "result"))
        return await draw_tokens(ctx, step, x) if ctx.rank == source else None


async def _moved(ctx: Ctx, x: Tensor | None, src: int, dst: int, name: str) -> Tensor | None:
    """`x` of device `src` on device `dst`. Other devices keep what they have."""
    if src != dst and ctx.rank == src:
        ctx.send(x, dst, name)
    if src != dst and ctx.rank == dst:
        return await ctx.recv(src, name)
    return x


def _ends(name: str, model: ModelSpec, homes: Homes) -> Placement:
    """Embedding and head where the map has them."""
    pieces = [(homes.head if piece.part == "lm_head" else homes.embed, piece) for piece in end_slices(model)]
    return Placement(
        strategy=name,
        holdings=tuple(HeldSlice(device=rank, slice=piece) for rank, piece in pieces),
        work=tuple(
            ComputedSlice(device=rank, slice=piece, phase="prefill" if piece.part == "vision" else "both")
            for rank, piece in pieces
        ),
    )


def _by_hand(name: str, cluster: ClusterSpec, model: ModelSpec, plan: PlanByHand) -> Homes:
    """The homes of a plan made by hand; ends that it does not name are on the source. Raises `PlanError`."""
    stages = stages_by_hand(name, cluster, model, plan, source_first=False)
    embed_rank, head_rank = (
        cluster.source_rank if end is None else workers_of(name, cluster, [end])[0]
        for end in (plan.embedding, plan.head)
    )
    return Homes(embed_rank, stages, head_rank)


def _homes(name: str, cluster: ClusterSpec, model: ModelSpec, params: AccelerateParams) -> Homes:
    """The device map by rank; raises `PlanError` if modules are left for which no device has room."""
    ranks, source, tree = source_first(cluster), cluster.source_rank, module_tree(model)
    has_ends = source in ranks
    if not has_ends:
        tree = tree.layers_only
    max_bytes: Mapping[str, float] = {
        str(rank): params.memory_frac * cluster.devices[rank].usable_bytes for rank in ranks
    }
    if params.device_map != "sequential":
        low_0 = params.device_map == "balanced_low_0"
        max_bytes = balanced(max_bytes, tree.bytes, tree.block_bytes, tree.mean_leaf_bytes, low_0)
    device_map = infer_device_map(tree.modules, max_bytes, tree.ties)
    homes = [device_map[layer] for layer in tree.layers]
    ends = [device_map[tree.embed], device_map[tree.head]] if has_ends else [str(source)] * 2
    if OFFLOAD in (*homes, *ends):
        raise _no_room(name, cluster, model, tree, device_map)
    embed_rank, head_rank = (int(home) for home in ends)
    stages = consecutive(ranks, [homes.count(str(rank)) for rank in ranks])
    return Homes(source if model.vision else embed_rank, stages, head_rank)


def _no_room(
    name: str, cluster: ClusterSpec, model: ModelSpec, tree: ModuleTree, device_map: Mapping[str, str]
) -> PlanError:
    homes, largest = [*device_map.values()], max(atom.bytes for atom in tree.atoms)
    room = ", ".join(
        f"{cluster.devices[rank].name} has {human(cluster.devices[rank].usable_bytes, 'B')} for "
        f"{homes.count(str(rank))}"
        for rank in source_first(cluster)
    )
    return PlanError(
        f"{name}: {model.name} needs {len(homes)} modules of up to {human(largest, 'B')}, and {room}: "
        f"{homes.count(OFFLOAD)} are left, so add devices or memory, or raise memory_frac."
    )
