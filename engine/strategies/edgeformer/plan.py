"""Choose which device owns which blocks (layers). Pure.

Yao et al., EdgeFormer, Eq. 2 and the greedy allocation by η = f/s (FLOP/s over capacity in blocks). η
prefers small devices: it does not minimise Σ C/f, as the paper claims (f = 10 and 8, s = 10 and 1, ten
blocks: η costs 1.025, fastest first 1.0). `even` is what the authors' experiments show: L/K blocks each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement
from engine.strategies.edgeformer.layout import OwnedBlocks
from engine.strategies.edgeformer.params import BlockOrder
from engine.strategies.shared.demand import Demand
from engine.strategies.shared.pipeline import ends_placement, stages_placement
from engine.strategies.shared.stages import Stage, rooms_of


class Capacity(NamedTuple):
    """A device as the block allocation sees it: capacity in whole blocks, FLOP/s."""

    rank: int
    blocks: int
    flop_per_s: float


def allocate_blocks(devices: Sequence[Capacity], num_layers: int, order: BlockOrder) -> tuple[Stage, ...]:
    """Consecutive blocks per owner, whose capacities suffice together.

    eta: f/s descending, fastest: f descending, both filled one after the other, ties to the larger f, then
    the lower rank. even: equal numbers by rank, the remainder to the last; what is over a capacity goes to
    the next device, around to the first.
    """
    usable = [device for device in devices if device.blocks]
    if order == "even":
        chosen = sorted(usable, key=lambda device: device.rank)
        wanted = [num_layers // len(chosen)] * len(chosen)
        wanted[-1] += num_layers % len(chosen)
        sizes, carry = [0] * len(chosen), 0
        for index in [*range(len(chosen))] * 2:  # twice around: then everything has found room
            carry += wanted[index]
            wanted[index] = 0
            took = min(carry, chosen[index].blocks - sizes[index])
            sizes[index] += took
            carry -= took
    else:
        chosen = sorted(
            usable,
            key=lambda d: (-d.flop_per_s / (d.blocks if order == "eta" else 1), -d.flop_per_s, d.rank),
        )
        sizes, left = [], num_layers
        for device in chosen:
            sizes.append(min(device.blocks, left))
            left -= sizes[-1]
    stages, start = [], 0
    for device, size in zip(chosen, sizes, strict=True):
        if size:
            stages.append(Stage(device=device.rank, start=start, stop=start + size))
        start += size
    return tuple(stages)


def place_blocks(
    name: str, cluster: ClusterSpec, model: ModelSpec, demand: Demand, order: BlockOrder
) -> tuple[Placement, tuple[OwnedBlocks, ...]]:
    """Holdings and work, and each owner's layers. Owners hold whole blocks; neighbours need no weights.

    Raises `PlanError` if the workers together have too little memory.
    """
    ends = ends_placement(name, cluster, model)
    capacities = [
        Capacity(room.rank, room.layers, cluster.devices[room.rank].flop_per_s)
        for room in rooms_of(cluster, model, demand, ends)
    ]
    stages = allocate_blocks(capacities, model.num_layers, order)
    blocks = tuple(OwnedBlocks(stage.device, stage.start, stage.stop) for stage in stages)
    return stages_placement(ends, stages, model.num_layers), blocks
