"""Products of one row with weights, by the compiled loops of `row_products.c`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.ops.torch_kernels.row_library import kernels_folder, library_name

NAMES = {torch.float32: "row_f32", torch.bfloat16: "row_bf16"}


@cache
def _functions() -> Mapping[torch.dtype, Callable[..., None]]:
    """Of the library, which is loaded once; processes that are forked later have it, too.

    They are called without Python's lock, so that other threads go on.
    """
    library = ctypes.CDLL(str(kernels_folder() / library_name()))
    pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
    found = {dtype: library[name] for dtype, name in NAMES.items()}
    for function in found.values():
        function.argtypes = (pointer, size, pointer, pointer, pointer, size, size)
        function.restype = None
    return found


def prepare() -> None:
    """Load the library; raises `OSError` where it is not."""
    _functions()


def row_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`x` has one row. The rows of `weight` may lie apart, as those of a slice do, but not their numbers."""
    if weight.stride(1) != 1:
        return F.linear(x, weight, bias)
    dtype, (outputs, inputs) = weight.dtype, weight.shape
    row = x.contiguous()
    added = bias if bias is None else bias.contiguous()
    if dtype is not torch.float32:
        row, added = row.float(), added if added is None else added.float()
    y = row.new_empty((*x.shape[:-1], outputs))
    _functions()[dtype](
        weight.data_ptr(),
        weight.stride(0) * weight.element_size(),
        row.data_ptr(),
        None if added is None else added.data_ptr(),
        y.data_ptr(),
        outputs,
        inputs,
    )
    return y if dtype is torch.float32 else y.to(dtype)
