"""Plan EdgeShard: what it knows of a cluster, and the best stages with and without the source. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Literal, NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.units import needs_and_has
from engine.ops.tensors import payload_bytes
from engine.strategies.edgeshard.orders import lower_bound_s, searched_segments
from engine.strategies.edgeshard.segments import (
    EXACT_DEVICES,
    Objective,
    Profile,
    best_segments,
    cost_s,
    join,
)
from engine.strategies.planner.order import nearest_first
from engine.strategies.shared.demand import Demand, end_ops, hidden
from engine.strategies.shared.messages import message_s
from engine.strategies.shared.shares import layer_s, op_s
from engine.strategies.shared.stages import Room, Stage, layer_bytes

FirstLayer = Literal["anywhere", "source"]


class Candidate(NamedTuple):
    """Stages by rank, with their objective, its value and a lower bound of it; and the values of both
    objectives.
    """

    stages: tuple[Stage, ...]
    objective: Objective
    exact: bool
    planned_s: float
    bound_s: float
    latency_s: float
    slowest_s: float

    def burst_s(self, batches: int, continuous: bool = False) -> float:
        """An estimate of the time of so many batches: one behind the other, or, if none waits for the others
        before its next token, as fast as the slowest stage or link has all.
        """
        if continuous:
            return max(self.latency_s, batches * self.slowest_s)
        return self.latency_s + (batches - 1) * self.slowest_s


def rooms_by_first_layer(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    rooms: tuple[Room, ...],
    first_layer: FirstLayer,
) -> list[tuple[Room, ...]]:
    """The rooms with a source that has the first layer, and those without it, both in the order of search. A
    source that is no terminal has one stage at most, so it cannot be in the middle of a pipeline that it
    feeds.

    Raises `PlanError` if neither has room for all layers.
    """
    order = nearest_first(cluster, model, demand)
    rooms = tuple(sorted(rooms, key=lambda room: order.index(room.rank)))
    others = tuple(room for room in rooms if room.rank != cluster.source_rank)
    if len(others) == len(rooms):
        return [rooms]
    (own,) = [room for room in rooms if room.rank == cluster.source_rank]
    ways = [rooms] if own.layers else []
    if first_layer == "anywhere" and sum(room.layers for room in others) >= model.num_layers:
        ways.append(others)
    if not ways:
        raise _no_first_layer(cluster, model, demand, own)
    return ways


def candidate_of(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, rooms: Sequence[Room], objective: Objective
) -> Candidate | None:
    """The best stages on `rooms`: exact for few devices. None if a search found none."""
    profile, exact = profile_of(cluster, model, demand, rooms), len(rooms) <= EXACT_DEVICES
    stages = (best_segments if exact else searched_segments)(profile, objective)
    if stages is None:
        return None
    ends_s = 0.0
    if cluster.source_rank in cluster.workers and all(room.rank != cluster.source_rank for room in rooms):
        ends_s = _ends_s(cluster, model, demand)
    latency_s, slowest_s, planned_s = (
        join(of, cost_s(profile, stages, of), ends_s) for of in ("latency", "throughput", objective)
    )
    bound_s = planned_s if exact else join(objective, lower_bound_s(profile, objective), ends_s)
    return Candidate(
        tuple(stage.model_copy(update={"device": rooms[stage.device].rank}) for stage in stages),
        objective,
        exact,
        planned_s,
        bound_s,
        latency_s,
        slowest_s,
    )


def planned_s_of(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, stages: Sequence[Stage], objective: Objective
) -> float:
    """The objective's value of given stages, seconds."""
    rooms = [Room(stage.device, 0.0, stage.num_layers) for stage in stages]
    profile = profile_of(cluster, model, demand, rooms)
    own = [stage.model_copy(update={"device": index}) for index, stage in enumerate(stages)]
    idle_source = cluster.source_rank in cluster.workers and all(
        stage.device != cluster.source_rank for stage in stages
    )
    ends_s = _ends_s(cluster, model, demand) if idle_source else 0.0
    return join(objective, cost_s(profile, own, objective), ends_s)


def _ends_s(cluster: ClusterSpec, model: ModelSpec, demand: Demand) -> float:
    """Seconds of embedding and output on the source, of one request."""
    *begin, end = (op_s(cluster.devices[cluster.source_rank], model, one) for one in end_ops(model, demand))
    return sum(begin) + (1 + max(0, demand.new_tokens - 1)) * end


def profile_of(cluster: ClusterSpec, model: ModelSpec, demand: Demand, rooms: Sequence[Room]) -> Profile:
    """The planner's times of one request. Embedding and head count with the source's first layer, where the
    first layer then must be.
    """
    source, layers, further = cluster.source_rank, model.num_layers, max(0, demand.new_tokens - 1)
    ranks = [room.rank for room in rooms]
    works = source in ranks
    times = [[layer_s(cluster.devices[rank], model, demand)] * layers for rank in ranks]
    if works:
        times[ranks.index(source)][0] += _ends_s(cluster, model, demand)
    prompt, token = (payload_bytes(hidden(model, demand.batch, rows)) for rows in (demand.rows, 1))
    result = token if demand.generates else prompt

    def hop_s(src: int, dst: int, first_bytes: int) -> float:
        return message_s(cluster, src, dst, first_bytes) + further * message_s(cluster, src, dst, token)

    between = [[hop_s(src, dst, prompt) for dst in ranks] for src in ranks]
    return Profile(
        layer_s=times,
        hop_s=[between] * (layers + 1),
        enter_s=[inf if works and rank != source else hop_s(source, rank, prompt) for rank in ranks],
        return_s=[hop_s(rank, source, result) for rank in ranks],
        max_layers=[room.layers for room in rooms],
    )


def _no_first_layer(cluster: ClusterSpec, model: ModelSpec, demand: Demand, room: Room) -> PlanError:
    device, size = cluster.devices[room.rank], layer_bytes(model, demand)
    return PlanError(
        f"edgeshard: the first layer stays on the source, but {device.name} "
        f"{needs_and_has(device.usable_bytes - room.bytes + size, device.usable_bytes, ' for it')}: "
        "give it more memory, or make it a terminal."
    )
