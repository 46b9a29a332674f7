"""Pipeline stages: how many consecutive layers each device gets, never more than its memory holds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from engine.cluster import ClusterSpec
from engine.errors import PlanError
from engine.models.sizes import weight_bytes
from engine.models.spec import ModelSpec
from engine.plan import Plan
from engine.strategies.demand import (
    Demand,
    block_passes,
    check_memory,
    end_passes,
    weights_bytes,
    working_bytes,
)
from engine.strategies.ends import layer_slices
from engine.strategies.shares import bounds_of, largest_remainder, layer_s

StagesBy = Literal["memory", "flops", "even"]


class Stage(NamedTuple):
    """Layers [start, stop) on `device` (rank)."""

    device: int
    start: int
    stop: int


def stages_of(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, ends: Plan, by: StagesBy
) -> tuple[Stage, ...]:
    """Stages in the order of computation; devices without layers have none.

    `ends` is a plan of the source's own holdings: that and one operation's working set is what a device
    cannot give to layers. Raises `PlanError` if the workers together have too little memory.
    """
    ranks = _in_order(cluster)
    passes = {rank: [*block_passes(model, demand)] for rank in ranks}
    passes.setdefault(cluster.source_rank, []).extend(end_passes(model, demand))
    check_memory(cluster, model, ends, {}, passes, "the source needs room for embedding and head")
    taken = [weights_bytes(ends, model, rank) + working_bytes(model, passes[rank]) for rank in ranks]
    rooms = [cluster.devices[rank].memory_bytes - size for rank, size in zip(ranks, taken, strict=True)]
    caps = [max(0, int(room // layer_bytes(model, demand))) for room in rooms]
    if sum(caps) < model.num_layers:
        raise _too_small(cluster, model, demand, ranks, caps)
    weights = {
        "memory": [max(0.0, room) for room in rooms],
        "flops": [1 / layer_s(cluster.devices[rank], model, demand) for rank in ranks],
        "even": [1.0] * len(ranks),
    }[by]
    bounds = bounds_of(fill(largest_remainder(model.num_layers, weights), caps))
    stages = (Stage(rank, bounds[i], bounds[i + 1]) for i, rank in enumerate(ranks))
    return tuple(stage for stage in stages if stage.start < stage.stop)


def _in_order(cluster: ClusterSpec) -> tuple[int, ...]:
    """Workers by rank, but the source first: its own layers then need no message."""
    return tuple(sorted(cluster.workers, key=lambda rank: (rank != cluster.source_rank, rank)))


def layer_bytes(model: ModelSpec, demand: Demand) -> int:
    """Weights of one layer and all KV caches that it will have."""
    weights = sum(weight_bytes(model, piece) for piece in layer_slices(0))
    return weights + demand.kv_bytes(model, model.num_kv_heads)


def fill(sizes: Sequence[int], caps: Sequence[int]) -> tuple[int, ...]:
    """Cap `sizes`; what is over goes to those with room, lowest index first."""
    filled = [min(size, cap) for size, cap in zip(sizes, caps, strict=True)]
    excess = sum(sizes) - sum(filled)
    for index, cap in enumerate(caps):
        moved = min(excess, cap - filled[index])
        filled[index] += moved
        excess -= moved
    return tuple(filled)


def _too_small(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, ranks: Sequence[int], caps: Sequence[int]
) -> PlanError:
    rooms = ", ".join(
        f"{cluster.devices[rank].name} has {cluster.devices[rank].memory_bytes / 1e6:.1f} MB for {cap}"
        for rank, cap in zip(ranks, caps, strict=True)
    )
    return PlanError(
        f"gpipe: {model.name} needs {model.num_layers} layers of {layer_bytes(model, demand) / 1e6:.1f} MB "
        f"(weights and KV cache) and {rooms}: add devices or memory, or shorten prompt and answer."
    )
