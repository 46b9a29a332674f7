"""Rotary positions on real tensors.

Shape suffixes are those of `attention.py`; R are the rotated numbers of a head.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from engine.domain.rope import LinearScaling, Llama3Scaling, LongRopeScaling, Rope, YarnScaling


def rotate(rope: Rope, x_BHTE: Tensor, start: int) -> Tensor:
    """Rotary positions `start`… on both halves of the first R numbers (the order of Hugging Face's Llama)."""
    cos, sin = rope_rows(rope, start, x_BHTE.shape[2], x_BHTE.dtype)
    if rope.rotary_dim == x_BHTE.shape[3]:
        return _turned(x_BHTE, cos, sin)
    x_BHTR, kept = x_BHTE[..., : rope.rotary_dim], x_BHTE[..., rope.rotary_dim :]
    return torch.cat((_turned(x_BHTR, cos, sin), kept), dim=-1)


def _turned(x_BHTR: Tensor, cos_TR: Tensor, sin_TR: Tensor) -> Tensor:
    swapped = torch.roll(x_BHTR, x_BHTR.shape[-1] // 2, -1)
    return (x_BHTR * cos_TR).addcmul_(swapped, sin_TR)


@lru_cache(maxsize=8)
def rope_rows(rope: Rope, start: int, rows: int, dtype: Any) -> tuple[Tensor, Tensor]:
    """`_rope_tables` of positions `start`…: all layers of a pass need the same."""
    length = max(256, 1 << (start + rows - 1).bit_length())
    cos, sin = _rope_tables(rope, length, dtype)
    return cos[start : start + rows], sin[start : start + rows]


@lru_cache(maxsize=32)
def _rope_tables(rope: Rope, length: int, dtype: Any) -> tuple[Tensor, Tensor]:
    """cos and sin of positions 0…length-1: [length, R]; sin of the first half is negative, as that half of a
    row gets the other one's negative.
    """
    angles = torch.outer(torch.arange(length, dtype=torch.float32), rope_frequencies(rope)).repeat(1, 2)
    scaling = rope.scaling
    factor = scaling.attention_factor if isinstance(scaling, YarnScaling | LongRopeScaling) else 1.0
    sin = angles.sin() * factor
    sin[:, : rope.rotary_dim // 2].neg_()
    return (angles.cos() * factor).to(dtype), sin.to(dtype)


def rope_frequencies(rope: Rope) -> Tensor:
    """Radians per position of each pair of a head's rotated numbers: [R/2], float32."""
    steps = torch.arange(0, rope.rotary_dim, 2, dtype=torch.float32) / rope.rotary_dim
    frequencies = 1 / rope.theta**steps
    match rope.scaling:
        case LinearScaling(factor=factor):
            return frequencies / factor
        case Llama3Scaling() as scaling:
            return _llama3(scaling, frequencies)
        case LongRopeScaling(factors=factors):
            return frequencies / torch.tensor(factors)
        case YarnScaling() as scaling:
            return _yarn(scaling, rope, frequencies)
        case None:
            return frequencies


def _llama3(scaling: Llama3Scaling, frequencies: Tensor) -> Tensor:
    turns = scaling.original_max_positions * frequencies / (2 * math.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - kept) * frequencies / scaling.factor + kept * frequencies


def _yarn(scaling: YarnScaling, rope: Rope, frequencies: Tensor) -> Tensor:
    def pair_that_turns(times: float) -> float:
        """The (fractional) number of the pair that turns so often within the original positions."""
        period = scaling.original_max_positions / (times * 2 * math.pi)
        return rope.rotary_dim * math.log(period) / (2 * math.log(rope.theta))

    first, last = pair_that_turns(scaling.beta_fast), pair_that_turns(scaling.beta_slow)
    if scaling.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, rope.rotary_dim - 1)
    width = last - first if first != last else 0.001
    pairs = torch.arange(rope.rotary_dim // 2, dtype=torch.float32)
    stretched = ((pairs - first) / width).clamp(0, 1)
    return stretched * frequencies / scaling.factor + (1 - stretched) * frequencies
