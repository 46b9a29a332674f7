"""Quantises weights to 8 or 4 bits: weight-only, symmetric, round to nearest.

8 bits: one scale per output channel, w ≈ s·q with q in -127…127. 4 bits: one scale per group of 128 inputs, q
in -7…7, two to a byte. Scales are float16, and all that is stored is counted in `sizes.quantised_bytes`.
Hu et al., "AdaptLink" (AAAI 2025 workshop), compare with such models on one device, of a library unnamed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.ops.sizes import GROUP_INPUTS, HIGHEST
from engine.ops.torch_kernels.packed import Numbers, Packed

BLOCK_NUMBERS = 1 << 18
"""Numbers that are quantised at once: of many more, nothing is left in the caches from one step to the next,
which takes up to six times as long.
"""


def quantise(weight_FD: Tensor, bits: int, dtype: torch.dtype, int8_group: int = 0) -> Packed:
    """`weight_FD` [outputs, inputs] in `bits` (8 or 4) bits; restored, it is of `dtype`."""
    inputs = weight_FD.shape[1]
    rows = max(1, BLOCK_NUMBERS // max(1, inputs))
    blocks = [_quantised(block, bits) for block in weight_FD.split(rows)]
    numbers, scales = (torch.cat(parts) for parts in zip(*blocks, strict=True))
    return Packed(Numbers(bits, numbers, scales, int8_group=int8_group), inputs, dtype)


def _quantised(weight_FD: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """The numbers of some rows, those of 4 bits two to a byte, and their scales."""
    outputs, inputs = weight_FD.shape
    group = max(1, inputs) if bits == 8 else GROUP_INPUTS
    padding = -inputs % group
    groups = torch.nn.functional.pad(weight_FD.float(), (0, padding)).view(
        outputs, -(-inputs // group), group
    )
    scales = (groups.abs().amax(dim=-1) / HIGHEST[bits]).to(torch.float16)
    steps = scales.float()[:, :, None]
    quotients = torch.where(steps > 0, groups / steps, 0.0)
    numbers = quotients.round_().clamp_(-HIGHEST[bits], HIGHEST[bits]).flatten(1)[:, :inputs].to(torch.int8)
    if bits == 4:
        halves = torch.nn.functional.pad(numbers, (0, inputs % 2)).view(torch.uint8)
        numbers = halves[:, ::2] & 15 | halves[:, 1::2] << 4
    return numbers, scales
