"""Times the kernels of `linear` on this host, one product per class; as a program it prints the table.

It runs in a process of its own, because a process that has computed with torch cannot be forked safely, and
takes about a second. Time is that of the processor, so other processes disturb little.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from itertools import cycle, product

import torch
from torch import Tensor

from engine.ops.torch_kernels.linear import PRODUCTS, Product
from engine.ops.torch_kernels.linear_table import (
    ROWS,
    SIDES,
    LinearChoice,
    LinearKernel,
    LinearTable,
    processor,
)

ROUNDS = 4
TURN_S = 1.5e-3
"""Time for one kernel in one round; the least of its rounds counts."""

MARGIN = 0.9
"""Another kernel must take less than this share of the default's time: a tie keeps the default."""

WORKING_SET_BYTES = 96 << 20
"""Of matrices in turn, as those of a model's layers are: they come from memory, not from a near cache."""


def probe(dtypes: Sequence[str] = ("float32", "bfloat16")) -> LinearTable:
    """The fastest kernel of every class on this host, with one thread. Sets torch to one thread."""
    torch.set_num_threads(1)
    choices = []
    with torch.inference_mode():
        for dtype in dtypes:
            numbers = torch.full((WORKING_SET_BYTES // 4,), 0.5, dtype=getattr(torch, dtype))
            choices += [_choice(dtype, numbers, rows, side) for rows, side in product(ROWS, SIDES)]
    return LinearTable(processor=processor(), torch=torch.__version__, choices=tuple(choices))


def _choice(dtype: str, numbers: Tensor, rows: int, side: int) -> LinearChoice:
    matrices = numbers[: len(numbers) // side**2 * side**2].view(-1, side, side)
    x = torch.ones(1, rows, side, dtype=numbers.dtype)
    tried: tuple[LinearKernel, ...] = ("default", "vector", "onednn") if rows == 1 else ("default", "onednn")
    turns = cycle(matrices.unbind())
    seconds: dict[LinearKernel, float] = dict.fromkeys(tried, math.inf)
    for _ in range(ROUNDS):
        for name in tried:
            seconds[name] = min(seconds[name], _turn_s(PRODUCTS[name], x, turns))
    fastest = min(tried, key=lambda name: seconds[name])
    kernel: LinearKernel = fastest if seconds[fastest] < MARGIN * seconds["default"] else "default"
    return LinearChoice(dtype=dtype, rows=rows, side=side, kernel=kernel, seconds=seconds)


def _turn_s(kernel: Product, x: Tensor, matrices: cycle[Tensor]) -> float:
    """Seconds of one product, over as many as fit into a turn; the first call may compile the kernel."""
    kernel(x, next(matrices), None)
    count, began_s = 0, time.thread_time()
    while True:
        kernel(x, next(matrices), None)
        count += 1
        passed_s = time.thread_time() - began_s
        if passed_s >= TURN_S:
            return passed_s / count


def main() -> int:
    sys.stdout.write(probe().model_dump_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
