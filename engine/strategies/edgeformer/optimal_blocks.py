"""The fastest owners of consecutive blocks: EdgeFormer's Eq. 2 with moves, by dynamic programming. Pure.

All blocks of a model cost the same on one device. Eq. 2 alone is then solved by filling the fastest devices
first. With the time of moving hidden states from owner to owner, and from and to the source, the order of the
owners matters. The program is exact for a given order, and three orders are tried: by rank with the source
first, fastest first with the source first, and fastest first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import inf
from typing import NamedTuple

from engine.strategies.shared.stages import Stage, consecutive

SPARE_DEVICES = 4
"""Devices that are considered besides the fastest ones that suffice: a slower one may be nearer."""


class Capacity(NamedTuple):
    """A device as the block allocation sees it: capacity in whole blocks, FLOP/s, seconds of one block."""

    rank: int
    blocks: int
    flop_per_s: float
    block_s: float


class Moves(NamedTuple):
    """Seconds of moving hidden states from one rank to another, and the result from a rank to the `source`,
    where the hidden states come from.
    """

    source: int
    move_s: Callable[[int, int], float]
    result_s: Callable[[int], float]


def blocks_s(stages: Sequence[Stage], devices: Sequence[Capacity], moves: Moves) -> float:
    """Seconds of all blocks and moves, one after the other."""
    block_s = {device.rank: device.block_s for device in devices}
    path = [moves.source, *(stage.device for stage in stages)]
    moved_s = sum(moves.move_s(src, dst) for src, dst in pairwise(path)) + moves.result_s(path[-1])
    return moved_s + sum(stage.num_layers * block_s[stage.device] for stage in stages)


def optimal_blocks(devices: Sequence[Capacity], num_layers: int, moves: Moves) -> tuple[Stage, ...]:
    """The best stages of the three orders, whose capacities suffice together; ties to the first order."""
    by_speed = sorted(devices, key=lambda device: (device.block_s, device.rank))
    rooms = accumulate(device.blocks for device in by_speed)
    enough = next(number for number, room in enumerate(rooms, 1) if room >= num_layers)
    chosen = [
        device
        for number, device in enumerate(by_speed)
        if number < enough + SPARE_DEVICES or device.rank == moves.source
    ]
    first = [device for device in chosen if device.rank == moves.source]
    others = [device for device in chosen if device.rank != moves.source]
    orders = ([*first, *sorted(others)], [*first, *others], chosen)
    found = [_best_in_order(order, num_layers, moves) for order in orders]
    return min(found, key=lambda stages: blocks_s(stages, devices, moves))


def _best_in_order(devices: Sequence[Capacity], num_layers: int, moves: Moves) -> tuple[Stage, ...]:
    """The best blocks of owners in this order, exactly. `best[j][n]` is the shortest time of the first n
    blocks if device j has the last of them.
    """
    best: list[list[float]] = []
    before: list[list[tuple[int, int]]] = []  # (device before j or -1, blocks before j's)
    for j, device in enumerate(devices):
        entry = [(moves.move_s(moves.source, device.rank), -1)] + [(inf, -1)] * (num_layers - 1)
        for i in range(j):
            hop_s = moves.move_s(devices[i].rank, device.rank)
            for n, seconds in enumerate(best[i][:-1]):
                if seconds + hop_s < entry[n][0]:
                    entry[n] = (seconds + hop_s, i)
        ends, origins = _extended([seconds for seconds, _ in entry], device, num_layers)
        best.append(ends)
        before.append([(entry[n][1], n) if n >= 0 else (-1, 0) for n in origins])
    last = min(
        range(len(devices)),
        key=lambda j: best[j][num_layers] + moves.result_s(devices[j].rank),
    )
    ranks, sizes, stop = [], [], num_layers
    while last >= 0:
        previous, start = before[last][stop]
        ranks.append(devices[last].rank)
        sizes.append(stop - start)
        last, stop = previous, start
    return consecutive(ranks[::-1], sizes[::-1])


def _extended(entry: Sequence[float], device: Capacity, num_layers: int) -> tuple[list[float], list[int]]:
    """Add 1 to `device.blocks` blocks after every state n of `entry`: the shortest time for each number of
    blocks up to `num_layers`, and the state from which it comes (-1: none).
    """
    ends, origins = [inf], [-1]
    window: deque[tuple[float, int]] = deque()  # (time less n blocks of this device, n), ascending in time
    for stop in range(1, num_layers + 1):
        reduced = entry[stop - 1] - (stop - 1) * device.block_s
        while window and window[-1][0] > reduced:
            window.pop()
        window.append((reduced, stop - 1))
        while window[0][1] < stop - device.blocks:
            window.popleft()
        found_s, n = window[0]
        ends.append(found_s + stop * device.block_s)
        origins.append(n if found_s < inf else -1)
    return ends, origins
