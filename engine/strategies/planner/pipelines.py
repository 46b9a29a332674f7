"""Find stages, and how many requests of a burst go together, so that all requests are answered soonest. Pure.

EdgeShard's exact search (`edgeshard/segments.py`) gives the stages with the least latency and those with the
fastest slowest stage. For a burst also those of least latency whose slowest stage is limited are tried. The
judge plays those that look best by EdgeShard's own sums, and decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement, Plan
from engine.planning.judge import Judge
from engine.program.strategy import Strategy
from engine.strategies.edgeshard.plan import Candidate, FirstLayer, candidate_of, rooms_by_first_layer
from engine.strategies.shared.demand import Demand
from engine.strategies.shared.kv_pressure import with_kept_rows
from engine.strategies.shared.shares import layer_s
from engine.strategies.shared.stages import Room, Stage, rooms_of

LIMITS = 6
"""How many limits of the slowest stage, between the two optima, are tried for a burst."""
FEW_DEVICES = 8
"""The most devices with which limits are tried."""
PLAYED = 14, 4
"""How many stages and micro-batches are played: of those that look best, and of those that look best if only
the slowest stage or link counts.
"""

PipelineSeconds = Callable[[Demand, tuple[Stage, ...]], float]
"""Seconds of a run, by the judge, with these stages and micro-batches of the demand's `batch`."""


class Found(NamedTuple):
    """Stages for micro-batches of `batch` requests, with the time of all requests; infinite: not played."""

    time_s: float
    batch: int
    candidate: Candidate

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.candidate.stages


def pipeline_seconds(
    method: Strategy,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    plan_of: Callable[[Demand, tuple[Stage, ...]], Plan[Any]],
) -> PipelineSeconds:
    """The judge of pipelines of `method`, whose plan `plan_of` gives."""
    sizes = demand.rows, demand.new_tokens, demand.sequences
    judge = Judge(method, cluster, model, *sizes, alike=False)
    return lambda of, stages: judge.seconds(lambda _: with_kept_rows(plan_of(of, stages), of))


def best_pipelines(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    ends: Placement,
    seconds: PipelineSeconds,
    first_layer: FirstLayer = "anywhere",
) -> list[Found]:
    """Stages by the time of all requests, which `seconds` gives, the best first, and behind them those that
    were not played; `first_layer` says whether the source must have the first one. Raises `PlanError` if
    memory is short.
    """
    found: list[tuple[int, Candidate]] = []
    refusal: PlanError | None = None
    for batch in batches(demand.sequences):
        of = demand._replace(batch=batch)
        try:
            ways = rooms_by_first_layer(cluster, model, of, rooms_of(cluster, model, of, ends), first_layer)
        except PlanError as error:
            refusal = refusal or error
            continue
        found += [(batch, one) for rooms in ways for one in _candidates(cluster, model, of, rooms)]
    if refusal is not None and not found:
        raise refusal

    def ranked(overlapping: bool) -> list[tuple[int, tuple[Stage, ...]]]:
        def burst_s(one: tuple[int, Candidate]) -> tuple[float, int]:
            return one[1].burst_s(demand.sequences // one[0], overlapping), one[0]

        return list(dict.fromkeys((batch, one.stages) for batch, one in sorted(found, key=burst_s)))

    played = ranked(False)[: PLAYED[0]] + ranked(True)[: PLAYED[1]]
    played_s = {
        (batch, stages): seconds(demand._replace(batch=batch), stages)
        for batch, stages in (dict.fromkeys(played) if len(set(played)) > 1 else ())
    }
    timed = [Found(played_s.get((batch, one.stages), inf), batch, one) for batch, one in found]
    return sorted(timed, key=lambda one: (one.time_s, one.batch, len(one.stages)))


def best_batch(
    demand: Demand, stages: tuple[Stage, ...], seconds: PipelineSeconds, fits: Callable[[Demand], bool]
) -> Demand:
    """`demand` with the micro-batches that answer all requests soonest, by `seconds`, with these stages; of
    one request each if no others fit.
    """
    ways = [of for size in batches(demand.sequences) if fits(of := demand._replace(batch=size))]
    return min(ways, key=lambda of: seconds(of, stages)) if len(ways) > 1 else [*ways, demand][0]


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
