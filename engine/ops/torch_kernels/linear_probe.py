"""Times the kernels of `linear` on this host, one product per class.

It runs in a process of its own, because a process that has computed with torch cannot be forked safely, and
takes less than a second. Time is that of the processor, so other processes disturb little; they do make the
probe last longer, so that on a busy host it does fewer rounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import cycle, product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from engine.ops.torch_kernels.linear import PRODUCTS, restored_product
from engine.ops.torch_kernels.linear_table import (
    ROWS,
    SIDES,
    LinearChoice,
    LinearKernel,
    LinearTable,
    processor,
)
from engine.ops.torch_kernels.own_memory import copies
from engine.ops.torch_kernels.packed import Numbers, Packed
from engine.ops.torch_kernels.row_library import make_library
from engine.ops.torch_kernels.row_products import packed_product, read_four_rows_from, row_product

ROUNDS = 3
LONGEST_S = 1.0
"""Seconds after the first round from which on no other begins."""

TURN_S = 1.5e-3
"""Time for one kernel in one round, at least one product; the least of its rounds counts."""

ROW_ROUNDS = 3
"""Products of one row, of which a decode step consists, are timed so often in every round."""

MARGIN = 0.9
"""Share of the time of the kernel that is kept in a tie that another must take less than. For one row ours is
kept, since it takes slices as they are and, where nothing else is faster, whole parts of a layer.
"""

WORKING_SET_BYTES = 96 << 20
"""Bytes of the matrices that are multiplied in turn, as those of a model's layers are: they come from memory,
not from a near cache, and lie in large pages, as those of a device at native speed do.
"""

LENGTHS = (512, 1024, 2048, 4096)
HEIGHT = 1024
"""Matrices of so many rows, each of one of these lengths, tell from which on rows are read four in turn."""

Seconds = dict[LinearKernel, float]
"""Kernel → seconds of one product."""


class Place(NamedTuple):
    """A class of products: [rows, side] × [side, side]."""

    dtype: str
    rows: int
    side: int


def probe(dtypes: Sequence[str] = ("float32", "bfloat16")) -> LinearTable:
    """The fastest kernel of every class on this host, with one thread. Sets torch to one thread."""
    library = make_library()
    torch.set_num_threads(1)
    found: dict[Place, Seconds] = {
        Place(dtype, rows, side): dict.fromkeys(kernels_for(dtype, rows, library), math.inf)
        for dtype, rows, side in product(dtypes, ROWS, SIDES)
    }
    with torch.inference_mode():
        # halves of 16 bits; read as one number of 32 bits, two of them are as good
        (memory,) = copies([torch.full((WORKING_SET_BYTES // 2,), 0.5, dtype=torch.bfloat16)])
        four_rows = four_rows_from(memory) if library else None
        end_s = time.monotonic() + LONGEST_S
        for turn in range(ROUNDS):
            if turn and time.monotonic() > end_s:
                break
            ones = [place for place in found if place.rows == 1]
            for place in (*found, *ones * (ROW_ROUNDS - 1)):
                _time(place, found[place], memory.view(getattr(torch, place.dtype)), first=not turn)
        packed_rows = packed_rows_of(memory) if library else 0
    return LinearTable(
        processor=processor(),
        torch=torch.__version__,
        row_library=library,
        packed_rows=packed_rows,
        four_rows_from=four_rows,
        choices=tuple(choice(place, seconds) for place, seconds in found.items()),
    )


def four_rows_from(memory: Tensor) -> int | None:
    """The length of a matrix's rows from which on ours is faster if it reads four in turn, and let it do so
    in this process.
    """
    found = None
    for length in reversed(LENGTHS):
        numbers = memory.view(torch.float32)
        matrices = numbers[: len(numbers) // (HEIGHT * length) * HEIGHT * length].view(-1, HEIGHT, length)
        x, turns = torch.ones(1, length), cycle(matrices.unbind())
        seconds: dict[int | None, float] = {None: math.inf, length: math.inf}
        for _, first in product(range(ROUNDS), seconds):
            read_four_rows_from(first)
            seconds[first] = min(seconds[first], _turn_s(row_product, x, turns))
        if seconds[length] > MARGIN * seconds[None]:
            break
        found = length
    read_four_rows_from(found)
    return found


def packed_rows_of(memory: Tensor) -> int:
    """The most rows for which ours is faster than restoring a matrix of 8 bits and multiplying by it.

    Each of our rows takes as long as the one before; so does restoring, which is most of the other's time.
    """
    side = SIDES[-1]
    packed = memory.view(torch.int8)[: side * side].view(side, side)
    matrix = Packed(Numbers(8, packed, torch.ones(side, 1, dtype=torch.float16)), side, torch.float32)
    x = torch.ones(1, side)
    turns = cycle((matrix,))
    one_s, restored_s = (
        min(_turn_s(product, x, turns) for _ in range(ROUNDS))
        for product in (packed_product, restored_product)
    )
    return int(MARGIN * restored_s / one_s)


def kernels_for(dtype: str, rows: int, library: str) -> tuple[LinearKernel, ...]:
    """The kernels that can compute products of so many rows on this processor; `library` names ours, or
    is "". oneDNN has none for bfloat16 where the processor has at most AVX2.
    """
    able: dict[LinearKernel, bool] = {
        "default": True,
        "vector": rows == 1,
        "onednn": dtype != "bfloat16" or torch.ops.mkldnn._is_mkldnn_bf16_supported(),
        "row": rows == 1 and library != "",
    }
    return tuple(name for name, is_able in able.items() if is_able)


def choice(place: Place, seconds: Seconds) -> LinearChoice:
    """The fastest kernel; in a tie ours, where it is one of them, else torch's default."""
    fastest = min(seconds, key=lambda name: seconds[name])
    kept: LinearKernel = "row" if "row" in seconds else "default"
    kernel = fastest if seconds[fastest] < MARGIN * seconds[kept] else kept
    return LinearChoice(dtype=place.dtype, rows=place.rows, side=place.side, kernel=kernel, seconds=seconds)


def _time(place: Place, seconds: Seconds, numbers: Tensor, first: bool) -> None:
    """One round of one class: keep the least seconds of each kernel."""
    matrices = numbers[: len(numbers) // place.side**2 * place.side**2].view(-1, place.side, place.side)
    x = torch.ones(1, place.rows, place.side, dtype=numbers.dtype)
    turns = cycle(matrices.unbind())
    for name in seconds:
        if first:
            PRODUCTS[name](x, next(turns), None)  # may compile the kernel
        seconds[name] = min(seconds[name], _turn_s(PRODUCTS[name], x, turns))


def _turn_s(kernel: Callable[..., Tensor], x: Tensor, matrices: cycle[Any]) -> float:
    """Seconds of one product, over as many as fit into a turn."""
    count, began_s = 0, time.thread_time()
    while True:
        kernel(x, next(matrices), None)
        count += 1
        passed_s = time.thread_time() - began_s
        if passed_s >= TURN_S:
            return passed_s / count
