"""Products of one row with weights, by the compiled loops of `row_products.c`."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.ops.torch_kernels.packed import Packed
from engine.ops.torch_kernels.row_library import loaded

Format = torch.dtype | int
"""The numbers of a matrix; 8 and 4 are whole numbers of so many bits with scales."""

POINTER, SIZE = ctypes.c_void_p, ctypes.c_ssize_t
MATRIX = (POINTER, SIZE)
PLAIN = (*MATRIX, POINTER, POINTER, POINTER, SIZE, SIZE)
SCALED = (*MATRIX, *MATRIX, SIZE, SIZE, POINTER, POINTER, POINTER, POINTER, SIZE, SIZE)
SIGNATURES: Mapping[Format, tuple[str, tuple[type, ...]]] = {
    torch.float32: ("row_f32", PLAIN),
    torch.bfloat16: ("row_bf16", PLAIN),
    8: ("row_i8", SCALED),
    4: ("row_i4", SCALED),
}


@cache
def _functions() -> Mapping[Format, Callable[..., None]]:
    """The functions of the compiled library, which is loaded once; processes that are forked later have it,
    too.

    They are called without Python's lock, so that other threads go on.
    """
    library = loaded()
    found = {}
    for form, (name, signature) in SIGNATURES.items():
        found[form] = library[name]
        found[form].argtypes, found[form].restype = signature, None
    return found


def prepare() -> None:
    """Load the library; raises `OSError` where it is not."""
    _functions()


def read_four_rows_from(inputs: int | None) -> None:
    """Let products in this process read rows of a matrix with so many numbers or more four in turn, shorter
    ones one after the other; None: all of them one after the other.
    """
    set_from = loaded().read_four_rows_from
    set_from.argtypes, set_from.restype = (SIZE,), None
    set_from(sys.maxsize if inputs is None else inputs)


def row_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The product of one row `x` with a matrix. The rows of `weight` may lie apart, as those of a slice do,
    but not their numbers.
    """
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


def packed_product(x: Tensor, weight: Packed, bias: Tensor | None) -> Tensor:
    """Row by row of `x`, each of which reads all of `weight`: for few rows."""
    *place, odd = weight.place
    rows = x.reshape(-1, weight.inputs).float()
    if odd:
        rows = F.pad(rows, (1, 0))  # meets the number that is not the matrix's own
    rows = rows.contiguous()
    added = None if bias is None else bias.float().contiguous()
    y, arranged = rows.new_empty(len(rows), weight.outputs), rows.new_empty(weight.inputs + odd)
    ends = (None if added is None else added.data_ptr(), weight.outputs, weight.inputs + odd)
    product = _functions()[weight.numbers.bits]
    for row, into in zip(rows, y, strict=True):
        product(*place, row.data_ptr(), arranged.data_ptr(), into.data_ptr(), *ends)
    return y.view(*x.shape[:-1], weight.outputs).to(x.dtype)
