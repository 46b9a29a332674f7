"""A pipeline with offloading: layers that do not fit into a device's memory are loaded in every pass.

The baseline of Sun et al., "LIME: Accelerating Collaborative Lossless LLM Inference on Memory-Constrained
Edge Devices" (arXiv 2512.21835), section III and Fig. 3(a): stages in proportion to memory, offloading within
each stage. A load can overlap only with later layers of the same device. If everything fits this is
GPipe's pipeline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement, Plan, Slice
from engine.domain.values import Count
from engine.domain.workload import Workload
from engine.ops.core import Block
from engine.ops.sizes import weight_bytes
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx, Handle
from engine.program.strategy import DivisibleParams, Step
from engine.strategies.pipeline_offload.slots import Cycle, cycles_by_rows, turns_of
from engine.strategies.planner.known_length import best_of_lengths
from engine.strategies.shared.by_hand import of_stages, stages_by_hand
from engine.strategies.shared.demand import Demand, demand_of
from engine.strategies.shared.ends import cache_of, layer_slices
from engine.strategies.shared.pipeline import (
    Pipeline,
    StageLayers,
    StagesLayout,
    ends_placement,
    stages_placement,
)
from engine.strategies.shared.shares import largest_remainder
from engine.strategies.shared.stages import (
    Room,
    Stage,
    all_rooms,
    consecutive,
    fill,
    free_bytes,
    stages_of,
    too_small,
)

Schedule = Literal["continuous", "flush"]
LENGTHS = 32
"""Lengths of answers for which stages are tried where the true one is known."""
MOST_LAYERS = 60_000
"""A run that computes more layers is not played for other lengths: 640 tokens of 80 layers take 2 s."""


class PipelineOffloadParams(DivisibleParams):
    units = ("layers",)
    schedule: Schedule = Field(
        default="continuous",
        description="continuous: a request of a burst starts its next token at once; flush: all wait until "
        "all have the current one.",
    )


class PipelineOffloadLayout(StagesLayout):
    """A pipeline whose layers take turns in slots.

    `cycles` has, by rank, the positions in the stage that share each slot; `slots` counts them; `segments`
    has the stages as [rank, start, stop], as LIME's plans do. `later` has the cycles in place of these from
    so many rows in the KV caches on, where answers may become longer than assumed.
    """

    kind: Literal["pipeline_offload"] = "pipeline_offload"
    segments: tuple[tuple[tuple[Count, Count, Count], ...], ...]
    slots: dict[int, Count]
    cycles: dict[int, tuple[Cycle, ...]]
    schedule: Schedule
    later: dict[int, tuple[tuple[Count, tuple[Cycle, ...]], ...]] = Field(
        default={}, exclude_if=lambda later: not later
    )

    def cycles_at(self, rank: int, rows: int) -> tuple[Cycle, ...]:
        """The cycles of `rank` in a step after which KV caches have `rows` rows."""
        begun = [cycles for from_rows, cycles in self.later.get(rank, ()) if rows >= from_rows]
        return begun[-1] if begun else self.cycles[rank]


class PipelineOffload(Pipeline[PipelineOffloadParams, PipelineOffloadLayout]):
    name = "pipeline_offload"
    title = "Pipeline with offloading"
    paper = "Baseline of Sun et al., LIME, arXiv 2512.21835"
    summary = "Stages by memory; layers that do not fit are read from disk in every pass, within their stage."
    rule = (
        "All devices have layers by memory, in the order of their list: another order, or more memory, can "
        "be slower."
    )
    Params = PipelineOffloadParams
    Layout = PipelineOffloadLayout

    def why_not_ragged(self, plan: Plan[PipelineOffloadLayout]) -> str | None:
        return "pipeline_offload has slots of weights by the rows that all sequences of a step have cached."

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: PipelineOffloadParams
    ) -> Plan[PipelineOffloadLayout]:
        """Cut the layers into stages, and offload what does not fit. Stages are for answers of the length
        that is assumed, or of the true one if their devices could not hold the KV caches of that. Raises
        `PlanError` if KV caches and one slot per device leave layers over.
        """

        def plan_for(workload: Workload) -> Plan[PipelineOffloadLayout]:
            return self._plan_for(cluster, model, workload, params)

        plan = plan_for(workload)
        if params.plan is not None:
            return plan
        return best_of_lengths(self, cluster, model, workload, plan, plan_for, LENGTHS, MOST_LAYERS)

    def _plan_for(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: PipelineOffloadParams
    ) -> Plan[PipelineOffloadLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        plan = self._plan(cluster, model, demand, params)
        if demand.longest is demand:
            return plan
        rooms = all_rooms(cluster, model, demand.true, ends_placement(self.name, cluster, model))
        most = {room.rank: least for room, least in zip(rooms, _most(model, demand.true, rooms), strict=True)}
        if all(stage.num_layers <= most[stage.device] for stage in plan.layout.stages):
            return plan
        return self._plan(cluster, model, demand.true, params)

    def _plan(
        self, cluster: ClusterSpec, model: ModelSpec, demand: Demand, params: PipelineOffloadParams
    ) -> Plan[PipelineOffloadLayout]:
        ends = ends_placement(self.name, cluster, model)
        rooms = all_rooms(cluster, model, demand, ends)
        if params.plan is not None:
            most = {
                room.rank: max(room.layers, least)
                for room, least in zip(rooms, _most(model, demand, rooms), strict=True)
            }
            stages = stages_by_hand(self.name, cluster, model, params.plan, most)
        elif sum(room.layers for room in rooms) >= model.num_layers:
            stages = stages_of(cluster, model, demand, ends, "memory")
        else:
            stages = _overfull(cluster, model, demand, ends, rooms)
        free = free_bytes(cluster, model, demand.longest, ends)
        layer_bytes, kv_bytes = _sizes(model, demand)
        row_bytes = kv_bytes / max(1, demand.cached_rows)
        by_rows = {
            stage.device: cycles_by_rows(
                stage.num_layers,
                free[stage.device],
                layer_bytes,
                row_bytes,
                demand.rows,
                demand.longest.cached_rows,
            )
            for stage in stages
        }
        cycles = {rank: first for rank, ((_, first), *_) in by_rows.items()}
        layout = PipelineOffloadLayout(
            stages=stages,
            segments=(tuple((stage.device, stage.start, stage.stop) for stage in stages),),
            slots={rank: len(one) for rank, one in cycles.items()},
            cycles=cycles,
            schedule=params.schedule,
            later={rank: later for rank, (_, *later) in by_rows.items() if later},
        )
        plan = stages_placement(ends, stages, model.num_layers).with_layout(layout)
        later = {
            (stage.device, piece)
            for stage in stages
            for cycle in cycles[stage.device]
            for position in cycle[1:]
            for piece in layer_slices(stage.start + position)
        }
        holdings = tuple(
            held.model_copy(update={"home": "offloaded"}) if (held.device, held.slice) in later else held
            for held in plan.holdings
        )
        return plan.model_copy(update={"holdings": holdings})

    def by_hand(
        self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[PipelineOffloadLayout]
    ) -> PlanByHand:
        return of_stages(cluster, plan.layout.stages)

    def continuous(self, plan: Plan[PipelineOffloadLayout]) -> bool:
        return plan.layout.schedule == "continuous"

    def stage_layers(self, ctx: Ctx, plan: Plan[PipelineOffloadLayout], layers: range) -> StageLayers:
        return SlottedLayers(ctx, plan, layers)


class SlottedLayers(StageLayers):
    """Layers of which some take turns in slots; at the start each slot has its first one."""

    def __init__(self, ctx: Ctx, plan: Plan[PipelineOffloadLayout], layers: range):
        super().__init__(ctx, plan, layers)
        self.layout = plan.layout
        self.cycles: tuple[Cycle, ...] | None = None
        self.turns: Mapping[int, int] = {}
        self.loads: defaultdict[int, list[Handle]] = defaultdict(list)

    async def run(self, step: Step, x: Tensor) -> Tensor:
        cycles = self.layout.cycles_at(self.ctx.rank, step.start + step.rows)
        if cycles != self.cycles:
            await self._take_turns(cycles, step)
        for position, layer in enumerate(self.layers):
            await self._loaded(position)
            x = await self.ctx.compute(Block(layer, cache_of(step)), x)
            if position in self.turns:
                after = self.turns[position]
                for piece in self._pieces(position):
                    self.ctx.evict(piece)
                self.loads[after] += [self.ctx.load(piece) for piece in self._pieces(after)]
        return x

    async def end(self) -> None:
        for position in list(self.loads):
            await self._loaded(position)

    async def _take_turns(self, cycles: tuple[Cycle, ...], step: Step) -> None:
        """Let the layers in `cycles` take turns from now on. Memory then has all others, and the first of
        each cycle: what is there beside them goes, what lacks after a longer sequence is loaded.
        """
        await self.end()
        self.cycles, self.turns = cycles, turns_of(cycles)
        if self.ctx.rank not in self.layout.later:
            return
        waiting = {position for cycle in cycles for position in cycle[1:]}
        for position in range(len(self.layers)):
            for piece in self._pieces(position):
                if position in waiting and self.ctx.holds(piece):
                    self.ctx.evict(piece)
        for position in range(len(self.layers)):
            if position not in waiting:
                self.loads[position] = [
                    self.ctx.load(piece) for piece in self._pieces(position) if not self.ctx.holds(piece)
                ]
        if cycles != self.layout.cycles[self.ctx.rank]:
            self.ctx.mark("slots", rows=step.start + step.rows, slots=len(cycles))

    async def _loaded(self, position: int) -> None:
        for handle in self.loads.pop(position, ()):
            await handle

    def _pieces(self, position: int) -> tuple[Slice, Slice]:
        return layer_slices(self.layers[position])


def _sizes(model: ModelSpec, demand: Demand) -> tuple[int, int]:
    """Bytes of one layer's weights, and of all its KV caches."""
    weights_bytes = sum(weight_bytes(model, piece) for piece in layer_slices(0))
    return weights_bytes, demand.kv_bytes(model, model.num_kv_heads)


def _most(model: ModelSpec, demand: Demand, rooms: Sequence[Room]) -> list[int]:
    """How many layers each room holds if all their weights take turns in one slot."""
    layer_bytes, kv_bytes = _sizes(model, demand)
    return [
        0
        if room.layers == 0
        else int((room.bytes - layer_bytes) // kv_bytes)
        if kv_bytes
        else model.num_layers
        for room in rooms
    ]


def _overfull(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, ends: Placement, rooms: Sequence[Room]
) -> tuple[Stage, ...]:
    """Stages in proportion to memory, each with room for one slot and the KV caches of all its layers."""
    most = _most(model, demand, rooms)
    if sum(most) < model.num_layers:
        raise too_small(cluster, model, demand, ends.strategy, rooms)
    weights = [room.bytes if room.layers else 0.0 for room in rooms]
    sizes = fill(largest_remainder(model.num_layers, weights), most)
    return consecutive([room.rank for room in rooms], sizes)
