"""Plan pipeline stages: how many consecutive layers each device gets, within its memory. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Literal, NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement
from engine.domain.units import human
from engine.domain.values import Count, Value
from engine.ops.sizes import weight_bytes
from engine.strategies.shared.demand import (
    Demand,
    beside_rows,
    block_ops,
    check_memory,
    end_ops,
    weights_bytes,
    working_bytes,
)
from engine.strategies.shared.ends import layer_slices
from engine.strategies.shared.shares import bounds_of, largest_remainder, layer_s

StagesBy = Literal["memory", "flops", "even"]
"""In proportion to what stages are cut: memory, speed, or none: as equal as layers allow."""


class Stage(Value):
    """Layers [start, stop) on `device` (rank)."""

    device: Count
    start: Count
    stop: Count

    @property
    def num_layers(self) -> int:
        """How many layers it has."""
        return self.stop - self.start


class Room(NamedTuple):
    """Bytes that device `rank` can give to layers, and how many layers that is."""

    rank: int
    bytes: float
    layers: int


def free_bytes(cluster: ClusterSpec, model: ModelSpec, demand: Demand, ends: Placement) -> dict[int, float]:
    """Bytes that each worker has for layers, by rank in the order of computation.

    A device's memory minus its part of `ends` (embedding and head) and the largest working set, and no more
    than it has on chip for weights. Raises `PlanError` if the source has too little memory for its ends.
    """
    ranks = source_first(cluster)
    ops = {rank: [*block_ops(model, demand)] for rank in ranks}
    ops.setdefault(cluster.source_rank, []).extend(end_ops(model, demand))
    for rank in ranks:
        ops[rank] = beside_rows(model, demand, model.num_kv_heads, ops[rank])
    check_memory(cluster, model, ends, {}, ops, "the source needs room for embedding and head")
    taken = [weights_bytes(ends, model, rank) + working_bytes(model, ops[rank]) for rank in ranks]
    devices = [cluster.devices[rank] for rank in ranks]
    return {
        rank: min(device.usable_bytes - size, device.on_chip_weight_bytes or inf)
        for rank, device, size in zip(ranks, devices, taken, strict=True)
    }


def rooms_of(cluster: ClusterSpec, model: ModelSpec, demand: Demand, ends: Placement) -> tuple[Room, ...]:
    """The room of every worker, in the order of computation.

    Raises `PlanError` if the workers together have too little memory.
    """
    rooms = all_rooms(cluster, model, demand, ends)
    if sum(room.layers for room in rooms) < model.num_layers:
        raise too_small(cluster, model, demand, ends.strategy, rooms)
    return rooms


def all_rooms(cluster: ClusterSpec, model: ModelSpec, demand: Demand, ends: Placement) -> tuple[Room, ...]:
    """The room of every worker, in the order of computation, even if it is too little for the model."""
    size = layer_bytes(model, demand)
    return tuple(
        Room(rank, room, max(0, int(room // size)))
        for rank, room in free_bytes(cluster, model, demand, ends).items()
    )


def most_layers(cluster: ClusterSpec, model: ModelSpec, demand: Demand, ends: Placement) -> dict[int, int]:
    """How many layers every worker has memory for, by rank."""
    return {room.rank: room.layers for room in all_rooms(cluster, model, demand, ends)}


def check_stages_fit(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, ends: Placement, stages: Sequence[Stage]
) -> None:
    """Check that every device of `stages` has the memory for its layers; raises `PlanError`."""
    rooms = all_rooms(cluster, model, demand, ends)
    most = {room.rank: room.layers for room in rooms}
    if any(stage.num_layers > most[stage.device] for stage in stages):
        raise too_small(cluster, model, demand, ends.strategy, rooms)


def stages_of(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, ends: Placement, by: StagesBy
) -> tuple[Stage, ...]:
    """Stages in the order of computation; devices without layers have none.

    Raises `PlanError` if the workers together have too little memory.
    """
    rooms = rooms_of(cluster, model, demand, ends)
    weights = {
        "memory": [max(0.0, room.bytes) for room in rooms],
        "flops": [1 / layer_s(cluster.devices[room.rank], model, demand) for room in rooms],
        "even": [1.0] * len(rooms),
    }[by]
    sizes = fill(largest_remainder(model.num_layers, weights), [room.layers for room in rooms])
    return consecutive([room.rank for room in rooms], sizes)


def consecutive(ranks: Sequence[int], sizes: Sequence[int]) -> tuple[Stage, ...]:
    """Stages one after the other; a device without layers has none."""
    bounds = bounds_of(sizes)
    stages = (
        Stage(device=rank, start=bounds[i], stop=bounds[i + 1]) for i, rank in enumerate(ranks) if sizes[i]
    )
    return tuple(stages)


def source_first(cluster: ClusterSpec) -> tuple[int, ...]:
    """Workers by rank, with the source first: then its layers need no message."""
    return tuple(sorted(cluster.workers, key=lambda rank: (rank != cluster.source_rank, rank)))


def layer_bytes(model: ModelSpec, demand: Demand) -> int:
    """Bytes of one layer: its weights and the KV caches of all sequences at the end of the run."""
    weights = sum(weight_bytes(model, piece) for piece in layer_slices(0))
    return weights + demand.kv_bytes(model, model.num_kv_heads)


def fill(sizes: Sequence[int], caps: Sequence[int]) -> tuple[int, ...]:
    """Reduce sizes to their `caps`; the excess goes to entries below their cap, lowest index first."""
    filled = [min(size, cap) for size, cap in zip(sizes, caps, strict=True)]
    excess = sum(sizes) - sum(filled)
    for index, cap in enumerate(caps):
        moved = min(excess, cap - filled[index])
        filled[index] += moved
        excess -= moved
    return tuple(filled)


def too_small(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, strategy: str, rooms: Sequence[Room]
) -> PlanError:
    """The refusal of a model for which these `rooms` together are too little: with need and have."""
    have = ", ".join(
        f"{cluster.devices[room.rank].name} has {human(cluster.devices[room.rank].usable_bytes, 'B')} "
        f"for {room.layers}"
        for room in rooms
    )
    return PlanError(
        f"{strategy}: {model.name} needs {model.num_layers} layers of "
        f"{human(layer_bytes(model, demand), 'B')} "
        f"(weights and KV cache) and {have}: add devices or memory, or shorten prompt and answer."
    )
