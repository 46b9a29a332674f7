"""The kernels that calibration times: products, attention and element-wise passes, as models compute them.

A figure is named by a tuple: its kind, then its sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, product
from typing import Any, Literal, NamedTuple

from emulator.calibration.shapes import PACKED_BITS
from emulator.calibration.stopwatch import in_place_s, typical_s

ATTENTION_ROWS, ATTENTION_WIDTHS, ATTENTION_SEEN = (1, 8, 32, 128, 512), (32, 64, 128), (32, 128, 512)
ATTENTION_HEADS = 12
PACKED_ROWS, PACKED_SIDES = (1, 4, 16, 128), (384, 1024, 3072)
CALL_INPUTS = 128
"""Of a matrix with one row in 8 or 4 bits, a product with which is nearly nothing but its call."""

PASS_ROWS, PASS_COLS = (1, 128), 1024
PASSES = ("add", "layernorm", "rmsnorm", "softmax", "lookup", "rope")  # and the activations
WORKING_SET_BYTES = 120 << 20  # of matrices in turn, as a model's are: large ones leave the cache meanwhile
MATRICES = 144
"""The most matrices that are multiplied in turn, counted in squares of the smaller side: as large is a model
of 12 layers of that hidden size.
"""

MIN_MATRICES = 3
READ_COLS = 1024
TEXTS = 50  # to look up in turn
CROWD_SIDE = 512
POINT_S = 0.012  # time spent on one figure of a grid
FIGURE_S = 0.05  # and on one that stands alone
FLOAT_BYTES = 4

Work = Callable[[], Any]
Name = tuple[Any, ...]


class Figure(NamedTuple):
    """What to time: `work`, alone or each time after `before`."""

    work: Work
    figure_s: float
    before: Work | None = None

    def seconds(self) -> float:
        if self.before is None:
            return typical_s(self.work, self.figure_s)
        return in_place_s(self.work, self.before, self.figure_s)


class TimedKernels:
    """Makes the kernels to time.

    All matrices are parts of one array in large pages, as a device's weights are at native speed. Small pages
    add up to a half to a product with one row.
    """

    def __init__(self, torch: Any):
        from engine.ops.torch_kernels.own_memory import copies

        self.torch = torch
        (self._numbers,) = copies([torch.randn(WORKING_SET_BYTES // FLOAT_BYTES)])
        crowd, x = self._matrices(CROWD_SIDE, CROWD_SIDE), torch.randn(1, CROWD_SIDE)
        self.crowd: Work = lambda: torch.nn.functional.linear(x, next(crowd))
        """What runs between two passes of a model, and leaves little of them in the nearest caches."""

    def figures(self, rows: Sequence[int], sides: Sequence[int]) -> Iterator[tuple[Name, Figure]]:
        """What to time: products on a grid of `rows` and of `sides` of the matrices, and everything else."""
        yield ("call",), Figure(self._pass("add", 1), FIGURE_S)
        yield ("call in place",), Figure(self._pass("add", 1), FIGURE_S, self.crowd)
        yield ("memory",), Figure(self._reading(), FIGURE_S)
        for inner, cols in product(sides, sides):
            weights = self._matrices(cols, inner)
            for count in rows:
                yield ("product", count, inner, cols), Figure(self._product(count, inner, weights), POINT_S)
        for bits, count in product(PACKED_BITS, PACKED_ROWS):
            nearly_none = self._product(count, CALL_INPUTS, self._packed(bits, 1, CALL_INPUTS))
            yield ("packed call", bits, count), Figure(nearly_none, FIGURE_S)
        for bits, inner, cols in product(PACKED_BITS, PACKED_SIDES, PACKED_SIDES):
            packed = self._packed(bits, cols, inner)
            for count in PACKED_ROWS:
                work = self._product(count, inner, packed)
                yield ("packed", bits, count, inner, cols), Figure(work, POINT_S)
        for rows_, wide, seen in product(ATTENTION_ROWS, ATTENTION_WIDTHS, ATTENTION_SEEN):
            yield ("attention", rows_, wide, seen), Figure(self._attention(rows_, wide, seen), POINT_S)
        for name, count in product(pass_names(), PASS_ROWS):
            yield ("pass", name, count), Figure(self._pass(name, count), FIGURE_S, self.crowd)

    def _matrices(self, cols: int, inner: int) -> Iterator[Any]:
        """Yields different matrices in turn, without end."""
        return cycle(self._parts(self._numbers, cols, inner))

    def _parts(self, memory: Any, cols: int, inner: int) -> list[Any]:
        """The parts of `memory` that are matrices [cols, inner], as many as a model has."""
        size = cols * inner
        as_large = MATRICES * min(cols, inner) ** 2
        count = max(1, min(max(MIN_MATRICES, as_large // size), len(memory) // size))
        return [memory[at * size : (at + 1) * size].view(cols, inner) for at in range(count)]

    def _packed(self, bits: Literal[8, 4], cols: int, inner: int) -> Iterator[Any]:
        """Yields different matrices in `bits` bits in turn, without end: any bytes of the array will do."""
        from engine.ops.sizes import GROUP_INPUTS
        from engine.ops.torch_kernels.packed import Numbers, Packed

        torch = self.torch
        memory = self._numbers.view(torch.int8 if bits == 8 else torch.uint8)
        groups = 1 if bits == 8 else -(-inner // GROUP_INPUTS)
        parts = self._parts(memory, cols, inner * bits // 8)
        scales = torch.ones(cols, groups, dtype=torch.float16)
        return cycle([Packed(Numbers(bits, part, scales), inner, torch.float32) for part in parts])

    def _product(self, rows: int, inner: int, weights: Iterator[Any]) -> Work:
        from engine.ops.torch_kernels.linear import linear

        x = self.torch.randn(1, rows, inner)
        return lambda: linear(x, next(weights))

    def _attention(self, rows: int, wide: int, seen: int) -> Work:
        """The attention of some heads, with scores, softmax, values and their merging: on views, as
        operations have them.
        """
        torch, heads = self.torch, ATTENTION_HEADS
        q = torch.randn(1, rows, heads, wide).transpose(1, 2)
        k, v = (torch.randn(1, seen, heads, wide).transpose(1, 2) for _ in range(2))
        attend = torch.nn.functional.scaled_dot_product_attention
        return lambda: attend(q, k, v).transpose(1, 2).flatten(2)

    def _reading(self) -> Work:
        """One row times a matrix far larger than any cache."""
        from engine.ops.torch_kernels.linear import linear

        matrix, row = self._numbers.view(-1, READ_COLS), self.torch.ones(1, READ_COLS)
        return lambda: linear(row, matrix)

    def _pass(self, name: str, rows: int) -> Work:
        """The pass on some rows, the way `engine/models` computes it: see `passes_in`."""
        from engine.ops.torch_kernels.core import ACTIVATIONS

        torch, cols = self.torch, PASS_COLS
        functional = torch.nn.functional
        if name == "add":  # one operand is a residual from before the products
            old, new = cycle([torch.randn(1, rows, cols) for _ in range(24)]), torch.randn(1, rows, cols)
            return lambda: next(old) + new
        x, y, weight = torch.randn(1, rows, cols), torch.randn(1, rows, cols), torch.ones(cols)
        if name == "silu":
            return lambda: functional.silu(x) * y
        if name in ACTIVATIONS:
            return lambda: ACTIVATIONS[name](x)
        if name == "lookup":  # other rows of a large table each time
            table = self._numbers[: len(self._numbers) // cols * cols].view(-1, cols)
            tokens = cycle([torch.randint(len(table), (1, rows)) for _ in range(TEXTS)])
            return lambda: functional.embedding(next(tokens), table)
        heads = [z.view(1, rows, cols // 64, 64).transpose(1, 2) for z in (x, y)]
        angles = torch.randn(rows, 64)

        def rotate() -> None:
            for z in heads:
                low, high = z.chunk(2, dim=-1)
                z * angles + torch.cat((-high, low), dim=-1) * angles

        passes: dict[str, Work] = {
            "layernorm": lambda: functional.layer_norm(x, (cols,), weight, weight),
            "rmsnorm": lambda: functional.rms_norm(x, (cols,), weight),
            "softmax": lambda: torch.softmax(x, dim=-1),
            "rope": rotate,
        }
        return passes[name]


def pass_names() -> tuple[str, ...]:
    from engine.ops.torch_kernels.core import ACTIVATIONS

    return (*ACTIVATIONS, *PASSES)


def passes_in(name: str) -> int:
    """The element-wise passes of an operation. Gated families multiply after silu and count that as a second
    pass. Rotary ones are for q and k.
    """
    return 2 if name in ("silu", "rope") else 1
