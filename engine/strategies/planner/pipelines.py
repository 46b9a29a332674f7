"""Find stages, and how many requests of a burst go together, so that all requests are answered soonest. Pure.

EdgeShard's exact search (`edgeshard/segments.py`) gives the stages with the least latency and those with the
fastest slowest stage. For a burst also those of least latency whose slowest stage is limited are tried; the
predicted time of the burst (`pipeline_time.py`) decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement
from engine.strategies.edgeshard.plan import Candidate, FirstLayer, candidate_of, rooms_by_first_layer
from engine.strategies.planner.pipeline_time import PipelineTime
from engine.strategies.shared.demand import Demand
from engine.strategies.shared.shares import layer_s
from engine.strategies.shared.stages import Room, Stage, rooms_of

LIMITS = 6
"""How many limits of the slowest stage, between the two optima, are tried for a burst."""
FEW_DEVICES = 8
"""The most devices with which limits are tried."""


class Found(NamedTuple):
    """Stages for micro-batches of `batch` requests, with the predicted time of all requests."""

    time_s: float
    batch: int
    candidate: Candidate

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.candidate.stages


def best_pipelines(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    ends: Placement,
    time_of: Callable[[Demand], PipelineTime],
    first_layer: FirstLayer = "anywhere",
) -> list[Found]:
    """Stages by the predicted time of all requests, the best first; `first_layer` says whether the source
    must have the first one. Raises `PlanError` if memory is short.
    """
    found: list[Found] = []
    refusal: PlanError | None = None
    for batch in batches(demand.sequences):
        of = demand._replace(batch=batch)
        time = time_of(of)
        try:
            ways = rooms_by_first_layer(cluster, model, of, rooms_of(cluster, model, of, ends), first_layer)
        except PlanError as error:
            refusal = refusal or error
            continue
        for rooms in ways:
            for one in _candidates(cluster, model, of, rooms):
                found.append(Found(time.burst_s(one.stages), batch, one))
    if refusal is not None and not found:
        raise refusal
    return sorted(found, key=lambda one: (one.time_s, one.batch, len(one.stages)))


def best_batch(
    demand: Demand,
    stages: Sequence[Stage],
    time_of: Callable[[Demand], PipelineTime],
    fits: Callable[[Demand], bool],
) -> Demand:
    """`demand` with the micro-batches that answer all requests soonest with these stages; of one request each
    if no others fit.
    """
    ways = [of for size in batches(demand.sequences) if fits(of := demand._replace(batch=size))]
    return min(ways, key=lambda of: time_of(of).burst_s(stages), default=demand)


def does_fit(plan: Callable[[], object]) -> bool:
    """Whether `plan` finds the memory."""
    try:
        plan()
    except PlanError:
        return False
    return True


def batches(sequences: int) -> list[int]:
    """Sizes of micro-batches, from one request to all: those that divide a burst of so many `sequences`."""
    return [size for size in range(1, sequences + 1) if sequences % size == 0]


def _candidates(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, rooms: tuple[Room, ...]
) -> Iterator[Candidate]:
    quick = candidate_of(cluster, model, demand, rooms, "latency")
    if quick is None:
        return
    yield quick
    steady = None
    if demand.sequences > demand.batch:
        steady = candidate_of(cluster, model, demand, rooms, "throughput")
    if steady is None:
        return
    yield steady
    times_s = {room.rank: layer_s(cluster.devices[room.rank], model, demand) for room in rooms}
    low_s, high_s = (_slowest_s(one.stages, times_s) for one in (steady, quick))
    for number in range(LIMITS) if low_s < high_s and len(rooms) <= FEW_DEVICES else ():
        limit_s = low_s * (high_s / low_s) ** ((number + 0.5) / LIMITS)
        most = {rank: int(limit_s / time_s) for rank, time_s in times_s.items()}
        capped = tuple(room._replace(layers=min(room.layers, most[room.rank])) for room in rooms)
        if sum(room.layers for room in capped) >= model.num_layers:
            between = candidate_of(cluster, model, demand, capped, "latency")
            if between is not None:
                yield between._replace(bound_s=quick.bound_s)


def _slowest_s(stages: Sequence[Stage], times_s: dict[int, float]) -> float:
    return max(stage.num_layers * times_s[stage.device] for stage in stages)
