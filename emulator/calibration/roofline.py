"""Fits the four figures of a device's roofline to measured times of kernels, by least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from engine.domain.cluster import DeviceSpec
from engine.ops.cost import Kernel, op_time_s

ROUNDS = 60
FIRST_STEP = 0.5  # of a figure's logarithm


class Roofline(NamedTuple):
    """The figures of a device that `op_time_s` uses with compute model `roofline`."""

    flop_per_s: float
    half_rows: float
    memory_byte_per_s: float
    op_overhead_s: float


def fit_roofline(times: Sequence[tuple[Kernel, float]]) -> Roofline:
    """Minimise the mean squared logarithm of (roofline / measured): relative errors count, all alike.

    Pattern search: each figure in turn is moved up or down by a step that halves when none improves.
    """
    fastest = max(kernel.flops / seconds for kernel, seconds in times)
    logs = [math.log(value) for value in Roofline(fastest, 10.0, fastest / 4, 1e-6)]
    step, best = FIRST_STEP, _error(logs, times)
    for _ in range(ROUNDS):
        improved = False
        for index in range(len(logs)):
            for change in (step, -step):
                tried = [value + change * (at == index) for at, value in enumerate(logs)]
                error = _error(tried, times)
                if error < best:
                    logs, best, improved = tried, error, True
        if not improved:
            step /= 2
    return Roofline(*(math.exp(value) for value in logs))


def _error(logs: Sequence[float], times: Sequence[tuple[Kernel, float]]) -> float:
    values = Roofline(*(math.exp(value) for value in logs))
    device = DeviceSpec(name="fit", memory_bytes=1.0, **values._asdict())
    return sum(math.log(op_time_s(device, [kernel]) / seconds) ** 2 for kernel, seconds in times)
