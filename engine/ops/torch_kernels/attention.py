"""Multi-head attention on real tensors: projections to heads, masks, softmax(q·kᵀ/√E)·v.

Shapes are suffixes: B batch, T new rows, S all rows, D hidden, H query heads, K kv heads, E head dim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.domain.model import ModelSpec
from engine.domain.rope import Rope
from engine.ops.torch_kernels.linear import linear
from engine.ops.torch_kernels.rope import rotate


def heads_of(h_BTD: Tensor, w: Mapping[str, Tensor], key: str, heads: int) -> Tensor:
    """Project to `heads` heads: [B, heads, T, E]."""
    return _by_head(linear(h_BTD, w[f"{key}.weight"], w.get(f"{key}.bias")), heads)


def _by_head(wide: Tensor, heads: int) -> Tensor:
    batch, rows, _ = wide.shape
    if rows == 1:  # the same, in one call
        return wide.view(batch, heads, 1, -1)
    return wide.view(batch, rows, heads, -1).transpose(1, 2)


def _normed_heads(model: ModelSpec, h_BTD: Tensor, w: Mapping[str, Tensor], key: str, heads: int) -> Tensor:
    """Queries ("q") or keys ("k"): projected, and each head normalised, or all of a row at once."""
    if model.qk_norm_over_heads:
        wide = linear(h_BTD, w[f"{key}.weight"], w.get(f"{key}.bias"))
        return _by_head(rms_norm(model, wide, w[f"{key}_norm.weight"]), heads)
    x_BHTE = heads_of(h_BTD, w, key, heads)
    return rms_norm(model, x_BHTE, w[f"{key}_norm.weight"]) if model.qk_norm else x_BHTE


def positioned_heads(
    model: ModelSpec, layer: int, h_BTD: Tensor, w: Mapping[str, Tensor], key: str, heads: int, start: int
) -> Tensor:
    """Queries ("q") or keys ("k") as scores need them: projected, normalised and rotated where the
    layer does so. The first of the T rows is position `start`.
    """
    x_BHTE = _normed_heads(model, h_BTD, w, key, heads)
    rope = model.rope_of(layer)
    return rotate(rope, x_BHTE, start) if rope else x_BHTE


def projected(
    model: ModelSpec,
    rope: Rope | None,
    h_BTD: Tensor,
    w: Mapping[str, Tensor],
    heads: int,
    keys: int,
    start: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries of `heads` heads, K and V of `keys` KV heads, as `positioned_heads` and `heads_of` give them on
    a layer with `rope`; queries and keys are rotated together.
    """
    q_BHTE, k_BKTE = (
        _normed_heads(model, h_BTD, w, key, count) for key, count in (("q", heads), ("k", keys))
    )
    v_BKTE = heads_of(h_BTD, w, "v", keys)
    if rope is None:
        return q_BHTE, k_BKTE, v_BKTE
    q_BHTE, k_BKTE = rotate(rope, torch.cat((q_BHTE, k_BKTE), dim=1), start).split_with_sizes(
        (heads, keys), 1
    )
    return q_BHTE, k_BKTE, v_BKTE


def rms_norm(model: ModelSpec, x: Tensor, weight: Tensor) -> Tensor:
    """The RMS norm of the last dimension, by `weight` or by 1 + `weight`."""
    if not model.norm_adds_one:
        if x.dtype is torch.float32 and x.numel() == weight.numel():
            return _row_norm(x, weight, model.norm_eps)
        return F.rms_norm(x, weight.shape, weight, model.norm_eps)
    return F.rms_norm(x.float(), weight.shape, 1 + weight.float(), model.norm_eps).to(x.dtype)


def _row_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The RMS norm of a single row, in a third of the time of torch's, which is made of eight operations."""
    norm = torch.linalg.vector_norm(x).item()
    return torch.addcmul(_nothing(), x, weight, value=1 / math.sqrt(norm * norm / weight.numel() + eps))


@lru_cache(maxsize=1)
def _nothing() -> Tensor:
    return torch.zeros(1)


def merge(context_BHTE: Tensor) -> Tensor:
    if context_BHTE.shape[2] == 1:
        return context_BHTE.reshape(context_BHTE.shape[0], 1, -1)
    return context_BHTE.transpose(1, 2).flatten(2)


def attend(
    model: ModelSpec,
    layer: int,
    q_BHTE: Tensor,
    k_BKSE: Tensor,
    v_BKSE: Tensor,
    offset: int,
    seen: int,
    sinks_H: Tensor | None,
) -> Tensor:
    """softmax(q·k/√E)·v. The first query head is `offset`th of its KV group; row 0 follows `seen` rows."""
    heads, keys, group = q_BHTE.shape[1], k_BKSE.shape[1], model.group_size
    aligned = offset == 0 and heads == keys * group
    if not aligned:  # an uneven cut through a group: name each query head's KV head
        of_head = (torch.arange(heads) + offset) // group
        k_BKSE, v_BKSE = k_BKSE.index_select(1, of_head), v_BKSE.index_select(1, of_head)
    return masked_attention(model, layer, q_BHTE, k_BKSE, v_BKSE, seen, aligned and group > 1, sinks_H)


def masked_attention(
    model: ModelSpec,
    layer: int,
    q_BHTE: Tensor,
    k_BKSE: Tensor,
    v_BKSE: Tensor,
    seen: int,
    grouped: bool,
    sinks_H: Tensor | None,
) -> Tensor:
    """softmax(q·k/√E)·v with the layer's mask; `grouped`: KV heads serve `group_size` queries each.

    Keys that a sliding window hides from every row are not read. `sinks_H` are those of the query heads.
    """
    first = model.first_key(layer, seen)
    if first:
        k_BKSE, v_BKSE, seen = k_BKSE[:, :, first:], v_BKSE[:, :, first:], seen - first
    rows, all_rows = q_BHTE.shape[2], k_BKSE.shape[2]
    window = model.window_of(layer)
    if window is not None and seen + rows <= window:  # the last row sees all keys before it
        window = None
    sees_all = not model.causal or (rows == 1 and seen + 1 == all_rows)
    triangle = not sees_all and seen == 0 and rows == all_rows and window is None
    needs_mask = not sees_all and not (triangle and model.fuses_attention)
    mask = mask_of(seen, rows, all_rows, window) if needs_mask else None
    if not model.fuses_attention:
        return _attention_in_steps(model, q_BHTE, k_BKSE, v_BKSE, mask, sinks_H)
    return F.scaled_dot_product_attention(
        q_BHTE,
        k_BKSE,
        v_BKSE,
        attn_mask=mask,
        is_causal=triangle,
        scale=model.score_scale,
        enable_gqa=grouped,
    )


def _attention_in_steps(
    model: ModelSpec,
    q_BHTE: Tensor,
    k_BKSE: Tensor,
    v_BKSE: Tensor,
    mask_TS: Tensor | None,
    sinks_H: Tensor | None,
) -> Tensor:
    """Attention with capped scores or sinks, which torch's fused kernel does not have; softmax in float32."""
    batch, heads, rows, wide = q_BHTE.shape
    grouped = q_BHTE.reshape(batch, k_BKSE.shape[1], -1, wide)
    s_BHTS = scaled(model, grouped @ k_BKSE.transpose(-1, -2)).view(batch, heads, rows, -1)
    if mask_TS is not None:
        s_BHTS = s_BHTS.masked_fill(~mask_TS, float("-inf"))
    a_BHTS = softmax(s_BHTS, sinks_H).to(q_BHTE.dtype)
    context = a_BHTS.view(batch, k_BKSE.shape[1], -1, k_BKSE.shape[2]) @ v_BKSE
    return context.view(batch, heads, rows, -1)


def softmax(s_BHTS: Tensor, sinks_H: Tensor | None) -> Tensor:
    """The weights of the keys, in float32. Where heads have sinks they are beside the scores, and take their
    share: a row's weights sum to less than 1 (Xiao et al., arXiv 2309.17453).
    """
    if sinks_H is None:
        return torch.softmax(s_BHTS, dim=-1, dtype=torch.float32)
    sinks_BHT1 = sinks_H.view(1, -1, 1, 1).expand(*s_BHTS.shape[:3], 1)
    return torch.softmax(torch.cat((s_BHTS, sinks_BHT1), dim=-1), dim=-1, dtype=torch.float32)[..., :-1]


def scaled(model: ModelSpec, products: Tensor) -> Tensor:
    """Products q·k as the softmax needs them: scaled, then capped where the family does so."""
    return capped(products * model.score_scale, model.score_softcap)


def capped(x: Tensor, cap: float | None) -> Tensor:
    """c·tanh(x/c), which stays within ±c; `x` itself without a cap."""
    return x if cap is None else torch.tanh(x / cap) * cap


def mask_of(start: int, rows: int, keys: int, window: int | None = None) -> Tensor:
    """[rows, keys], true where row `start` + r may see key j: start + r - `window` < j <= start + r."""
    mask = torch.ones(rows, keys, dtype=torch.bool).tril(start)
    return mask if window is None else mask.triu(start - window + 1)
