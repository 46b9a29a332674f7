"""Products of whole numbers, as microcontrollers compute: activations and weights of 8 bits, sums of 32.

What a product takes in is rounded first: every group of inputs of a row has its largest number over 127 as
scale, found when it is rounded, since Bochem et al. (DATE 2025) publish no scales. Within a group products
are added up as whole numbers, exactly; the groups' sums are scaled and added in float32. The result is
rounded again where the next product takes it in. Groups never lie in two heads or in two devices' columns, so
that partial sums of any cut are those of one device, but for the order in which floats are added.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from engine.ops.torch_kernels.packed import Packed
from engine.ops.torch_kernels.row_library import library, loaded

HIGHEST = 127
POINTER, SIZE = ctypes.c_void_p, ctypes.c_ssize_t


def int8_product(x: Tensor, weight: Packed, bias: Tensor | None) -> Tensor:
    """x·Wᵀ + b for x [..., inputs] in float32 and W [outputs, inputs] of 8 bits: [..., outputs]."""
    rows = x.reshape(-1, weight.inputs)
    group = weight.numbers.int8_group
    numbers, scales = rounded(rows, group)
    kernel = _compiled() if library() else None
    packed, weight_scales = weight.numbers.packed, weight.numbers.scales.float().contiguous()
    if kernel is None:
        y = int8_product_by_torch(numbers, scales, packed, weight_scales)
        y = y if bias is None else y.add_(bias)
    else:
        y = rows.new_empty(len(rows), weight.outputs)
        added = None if bias is None else bias.contiguous()
        kernel(
            packed.data_ptr(),
            packed.stride(0),
            weight_scales.data_ptr(),
            numbers.data_ptr(),
            scales.data_ptr(),
            None if added is None else added.data_ptr(),
            y.data_ptr(),
            len(rows),
            weight.outputs,
            weight.inputs,
            group,
        )
    return y.view(*x.shape[:-1], weight.outputs)


def rounded(rows: Tensor, group: int) -> tuple[Tensor, Tensor]:
    """`rows` [R, inputs] in float32 as whole numbers int8 [R, inputs] and scales float32 [R, groups]."""
    groups = rows.unflatten(-1, (-1, group))
    scales = groups.abs().amax(dim=-1) / HIGHEST
    steps = scales[..., None]
    numbers = torch.where(steps > 0, groups / steps, 0.0).round_().clamp_(-HIGHEST, HIGHEST)
    return numbers.to(torch.int8).flatten(1), scales.contiguous()


def int8_product_by_torch(numbers: Tensor, scales: Tensor, packed: Tensor, weight_scales: Tensor) -> Tensor:
    """The same without a compiled library. Floats hold a group's sum of whole numbers exactly, as it is less
    than 32·127² < 2²⁴.
    """
    y = scales.new_zeros(len(numbers), len(packed))
    groups = scales.shape[1]
    pieces = zip(numbers.tensor_split(groups, dim=1), packed.tensor_split(groups, dim=1), strict=True)
    for at, (taken, weights) in enumerate(pieces):
        y += (taken.float() @ weights.float().t()) * scales[:, at, None]
    return y.mul_(weight_scales.view(-1))


@cache
def _compiled() -> Callable[..., None]:
    product = loaded()["int8_product"]
    product.argtypes = (POINTER, SIZE, *(POINTER,) * 5, SIZE, SIZE, SIZE, SIZE)
    product.restype = None
    return product
