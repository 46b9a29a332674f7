"""Bytes that one block moves between a chip's memories, product by product.

Bochem et al. (DATE 2025), section II-B: cores compute on what is in L1. An operator whose tensors do not fit
there together is computed tile by tile, of which two are there at a time: one is computed while the next one
comes (half of L1 each; the paper does not say how its compiler tiles). A tile of a product has whole rows of
one operand and whole columns of the other, so that its sums leave L1 once, requantised. One operand is read
once, the other one as often as the first has tiles: the order that moves fewer bytes is taken.

The weights of a chip that streams them leave no room for a block on chip, and its intermediate tensors are in
L3 ("off-chip memory is required to hold model weights and intermediate tensors of the current block", section
V-C): each operator reads its operands from there, KV caches included, and writes its result there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine.domain.model import ModelSpec
from engine.ops.layout import kv_heads

BUFFERS = 2
"""Tiles that are in L1 at a time."""


class Product(NamedTuple):
    """`times` products [rows, inner] × [inner, cols], the second operand no intermediate tensor where it is
    weights.
    """

    rows: int
    inner: int
    cols: int
    times: int = 1
    has_weights: bool = True

    def tensor_numbers(self) -> int:
        """Numbers of operands and results that are no weights."""
        operand = 0 if self.has_weights else self.inner * self.cols
        return self.times * (self.rows * self.inner + operand + self.rows * self.cols)

    def weight_numbers(self) -> int:
        return self.times * self.inner * self.cols if self.has_weights else 0

    def tiled_numbers(self, fitting: float) -> int:
        """Numbers that cross into and out of a memory in which `fitting` numbers are together."""
        rows, inner, cols = self.rows, self.inner, self.cols
        first, second, result = rows * inner, inner * cols, rows * cols
        if first + second + result <= fitting:
            return self.times * (first + second + result)
        by_rows = first + _tiles(rows, inner, fitting) * second
        by_columns = second + _tiles(cols, inner, fitting) * first
        return self.times * (min(by_rows, by_columns) + result)


class Pass(NamedTuple):
    """An element-wise operator that reads and writes so many numbers."""

    read: int
    written: int

    def tensor_numbers(self) -> int:
        return self.read + self.written

    def weight_numbers(self) -> int:
        return 0

    def tiled_numbers(self, fitting: float) -> int:
        return self.read + self.written


class Traffic(NamedTuple):
    """Bytes of one chip and block: `tiles` between L2 and L1, `weights` among them once; `tensors` between L3
    and L2 where intermediate tensors are in L3.
    """

    tiles: int
    weights: int
    tensors: int


def block_traffic(
    model: ModelSpec,
    heads: tuple[int, int],
    columns: tuple[int, int],
    is_root: bool,
    sizes: tuple[int, int, int],
    l1_bytes: float,
) -> Traffic:
    """What a chip moves for its `heads` and `columns`; `sizes`: batch, new rows, all rows that they see."""
    fitting = l1_bytes / BUFFERS / model.element_bytes
    tiles = weights = tensors = 0
    for operator in operators(model, heads, columns, is_root, sizes):
        tiles += operator.tiled_numbers(fitting)
        weights += operator.weight_numbers()
        tensors += operator.tensor_numbers()
    return Traffic(*(numbers * model.element_bytes for numbers in (tiles, weights, tensors)))


def operators(
    model: ModelSpec,
    heads: tuple[int, int],
    columns: tuple[int, int],
    is_root: bool,
    sizes: tuple[int, int, int],
) -> Iterator[Product | Pass]:
    """The operators of one chip in a block, each with all its rows; the root also adds and normalises."""
    batch, rows, seen = sizes
    wide, own = model.hidden_size, heads[1] - heads[0]
    all_rows, scores = batch * rows, batch * own * rows * seen
    if own:
        first, last = kv_heads(model, *heads)
        yield Product(all_rows, wide, own * model.head_dim)
        yield Product(all_rows, wide, (last - first) * model.head_dim, times=2)
        yield Product(rows, model.head_dim, seen, batch * own, has_weights=False)
        yield Pass(scores, scores)  # softmax
        yield Product(rows, seen, model.head_dim, batch * own, has_weights=False)
        yield Product(all_rows, own * model.head_dim, wide)
    width = columns[1] - columns[0]
    if width:
        first_matrices = 2 if model.gated_ffn else 1
        yield Product(all_rows, wide, width, times=first_matrices)
        yield Pass(first_matrices * all_rows * width, all_rows * width)  # activation
        yield Product(all_rows, width, wide)
    if is_root:
        for _ in ("attention", "ffn"):
            yield Pass(2 * all_rows * wide, all_rows * wide)  # residual addition
            yield Pass(all_rows * wide, all_rows * wide)  # norm


def _tiles(outer: int, inner: int, fitting: float) -> int:
    """Tiles of an operand with `outer` rows of `inner` numbers, beside one row of the other operand and a
    column of results.
    """
    most = int((fitting - inner) // (inner + 1))
    return -(-outer // max(1, most))
