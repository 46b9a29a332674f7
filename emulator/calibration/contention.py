"""Measures how much longer operations take while several processes of this machine compute at once.

They share caches and memory bandwidth, and take turns where there are more of them than cores
(`RuntimeCosts.slowdown_of`). Half of the operations have one row and read much memory, half have many rows
and compute much, as in real runs. All numbers of processes are measured in turn, several times: a shared
machine is faster at one time than at another, for alone and together alike.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from emulator.calibration.children import at_once
from emulator.calibration.operations import hold, working_layers
from emulator.calibration.shapes import Extent
from engine.ops.core import Block

if TYPE_CHECKING:  # torch takes a while to import
    from engine.models.weights.store import WeightStore

MOST_PROCESSES = 8
WARM_UP_S = 0.05
ROWS = (1, 96)
TURNS = 3


def measure_slowdown(store: WeightStore, extent: Extent) -> tuple[float, ...]:
    """How many times as long as alone a block takes, by number of processes. The first figure is 1.

    Measured up to as many processes as there are cores, on layers of the model of `store`.
    """
    layers = working_layers(store.model, extent.working_set_bytes)
    hold(store, (piece for layer in layers for piece in Block(layer, None).slices(store.model)))
    most = min(MOST_PROCESSES, len(os.sched_getaffinity(0)))
    if most == 1:
        return (1.0,)
    turns = [
        [
            [_together(store, layers, rows, count, extent.slowdown_s / TURNS) for count in range(1, most + 1)]
            for rows in ROWS
        ]
        for _ in range(TURNS)
    ]
    return slowdown_in(turns)


def slowdown_in(turns: Sequence[Sequence[Sequence[float]]]) -> tuple[float, ...]:
    """The slowdown by number of processes, from the seconds of a block by turn, rows and that number: of the
    ratios of one turn the geometric mean over the rows, of the turns the median. More are never faster.
    """
    by_count = [
        statistics.median(
            math.exp(statistics.fmean(math.log(taken[at] / taken[0]) for taken in turn)) for turn in turns
        )
        for at in range(len(turns[0][0]))
    ]
    return (1.0, *(max(1.0, *by_count[: at + 1]) for at in range(1, len(by_count))))


def _together(store: WeightStore, layers: Sequence[int], rows: int, count: int, figure_s: float) -> float:
    """Mean wall seconds of a block in each of `count` processes that run at once, their mean."""
    begin_s = time.monotonic() + WARM_UP_S
    return statistics.fmean(at_once([partial(_block_s, store, layers, rows, begin_s, figure_s)] * count))


def _block_s(store: WeightStore, layers: Sequence[int], rows: int, begin_s: float, figure_s: float) -> float:
    """Mean wall seconds of a block while it is computed over and over, from `begin_s` on."""
    import torch

    from engine.ops.torch_kernels import dispatch as arithmetic

    steps = [Block(layer, None) for layer in layers]
    x, count = torch.randn(1, rows, store.model.hidden_size), 0
    began_s = math.inf
    with torch.inference_mode():
        while (now_s := time.monotonic()) < begin_s + figure_s or count == 0:  # a busy host may begin late
            if now_s >= begin_s and count == 0:
                began_s = now_s
            for step in steps:
                arithmetic.run(step, store.model, store, {}, (x,))
            count += len(steps) * (began_s < math.inf)
    return (time.monotonic() - began_s) / count
