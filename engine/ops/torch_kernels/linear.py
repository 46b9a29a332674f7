"""`linear`: every product with weights, by the kernel that is fastest on this host for its shape.

torch has several kernels for x·Wᵀ, and we have one for a single row (`row_products.c`). Which is fastest
depends on the processor, the number of rows and the size of the matrix: by a factor of two on some hosts. A
`LinearTable` (`linear_table.py`) says which to use; without one every product uses torch's default. All
kernels compute the same sums in float32 (or bfloat16), in orders of their own.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.ops.torch_kernels.int8_products import int8_product
from engine.ops.torch_kernels.linear_table import SMALLEST_ELEMENTS, LinearTable, row_class, size_class
from engine.ops.torch_kernels.packed import Packed
from engine.ops.torch_kernels.row_products import (
    packed_product,
    prepare,
    read_four_rows_from,
    row_product,
)

Product = Callable[[Tensor, Tensor, Tensor | None], Tensor]


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return y


def _vector(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Matrix times vector; `x` has one row."""
    row = x.reshape(-1)
    y = torch.mv(weight, row) if bias is None else torch.addmv(bias, weight, row)
    return y.view(*x.shape[:-1], -1)


PRODUCTS: dict[str, Product] = {"default": F.linear, "vector": _vector, "onednn": _onednn, "row": row_product}


class _Chosen:
    """The kernels in use in this process: by dtype, then row class, then size class."""

    products: dict[torch.dtype, tuple[tuple[Product, ...], ...]] = {}  # noqa: RUF012  (replaced as a whole)
    packed_rows = 0
    whole_parts = False
    met: dict[tuple[int, torch.Size, torch.dtype], Product] = {}  # noqa: RUF012  (replaced as a whole)


def use(table: LinearTable | None) -> None:
    """Choose kernels by `table` from now on in this process and those forked from it; None: the default."""
    if table and table.row_library:
        prepare()
        read_four_rows_from(table.four_rows_from)
    _Chosen.products = {
        getattr(torch, dtype): tuple(tuple(PRODUCTS[name] for name in by_size) for by_size in by_rows)
        for dtype, by_rows in (table.grid() if table else {}).items()
    }
    _Chosen.packed_rows = table.packed_rows if table else 0
    _Chosen.whole_parts = table.whole_parts if table else False
    _Chosen.met = {}


def whole_parts() -> bool:
    """Whether one row goes through whole parts of a layer in calls of ours (`row_layer.py`)."""
    return _Chosen.whole_parts


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x·Wᵀ + b for x [..., inner], W [cols, inner] and b [cols]: [..., cols].

    A matrix in 8 or 4 bits is restored, or for a row or a few read as it is. One that is a view with gaps
    uses torch's default, or for one row ours, which reads rows that lie apart: oneDNN would copy it, a
    hundred times slower.
    """
    if isinstance(weight, Packed):
        return _packed(x, weight, bias)
    kind = (x.numel(), weight.shape, weight.dtype)
    product = _Chosen.met.get(kind)
    if product is None:
        product = _Chosen.met[kind] = _chosen(*kind)
    if product is not PRODUCTS["row"] and not weight.is_contiguous():
        return F.linear(x, weight, bias)
    return product(x, weight, bias)


def _packed(x: Tensor, weight: Packed, bias: Tensor | None) -> Tensor:
    """The product of `x` with a quantised matrix, which is restored where there are many rows."""
    if weight.numbers.int8_group:
        return int8_product(x, weight, bias)
    few = 0 < x.numel() <= _Chosen.packed_rows * x.shape[-1]
    return packed_product(x, weight, bias) if few else restored_product(x, weight, bias)


def restored_product(x: Tensor, weight: Packed, bias: Tensor | None) -> Tensor:
    return linear(x, weight.restored(), bias)


def _chosen(numbers: int, shape: torch.Size, dtype: torch.dtype) -> Product:
    """The kernel for an input of so many `numbers` and a matrix of this `shape`.

    How fast one row is multiplied depends on the length of the matrix's rows, not on how many it has.
    """
    elements, products = shape.numel(), _Chosen.products.get(dtype)
    rows = numbers // shape[1] if elements else 0
    if products is None or not rows or elements < SMALLEST_ELEMENTS:
        return F.linear
    return products[row_class(rows)][size_class(shape[1] ** 2 if rows == 1 else elements)]
