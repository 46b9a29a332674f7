"""Quantises weights to 8 or 4 bits and restores them: weight-only, symmetric, round to nearest.

8 bits: one scale per output channel, w ≈ s·q with q in -127…127. 4 bits: one scale per group of 128 inputs, q
in -7…7, two to a byte. Scales are float16, and all that is stored is counted in `sizes.quantised_bytes`. Only
the matrices of attention and feed-forward parts are quantised; norms, biases, embeddings and the head stay.
Hu et al., "AdaptLink" (AAAI 2025 workshop), compare with such models on one device, of a library unnamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.ops.sizes import GROUP_INPUTS, HIGHEST


@dataclass(eq=False)
class Quantised:
    """A matrix [outputs, inputs] as it is stored: `packed` int8 [outputs, inputs], or uint8 [outputs,
    inputs/2] with two 4-bit numbers each, the even one low; `scales` float16 [outputs, 1 or groups].
    """

    bits: int
    inputs: int
    packed: Tensor
    scales: Tensor

    def restored(self, dtype: torch.dtype) -> Tensor:
        """[outputs, inputs], as products need it."""
        if self.bits == 8:
            return self.packed.to(dtype).mul_(self.scales.to(dtype))
        low, high = self.packed & 15, self.packed >> 4
        numbers = torch.stack((low, high), dim=-1).flatten(1)[:, : self.inputs].to(dtype).sub_(8)
        scales = self.scales.to(dtype)
        whole = self.inputs // GROUP_INPUTS
        numbers[:, : whole * GROUP_INPUTS].unflatten(1, (whole, GROUP_INPUTS)).mul_(scales[:, :whole, None])
        numbers[:, whole * GROUP_INPUTS :].mul_(scales[:, whole:])
        return numbers


def quantise(weight_FD: Tensor, bits: int) -> Quantised:
    """`weight_FD` [outputs, inputs] in `bits` (8 or 4) bits."""
    outputs, inputs = weight_FD.shape
    group = inputs if bits == 8 else GROUP_INPUTS
    padding = -inputs % group
    groups = torch.nn.functional.pad(weight_FD.float(), (0, padding)).view(outputs, -1, group)
    scales = (groups.abs().amax(dim=-1) / HIGHEST[bits]).to(torch.float16)
    steps = scales.float()[:, :, None]
    quotients = torch.where(steps > 0, groups / steps, 0.0)
    numbers = quotients.round_().clamp_(-HIGHEST[bits], HIGHEST[bits]).flatten(1)[:, :inputs]
    if bits == 8:
        return Quantised(bits, inputs, numbers.to(torch.int8), scales)
    nibbles = torch.nn.functional.pad(numbers + 8, (0, inputs % 2)).to(torch.uint8)
    return Quantised(bits, inputs, nibbles[:, ::2] | nibbles[:, 1::2] << 4, scales)


class Restoring(Mapping[str, Tensor]):
    """The tensors of a quantised slice; each access restores a matrix anew."""

    def __init__(self, stored: Mapping[str, Tensor | Quantised], dtype: torch.dtype):
        self.stored = stored
        self.dtype = dtype

    def __getitem__(self, key: str) -> Tensor:
        found = self.stored[key]
        return found.restored(self.dtype) if isinstance(found, Quantised) else found

    def __contains__(self, key: object) -> bool:
        return key in self.stored

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)
