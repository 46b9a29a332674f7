"""Choose which device owns which blocks (layers). Pure.

Yao et al., EdgeFormer, Eq. 2 and the greedy allocation by η = f/s (FLOP/s over capacity in blocks). η
prefers small devices: it does not minimise Σ C/f, as the paper claims (f = 10 and 8, s = 10 and 1, ten
blocks: η costs 1.025, fastest first 1.0). `even` is what the authors' experiments show: L/K blocks each.
`balanced` minimises Eq. 2 and the moves of hidden states between owners (`optimal_blocks.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement
from engine.domain.units import transfer_s
from engine.ops.tensors import payload_bytes
from engine.program.frames import framed_bytes
from engine.strategies.edgeformer.costs import path_bit_per_s
from engine.strategies.edgeformer.layout import OwnedBlocks
from engine.strategies.edgeformer.optimal_blocks import Capacity, Moves, blocks_s, optimal_blocks
from engine.strategies.edgeformer.params import BlockOrder
from engine.strategies.shared.by_hand import stages_by_hand
from engine.strategies.shared.demand import Demand, hidden
from engine.strategies.shared.pipeline import ends_placement, stages_placement
from engine.strategies.shared.shares import largest_remainder, layer_s
from engine.strategies.shared.stages import Stage, consecutive, fill, most_layers, rooms_of


def allocate_blocks(
    devices: Sequence[Capacity], num_layers: int, order: BlockOrder, moves: Moves
) -> tuple[Stage, ...]:
    """Consecutive blocks per owner, whose capacities suffice together.

    eta: f/s descending, fastest: f descending, both filled one after the other, ties to the larger f, then
    the lower rank. even: equal numbers by rank, the remainder to the last; what is over a capacity goes to
    the next device, around to the first. proportional: shares by FLOP/s, by largest remainder; what is over
    a capacity goes to the first devices below theirs. balanced: proportional, or the optimum with the `moves`
    if that is faster.
    """
    usable = [device for device in devices if device.blocks]
    if order == "even":
        chosen = sorted(usable, key=lambda device: device.rank)
        return _stages(chosen, _even_sizes(chosen, num_layers))
    if order in ("proportional", "balanced"):
        shares = largest_remainder(num_layers, [device.flop_per_s for device in usable])
        proportional = _stages(usable, fill(shares, [device.blocks for device in usable]))
        if order == "proportional":
            return proportional
        optimal = optimal_blocks(usable, num_layers, moves)
        seconds = [blocks_s(stages, usable, moves) for stages in (proportional, optimal)]
        return optimal if seconds[1] < seconds[0] else proportional
    chosen = sorted(
        usable,
        key=lambda d: (-d.flop_per_s / (d.blocks if order == "eta" else 1), -d.flop_per_s, d.rank),
    )
    sizes, left = [], num_layers
    for device in chosen:
        sizes.append(min(device.blocks, left))
        left -= sizes[-1]
    return _stages(chosen, sizes)


def _even_sizes(devices: Sequence[Capacity], num_layers: int) -> list[int]:
    wanted = [num_layers // len(devices)] * len(devices)
    wanted[-1] += num_layers % len(devices)
    sizes, carry = [0] * len(devices), 0
    for index in [*range(len(devices))] * 2:  # twice around: then everything has found room
        carry += wanted[index]
        wanted[index] = 0
        took = min(carry, devices[index].blocks - sizes[index])
        sizes[index] += took
        carry -= took
    return sizes


def _stages(devices: Sequence[Capacity], sizes: Sequence[int]) -> tuple[Stage, ...]:
    return consecutive([device.rank for device in devices], sizes)


def place_blocks(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    order: BlockOrder,
    by_hand: PlanByHand | None,
) -> tuple[Placement, tuple[OwnedBlocks, ...]]:
    """Holdings and work, and each owner's layers. Owners hold whole blocks; neighbours need no weights.

    Raises `PlanError` if the workers together have too little memory.
    """
    ends = ends_placement(name, cluster, model)
    if by_hand is not None:
        most = most_layers(cluster, model, demand, ends)
        given = stages_by_hand(name, cluster, model, by_hand, most, source_first=False)
        return stages_placement(ends, given, model.num_layers), _owned(given)
    capacities = [
        Capacity(
            room.rank,
            room.layers,
            cluster.devices[room.rank].flop_per_s,
            layer_s(cluster.devices[room.rank], model, demand),
        )
        for room in rooms_of(cluster, model, demand, ends)
    ]
    stages = allocate_blocks(capacities, model.num_layers, order, moves_of(cluster, model, demand))
    return stages_placement(ends, stages, model.num_layers), _owned(stages)


def _owned(stages: Sequence[Stage]) -> tuple[OwnedBlocks, ...]:
    return tuple(OwnedBlocks(stage.device, stage.start, stage.stop) for stage in stages)


def moves_of(cluster: ClusterSpec, model: ModelSpec, demand: Demand) -> Moves:
    """Seconds of all moves of hidden states between two devices in a run of `demand`. Of a prompt that is
    continued, the source needs the last row alone.
    """
    row_bytes = payload_bytes(hidden(model, demand.batch, 1))
    tokens = max(0, demand.new_tokens - 1)
    forth, back = demand.rows + tokens, (1 if demand.generates else demand.rows) + tokens
    overheads_s: Mapping[int, float] = {
        rank: device.message_overhead_s for rank, device in enumerate(cluster.devices)
    }

    @cache
    def moved_s(src: int, dst: int, rows: int) -> float:
        if src == dst:
            return 0.0
        rate, messages = path_bit_per_s(cluster, src, dst), 1 + tokens
        sent_bytes = rows * row_bytes + messages * framed_bytes(0)
        return messages * (cluster.delay_s(src, dst) + overheads_s[src]) + transfer_s(sent_bytes, rate)

    source = cluster.source_rank
    return Moves(source, lambda src, dst: moved_s(src, dst, forth), lambda src: moved_s(src, source, back))
