"""The arithmetic of the operations in `ops.py`, on real tensors: one function per operation.

Shapes are suffixes: B batch, T new rows, S all rows, D hidden, H query heads, K kv heads, E head dim,
F columns, V vocabulary, N rows of a whole prompt, P rows of a position shard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import pi
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec, RopeScaling
from engine.domain.plan import Slice
from engine.ops.core import (
    Add,
    Attention,
    Block,
    Embed,
    FeedForward,
    FinalHidden,
    Head,
    Norm,
    Residual,
)
from engine.ops.layout import kv_heads

FIRST_ROWS = 64

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "relu": F.relu,
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
}


class Weights(Protocol):
    """Where an operation finds its tensors: those of a slice, under their keys in `layout.py`."""

    def get(self, piece: Slice) -> Mapping[str, Tensor]: ...


class KVCache:
    """Keys and values of one layer and sequence batch on one device: [B, K, rows, E], growing in place.

    `first` is its first KV head: an operation on other heads raises `PlanError`.
    """

    __slots__ = ("first", "keys", "rows", "values")

    def __init__(self, first: int):
        self.first = first
        self.rows = 0
        self.keys = self.values = torch.empty(0)

    def append(self, keys_BKTE: Tensor, values_BKTE: Tensor) -> tuple[Tensor, Tensor]:
        """Add T rows; views of all rows so far."""
        start, stop = self.rows, self.rows + keys_BKTE.shape[2]
        if self.keys.ndim != 4 or stop > self.keys.shape[2]:
            self.keys, self.values = self._grown(self.keys, keys_BKTE), self._grown(self.values, values_BKTE)
        self.keys[:, :, start:stop] = keys_BKTE
        self.values[:, :, start:stop] = values_BKTE
        self.rows = stop
        return self.keys[:, :, :stop], self.values[:, :, :stop]

    def forget(self, rows: int) -> None:
        """The oldest `rows` rows leave."""
        if rows:
            self.keys = self.keys[:, :, rows : self.rows].clone()
            self.values = self.values[:, :, rows : self.rows].clone()
            self.rows -= rows

    def precede(self, keys_BKTE: Tensor, values_BKTE: Tensor) -> None:
        """T older rows come before those that are there."""
        self.keys = torch.cat((keys_BKTE, self.keys[:, :, : self.rows]), dim=2)
        self.values = torch.cat((values_BKTE, self.values[:, :, : self.rows]), dim=2)
        self.rows += keys_BKTE.shape[2]

    def _grown(self, old: Tensor, new: Tensor) -> Tensor:
        batch, heads, rows, wide = new.shape
        grown = new.new_empty(batch, heads, max(FIRST_ROWS, 2 * (self.rows + rows)), wide)
        if self.rows:
            grown[:, :, : self.rows] = old[:, :, : self.rows]
        return grown


Caches = dict[tuple[str, int], KVCache]


def run_embed(op: Embed, model: ModelSpec, weights: Weights, caches: Caches, tokens_BT: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    x_BTD = F.embedding(tokens_BT, w["tokens"])
    if "positions" in w:
        first = model.position_offset + op.start
        x_BTD = x_BTD + w["positions"][first : first + tokens_BT.shape[1]]
    if "types" in w:
        x_BTD = x_BTD + w["types"][0]
    return norm(model, w, x_BTD) if model.embedding_norm else x_BTD


def run_attention(op: Attention, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    heads = op.stop - op.start
    if not heads:
        return only_bias(x_BTD, w.get("o.bias") if op.bias else None)
    first, last = kv_heads(model, op.start, op.stop)
    h_BTD = norm(model, w, x_BTD) if model.norm_position == "pre" and not op.normed else x_BTD
    cache = cache_of(op.cache, op.layer, first, caches)
    seen = cache.rows if cache else 0
    q_BHTE = positioned_heads(model, h_BTD, w, "q", heads, seen)
    k_BKSE = positioned_heads(model, h_BTD, w, "k", last - first, seen)
    v_BKSE = heads_of(h_BTD, w, "v", last - first)
    if cache:
        k_BKSE, v_BKSE = cache.append(k_BKSE, v_BKSE)
    context_BHTE = attend(model, q_BHTE, k_BKSE, v_BKSE, op.start - first * model.group_size, seen)
    return F.linear(merge(context_BHTE), w["o.weight"], w.get("o.bias") if op.bias else None)


def run_feed_forward(
    op: FeedForward, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor
) -> Tensor:
    w = weights.get(op.slices(model)[0])
    bias = w.get("down.bias") if op.bias else None
    if op.start == op.stop:
        return only_bias(x_BTD, bias)
    h_BTD = norm(model, w, x_BTD) if model.norm_position == "pre" and not op.normed else x_BTD
    return F.linear(expand(model, w, h_BTD), w["down.weight"], bias)


def expand(model: ModelSpec, w: Mapping[str, Tensor], h_BTD: Tensor) -> Tensor:
    """The first matrix or matrices of the feed-forward part and its activation: [B, T, F]."""
    activation = ACTIVATIONS[model.activation]
    up_BTF = F.linear(h_BTD, w["up.weight"], w.get("up.bias"))
    if not model.gated_ffn:
        return activation(up_BTF)
    return activation(F.linear(h_BTD, w["gate.weight"], w.get("gate.bias"))) * up_BTF


def _norm(op: Norm, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor) -> Tensor:
    pieces = op.slices(model)
    return norm(model, weights.get(pieces[0]), x_BTD) if pieces else x_BTD


def run_residual(
    op: Residual, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor, sum_BTD: Tensor
) -> Tensor:
    total_BTD = x_BTD + sum_BTD
    if model.norm_position == "pre":
        return total_BTD
    return norm(model, weights.get(op.slices(model)[0]), total_BTD)


def run_block(op: Block, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor) -> Tensor:
    attention, residual, ffn, residual_ffn = op.parts(model)
    y_BTD = run_attention(attention, model, weights, caches, x_BTD)
    y_BTD = run_residual(residual, model, weights, caches, x_BTD, y_BTD)
    return run_residual(
        residual_ffn, model, weights, caches, y_BTD, run_feed_forward(ffn, model, weights, caches, y_BTD)
    )


def _add(op: Add, model: ModelSpec, weights: Weights, caches: Caches, x: Tensor, y: Tensor) -> Tensor:
    return x + y


def _head(op: Head, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    last_BD = x_BTD[:, -1]
    if model.norm_position == "pre":
        last_BD = norm(model, w, last_BD)
    return F.linear(last_BD, w["weight"])


def _final_hidden(
    op: FinalHidden, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor
) -> Tensor:
    if model.norm_position == "post":
        return x_BTD
    return norm(model, weights.get(op.slices(model)[0]), x_BTD)


FUNCTIONS: dict[type, Callable[..., Tensor]] = {
    Embed: run_embed,
    Attention: run_attention,
    FeedForward: run_feed_forward,
    Norm: _norm,
    Residual: run_residual,
    Block: run_block,
    Add: _add,
    Head: _head,
    FinalHidden: _final_hidden,
}


def norm(model: ModelSpec, w: Mapping[str, Tensor], x: Tensor) -> Tensor:
    if model.norm == "rmsnorm":
        return F.rms_norm(x, (model.hidden_size,), w["norm.weight"], model.norm_eps)
    return F.layer_norm(x, (model.hidden_size,), w["norm.weight"], w["norm.bias"], model.norm_eps)


def only_bias(x_BTD: Tensor, bias_D: Tensor | None) -> Tensor:
    """The partial sum of no heads or columns at all."""
    return torch.zeros_like(x_BTD) if bias_D is None else bias_D.expand_as(x_BTD).clone()


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


def cache_of(name: str | None, layer: int, first: int, caches: Caches) -> KVCache | None:
    """The KV cache of `name` and `layer`, made at its first use, for KV heads from `first`."""
    if not name:
        return None
    cache = caches.setdefault((name, layer), KVCache(first))
    if cache.first != first:
        raise PlanError(
            f"layer {layer}: the KV cache {name} has KV heads from {cache.first}, expected {first}: "
            "a device must keep its heads while a sequence is generated."
        )
    return cache


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
