"""Restores matrices in MXFP4 (OCP Microscaling Formats 1.0), as gpt-oss is published: 32 numbers of 4 bits
share a power of two.
"""

from __future__ import annotations

import torch
from torch import Tensor

_POSITIVE = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
NUMBERS = torch.tensor([*_POSITIVE, *(-number for number in _POSITIVE)])
"""The numbers of E2M1 by their 4 bits."""
BIAS = 127


def restored(blocks: Tensor, scales: Tensor) -> Tensor:
    """The rows [R, 32 G] in float32 of blocks [R, G, 16], whose bytes have the first of two numbers in the
    lower half, and scales [R, G], which are biased exponents.
    """
    pairs = torch.stack((blocks & 15, blocks >> 4), dim=-1).int()
    numbers = NUMBERS[pairs].flatten(-2)
    return torch.ldexp(numbers, scales.int().sub(BIAS)[..., None]).flatten(-2)
