"""`linear`: every product with weights, by the kernel that is fastest on this host for its shape.

torch has several kernels for x·Wᵀ. Which one is fastest depends on the processor, the number of rows and the
size of the matrix: by a factor of two on some hosts. A `LinearTable` (`linear_table.py`) says which to use;
without one every product uses torch's default. All kernels compute the same sums in float32 (or bfloat16),
in orders of their own.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.ops.torch_kernels.linear_table import SMALLEST_ELEMENTS, LinearTable, row_class, size_class

Product = Callable[[Tensor, Tensor, Tensor | None], Tensor]


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return y


def _vector(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Matrix times vector; `x` has one row."""
    row = x.reshape(-1)
    y = torch.mv(weight, row) if bias is None else torch.addmv(bias, weight, row)
    return y.view(*x.shape[:-1], -1)


PRODUCTS: dict[str, Product] = {"default": F.linear, "vector": _vector, "onednn": _onednn}


class _Chosen:
    """The kernels in use in this process: by dtype, then row class, then size class."""

    products: dict[torch.dtype, tuple[tuple[Product, ...], ...]] = {}  # noqa: RUF012  (replaced as a whole)


def use(table: LinearTable | None) -> None:
    """From now on choose kernels by `table` in this process and those forked from it; None: the default."""
    _Chosen.products = {
        getattr(torch, dtype): tuple(tuple(PRODUCTS[name] for name in by_size) for by_size in by_rows)
        for dtype, by_rows in (table.grid() if table else {}).items()
    }


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x·Wᵀ + b for x [..., inner], W [cols, inner] and b [cols]: [..., cols].

    A matrix that is a view with gaps uses torch's default: oneDNN would copy it, a hundred times slower.
    """
    elements = weight.numel()
    if elements < SMALLEST_ELEMENTS or not weight.is_contiguous():
        return F.linear(x, weight, bias)
    products = _Chosen.products.get(weight.dtype)
    rows = x.numel() // weight.shape[1]
    if products is None or not rows:
        return F.linear(x, weight, bias)
    return products[row_class(rows)][size_class(elements)](x, weight, bias)
