"""Multi-head attention on real tensors: projections to heads, rotary positions, masks, softmax(q·kᵀ/√E)·v.

Shapes are suffixes: B batch, T new rows, S all rows, D hidden, H query heads, K kv heads, E head dim.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import pi
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.domain.model import ModelSpec, RopeScaling


def heads_of(h_BTD: Tensor, w: Mapping[str, Tensor], key: str, heads: int) -> Tensor:
    """Project to `heads` heads: [B, heads, T, E]."""
    wide = F.linear(h_BTD, w[f"{key}.weight"], w.get(f"{key}.bias"))
    return wide.view(*h_BTD.shape[:2], heads, -1).transpose(1, 2)


def positioned_heads(
    model: ModelSpec, h_BTD: Tensor, w: Mapping[str, Tensor], key: str, heads: int, start: int
) -> Tensor:
    """Queries ("q") or keys ("k") as scores need them: projected, each head normalised and rotated where the
    family does so. The first of the T rows is position `start`.
    """
    x_BHTE = heads_of(h_BTD, w, key, heads)
    if model.qk_norm:
        x_BHTE = F.rms_norm(x_BHTE, (model.head_dim,), w[f"{key}_norm.weight"], model.norm_eps)
    return rotate(model, x_BHTE, start)


def merge(context_BHTE: Tensor) -> Tensor:
    return context_BHTE.transpose(1, 2).flatten(2)


def attend(
    model: ModelSpec, q_BHTE: Tensor, k_BKSE: Tensor, v_BKSE: Tensor, offset: int, seen: int
) -> Tensor:
    """softmax(q·k/√E)·v. The first query head is `offset`th of its KV group; row 0 follows `seen` rows."""
    heads, keys, group = q_BHTE.shape[1], k_BKSE.shape[1], model.group_size
    aligned = offset == 0 and heads == keys * group
    if not aligned:  # an uneven cut through a group: name each query head's KV head
        of_head = (torch.arange(heads) + offset) // group
        k_BKSE, v_BKSE = k_BKSE.index_select(1, of_head), v_BKSE.index_select(1, of_head)
    return masked_attention(model, q_BHTE, k_BKSE, v_BKSE, seen, aligned and group > 1)


def masked_attention(
    model: ModelSpec, q_BHTE: Tensor, k_BKSE: Tensor, v_BKSE: Tensor, seen: int, grouped: bool
) -> Tensor:
    """softmax(q·k/√E)·v with the model's mask; `grouped`: KV heads serve `group_size` queries each."""
    rows, all_rows = q_BHTE.shape[2], k_BKSE.shape[2]
    sees_all = not model.causal or (rows == 1 and seen + 1 == all_rows)
    triangle = not sees_all and seen == 0 and rows == all_rows
    mask = None if sees_all or triangle else mask_of(seen, rows, all_rows)
    return F.scaled_dot_product_attention(
        q_BHTE, k_BKSE, v_BKSE, attn_mask=mask, is_causal=triangle, enable_gqa=grouped
    )


def mask_of(start: int, rows: int, keys: int) -> Tensor:
    """[rows, keys], true where row `start` + r may see key j: j <= start + r."""
    return torch.ones(rows, keys, dtype=torch.bool).tril(start)


def rotate(model: ModelSpec, x_BHTE: Tensor, start: int) -> Tensor:
    """Rotary positions `start`… on both halves of every head (the order of Hugging Face's Llama)."""
    if model.positions != "rope":
        return x_BHTE
    rows, wide = x_BHTE.shape[2], x_BHTE.shape[3]
    length = max(256, 1 << (start + rows - 1).bit_length())
    cos, sin = _rope_table(wide, model.rope_theta, model.rope_scaling, length, x_BHTE.dtype)
    low, high = x_BHTE.chunk(2, dim=-1)
    return x_BHTE * cos[start : start + rows] + torch.cat((-high, low), dim=-1) * sin[start : start + rows]


@lru_cache(maxsize=32)
def _rope_table(
    wide: int, theta: float, scaling: RopeScaling | None, length: int, dtype: Any
) -> tuple[Tensor, Tensor]:
    """cos and sin of positions 0…length-1: [length, E]."""
    frequencies = rope_frequencies(wide, theta, scaling)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), frequencies).repeat(1, 2)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rope_frequencies(wide: int, theta: float, scaling: RopeScaling | None) -> Tensor:
    """Radians per position of each pair of a head's numbers: [E/2], float32."""
    frequencies = 1 / theta ** (torch.arange(0, wide, 2, dtype=torch.float32) / wide)
    if scaling is None:
        return frequencies
    turns = scaling.original_max_positions * frequencies / (2 * pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - kept) * frequencies / scaling.factor + kept * frequencies
