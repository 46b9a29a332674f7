"""Divide the positions of a sequence among devices, and choose the order of their matrix products. Pure.

Hu, Li (ICDCS 2024); numbers of equations and theorems are the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, pairwise
from math import floor
from typing import Literal

from engine.domain.model import ModelSpec
from engine.domain.values import Value
from engine.ops.positions import Order, PositionBlock

OrderChoice = Literal["auto", "naive", "reorder"]
ShardTime = Callable[[int, int, int], float]
"""Seconds of device `index` for rows [start, stop)."""


def bounds(num_positions: int, ratios: Sequence[float]) -> tuple[int, ...]:
    """Row bounds for ratios that sum to 1: the cumulative sum times N, rounded half up. Some may be empty."""
    ends, total = [0], 0.0
    for ratio in ratios[:-1]:
        total += ratio
        # 1e-9: a sum of thirds must round like the number it stands for
        ends.append(min(max(floor(num_positions * total + 0.5 + 1e-9), ends[-1]), num_positions))
    return (*ends, num_positions)


def reorders(model: ModelSpec, rows: int, keys: int) -> bool:
    """Theorem 2 in integers: whether pulling the weights out of the product with x is cheaper.

    For P rows over e keys, F hidden_size, F_H head_dim and g query heads per KV head:
    (e - gP)·F·F_H > g·P·e·(F - F_H). The same inequality decides the score and the value part.
    """
    hidden, wide, group = model.hidden_size, model.head_dim, model.group_size
    return (keys - group * rows) * hidden * wide > group * rows * keys * (hidden - wide)


def orders(
    model: ModelSpec, rows: int, keys: int, choice: OrderChoice, fills_cache: bool
) -> tuple[Order, Order]:
    """Order of the score and of the value part.

    Where rotary positions or norms stand between q and W_K, the score is always naive. A device that
    fills a KV cache needs K and V, which only the naive order computes.
    """
    wanted = choice == "reorder" or (choice == "auto" and reorders(model, rows, keys))
    if not wanted or fills_cache or not rows:
        return "naive", "naive"
    return ("reorder" if model.scores_reorder else "naive"), "reorder"


class PositionShard(Value):
    """One device's part of every layer: rows [start, stop) from keys [0, keys_stop), and how."""

    device: int
    start: int
    stop: int
    keys_stop: int
    score_order: Order
    value_order: Order

    @property
    def size(self) -> int:
        return self.stop - self.start

    def op(self, layer: int, cache: str | None) -> PositionBlock:
        return PositionBlock(
            layer, self.start, self.stop, self.keys_stop, self.score_order, self.value_order, cache
        )


def shard_of(
    model: ModelSpec,
    device: int,
    rows: range,
    num_positions: int,
    choice: OrderChoice,
    trims: bool,
    owns: bool,
) -> PositionShard:
    """The shard of a device. `trims`: keys end where the causal mask hides the rest; `owns`: this device
    fills a KV cache.
    """
    keys = rows.stop if trims and model.causal else num_positions
    score, value = orders(model, len(rows), keys, choice, owns)
    return PositionShard(
        device=device, start=rows.start, stop=rows.stop, keys_stop=keys, score_order=score, value_order=value
    )


def search(
    num_positions: int,
    start: Sequence[int],
    shard_s: ShardTime,
    keeps: int | None = None,
) -> tuple[int, ...]:
    """Hill-climb from the bounds `start` to bounds with which the slowest device, then the next slowest,
    takes the least time; device `keeps` stays with one row at least.

    Moves rows from the slowest device to any other, in steps that halve when no move helps; a device's
    time is no linear function of its rows, so proportional shares are seldom best.
    """
    shard_s = cache(shard_s)

    def times(sizes: Sequence[int]) -> list[float]:
        at, result = 0, []
        for index, size in enumerate(sizes):
            result.append(shard_s(index, at, at + size) if size else 0.0)
            at += size
        return result

    def cost(sizes: Sequence[int]) -> list[float]:
        return sorted(times(sizes), reverse=True)

    sizes = [stop - begin for begin, stop in pairwise(start)]
    best, step = cost(sizes), max(1, num_positions // 4)
    while step:
        now = times(sizes)
        slowest = now.index(max(now))
        moves = []
        for other in range(len(sizes)):
            if other != slowest and sizes[slowest] >= step + (slowest == keeps):
                moved = list(sizes)
                moved[slowest] -= step
                moved[other] += step
                moves.append((cost(moved), moved))
        better, moved = min(moves, default=(best, sizes))
        if better < best:
            best, sizes = better, moved
        else:
            step //= 2
    return tuple(accumulate(sizes, initial=0))
