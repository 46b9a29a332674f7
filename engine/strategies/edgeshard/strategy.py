"""EdgeShard: a pipeline whose stages minimise latency or the bottleneck, over some of the devices.

Zhang et al., "EdgeShard: Efficient LLM Inference via Collaborative Edge Computing" (IEEE Internet of
Things Journal 2024), Algorithms 1 and 2. The first layer stays on the source, so that no raw data leaves it,
and the result returns there. A source that is a terminal computes no layer and sends embedded tokens instead.
Times are of a whole request: prefill and all decode steps (the paper averages the two).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Literal

from pydantic import Field

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.units import needs_and_has, transfer_s
from engine.domain.values import NonNegative
from engine.domain.workload import Workload
from engine.ops.tensors import payload_bytes
from engine.program.strategy import Params
from engine.strategies.edgeshard.segments import (
    EXACT_DEVICES,
    Objective,
    Profile,
    best_segments,
    cost_s,
    layerwise_segments,
)
from engine.strategies.shared.demand import Demand, demand_of, end_passes, hidden
from engine.strategies.shared.kv_pressure import KV_PRESSURE_HELP, KVPressure, plan_under
from engine.strategies.shared.pipeline import Pipeline, StagesLayout, ends_placement, stages_placement
from engine.strategies.shared.shares import layer_s, pass_s
from engine.strategies.shared.stages import Room, Stage, consecutive, fill, layer_bytes, rooms_of

DecodeSchedule = Literal["no-bubbles", "bubbles"]


class EdgeShardParams(Params):
    objective: Literal["auto", "latency", "throughput"] = Field(
        default="auto",
        description="What the stages minimise: the time of one request, or the slowest stage or link; "
        "auto: latency for single requests, throughput for bursts.",
    )
    schedule: DecodeSchedule = Field(
        default="no-bubbles",
        description="no-bubbles: a request of a burst starts its next token at once; bubbles: all wait "
        "until all have the current one.",
    )
    kv_pressure: KVPressure = Field(default="oom", description=KV_PRESSURE_HELP)


class PlannedPipelineLayout(StagesLayout):
    """A pipeline with what its planner minimised: `planned_s` is the objective's value, in seconds."""

    kind: Literal["planned_pipeline"] = "planned_pipeline"
    objective: Objective
    schedule: DecodeSchedule
    planner: Literal["exact", "layer-wise heuristic"]
    planned_s: NonNegative


class EdgeShard(Pipeline[EdgeShardParams, PlannedPipelineLayout]):
    name = "edgeshard"
    title = "Planned pipeline (EdgeShard)"
    paper = "Zhang et al., EdgeShard, IEEE IoT Journal 2024"
    summary = "A pipeline over the devices that are worth it, with stages cut for latency or throughput."
    Params = EdgeShardParams
    Layout = PlannedPipelineLayout

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: EdgeShardParams
    ) -> Plan[PlannedPipelineLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        objective = params.objective
        if objective == "auto":
            objective = "throughput" if workload.pattern == "bursty" else "latency"
        return plan_under(
            params.kv_pressure,
            model,
            demand,
            lambda demand: self._plan(cluster, model, demand, objective, params.schedule),
        )

    def _plan(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        demand: Demand,
        objective: Objective,
        schedule: DecodeSchedule,
    ) -> Plan[PlannedPipelineLayout]:
        ends = ends_placement(self.name, cluster, model)
        rooms = rooms_of(cluster, model, demand, ends)
        _check_source(cluster, model, demand, rooms)
        exact = len(rooms) <= EXACT_DEVICES
        profile = profile_of(cluster, model, demand, rooms)
        stages = stages_for(profile, rooms, objective, exact)
        by_rank = tuple(stage.model_copy(update={"device": rooms[stage.device].rank}) for stage in stages)
        layout = PlannedPipelineLayout(
            stages=by_rank,
            objective=objective,
            schedule=schedule,
            planner="exact" if exact else "layer-wise heuristic",
            planned_s=cost_s(profile, stages, objective),
        )
        return stages_placement(ends, by_rank, model.num_layers).with_layout(layout)

    def continuous(self, plan: Plan[PlannedPipelineLayout]) -> bool:
        return plan.layout.schedule == "no-bubbles"


def profile_of(cluster: ClusterSpec, model: ModelSpec, demand: Demand, rooms: Sequence[Room]) -> Profile:
    """The planner's times of one request. Embedding and head count with the source's first layer."""
    source, layers, further = cluster.source_rank, model.num_layers, max(0, demand.new_tokens - 1)
    ranks = [room.rank for room in rooms]
    works = source in ranks
    times = [[layer_s(cluster.devices[rank], model, demand)] * layers for rank in ranks]
    if works:
        *begin, end = (pass_s(cluster.devices[source], model, one) for one in end_passes(model, demand))
        times[ranks.index(source)][0] += sum(begin) + (1 + further) * end
    prompt, token = (payload_bytes(hidden(model, demand.batch, rows)) for rows in (demand.rows, 1))
    result = token if demand.generates else prompt

    def hop_s(src: int, dst: int, first_bytes: int) -> float:
        if src == dst:
            return 0.0
        return _message_s(cluster, src, dst, first_bytes) + further * _message_s(cluster, src, dst, token)

    between = [[hop_s(src, dst, prompt) for dst in ranks] for src in ranks]
    return Profile(
        layer_s=times,
        hop_s=[between] * (layers + 1),
        enter_s=[inf if works and rank != source else hop_s(source, rank, prompt) for rank in ranks],
        return_s=[hop_s(rank, source, result) for rank in ranks],
        max_layers=[room.layers for room in rooms],
    )


def _message_s(cluster: ClusterSpec, src: int, dst: int, size_bytes: int) -> float:
    """Seconds of one message on a path without other traffic."""
    path = cluster.path(src, dst)
    rate = min(cluster.links[hop.link].rate(hop.forward) for hop in path)
    delay_s = sum(cluster.links[hop.link].delay(hop.forward) for hop in path)
    return cluster.devices[src].message_overhead_s + transfer_s(size_bytes, rate) + delay_s


def stages_for(
    profile: Profile, rooms: Sequence[Room], objective: Objective, exact: bool
) -> tuple[Stage, ...]:
    """Stages whose `device` is the number of a room. If the heuristic finds none although there is room for
    all layers, the devices with the largest rooms are filled first.
    """
    found = (best_segments if exact else layerwise_segments)(profile, objective)
    if found is not None:
        return found
    numbers = sorted(
        range(len(rooms)), key=lambda j: (profile.enter_s[j] == inf, -rooms[j].layers, rooms[j].rank)
    )
    everything_first = [len(profile.layer_s[0])] + [0] * (len(rooms) - 1)
    sizes = fill(everything_first, [rooms[j].layers for j in numbers])
    return consecutive(numbers, sizes)


def _check_source(cluster: ClusterSpec, model: ModelSpec, demand: Demand, rooms: Sequence[Room]) -> None:
    """Raises `PlanError` if a source that computes has no room for the first layer."""
    for room in rooms:
        if room.rank == cluster.source_rank and room.layers == 0:
            device, size = cluster.devices[room.rank], layer_bytes(model, demand)
            raise PlanError(
                f"edgeshard: the first layer stays on the source, but {device.name} "
                f"{needs_and_has(device.memory_bytes - room.bytes + size, device.memory_bytes, ' for it')}: "
                "give it more memory, or make it a terminal."
            )
