"""Measures how much longer operations take while several processes of this machine compute at once.

They share cores where there are more processes than cores, and caches and memory bandwidth in any case. Half
of the operations have one row and read much memory, half have many rows and compute much, as in real runs.
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
WARM_UP_S = 0.2
ROWS = (1, 96)


def measure_slowdown(store: WeightStore, extent: Extent) -> tuple[float, ...]:
    """How many times as long as alone a block takes, by number of processes. The first figure is 1.

    Measured up to twice as many processes as there are cores, on layers of the model of `store`.
    """
    layers = working_layers(store.model, extent.working_set_bytes)
    hold(store, (piece for layer in layers for piece in Block(layer, None).slices(store.model)))
    most = min(MOST_PROCESSES, 2 * len(os.sched_getaffinity(0)))
    taken = [
        [_together(store, layers, rows, count, extent.slowdown_s) for rows in ROWS]
        for count in range(1, most + 1)
    ]
    alone = taken[0]
    ratios = [
        math.exp(statistics.fmean(math.log(many / one) for many, one in zip(these, alone, strict=True)))
        for these in taken
    ]
    risen = [max(1.0, *ratios[: count + 1]) for count in range(len(ratios))]  # more of them are never faster
    return (1.0, *risen[1:])


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
