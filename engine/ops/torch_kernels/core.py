"""Computes the operations of `engine/ops/core.py` on real tensors: one function per operation.

Shapes are suffixes: B batch, T new rows, S all rows, D hidden, H query heads, K kv heads, E head dim,
F columns, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.domain.model import ModelSpec
from engine.domain.rope import Rope
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
from engine.ops.head_columns import HeadColumns
from engine.ops.layout import kv_heads
from engine.ops.ragged import Ragged
from engine.ops.torch_kernels.attention import (
    attend,
    capped,
    merge,
    projected,
    rms_norm,
)
from engine.ops.torch_kernels.linear import linear, whole_parts
from engine.ops.torch_kernels.mixture import mixture
from engine.ops.torch_kernels.rope import rotate
from engine.ops.torch_kernels.row_layer import (
    RowAttention,
    RowFeedForward,
    row_attention,
    row_feed_forward,
)
from engine.ops.torch_kernels.storage import Caches, Weights, cache_of

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "relu": F.relu,
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
}


def run_embed(op: Embed, model: ModelSpec, weights: Weights, caches: Caches, tokens_BT: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    x_BTD = torch.embedding(w["tokens"], tokens_BT)
    if model.embedding_scale is not None:  # rounded to the model's dtype, as the library does
        x_BTD = x_BTD * torch.tensor(model.embedding_scale).to(x_BTD.dtype)
    if "positions" in w:
        spans = [(op.start, tokens_BT.shape[1])]
        if op.ragged is not None:
            spans = [(start, rows) for _, start, rows in op.ragged.pieces]
        table, offset = w["positions"], model.position_offset
        positions = [table[offset + start : offset + start + rows] for start, rows in spans]
        x_BTD = x_BTD + (positions[0] if len(positions) == 1 else torch.cat(positions))
    if "types" in w:
        x_BTD = x_BTD + w["types"][0]
    return norm(model, w, x_BTD) if model.embedding_norm else x_BTD


class AttentionPart(NamedTuple):
    """What attention of some heads needs besides its input and its KV cache.

    It has `heads` query heads, the first of which is `offset`th of its group, and `keys` KV heads from
    `first_key`. With `norms` its input is to be normalised. `row` computes all of it for one row.
    """

    w: Mapping[str, Tensor]
    bias: Tensor | None
    heads: int
    offset: int
    keys: int
    first_key: int
    norms: bool
    rope: Rope | None
    row: RowAttention | None


def _attention_part(op: Attention, model: ModelSpec, weights: Weights) -> AttentionPart:
    """Looked up once for the weights that a device holds: that takes as long as some of the arithmetic on one
    row.
    """
    key = Attention, op.layer, op.start, op.stop, op.bias, op.normed
    part: AttentionPart | None = weights.found.get(key)
    if part is None:
        w = weights.get(op.slices(model)[0])
        first, last = kv_heads(model, op.start, op.stop)
        norms, rope = model.norms_inputs and not op.normed, model.rope_of(op.layer)
        row = None
        if whole_parts() and model.has_llama_parts:
            row = row_attention(model, w, op.stop - op.start, last - first, norms, rope)
        part = weights.found[key] = AttentionPart(
            w,
            w.get("o.bias") if op.bias else None,
            op.stop - op.start,
            op.start - first * model.group_size,
            last - first,
            first,
            norms,
            rope,
            row,
        )
    return part


def run_attention(
    op: Attention,
    model: ModelSpec,
    weights: Weights,
    caches: Caches,
    x_BTD: Tensor,
    onto_D: Tensor | None = None,
) -> Tensor:
    """Compute the attention part of a layer. `onto_D` are numbers that the sum of a single row is added to,
    if the part has no bias.
    """
    part = _attention_part(op, model, weights)
    w = part.w
    if not part.heads:
        return only_bias(x_BTD, part.bias)
    if isinstance(op.cache, Ragged):
        return _ragged_attention(op, op.cache, part, model, caches, x_BTD, onto_D)
    cache = cache_of(op.cache, op.layer, part.first_key, caches)
    seen = cache.rows if cache else 0
    if part.row and cache and is_row(model, x_BTD):
        first = model.first_key(op.layer, seen)
        return part.row(x_BTD.contiguous(), cache, first, part.bias if onto_D is None else onto_D)
    h_BTD = norm(model, w, x_BTD) if part.norms else x_BTD
    q_BHTE, k_BKSE, v_BKSE = projected(model, part.rope, h_BTD, w, part.heads, part.keys, seen)
    if cache:
        k_BKSE, v_BKSE = cache.append(k_BKSE, v_BKSE)
    context_BHTE = attend(model, op.layer, q_BHTE, k_BKSE, v_BKSE, part.offset, seen, w.get("sinks"))
    return linear(merge(context_BHTE), w["o.weight"], part.bias if onto_D is None else onto_D)


def _ragged_attention(
    op: Attention,
    ragged: Ragged,
    part: AttentionPart,
    model: ModelSpec,
    caches: Caches,
    x_1TD: Tensor,
    onto_D: Tensor | None,
) -> Tensor:
    """`run_attention` on rows of several sequences: one product for all of them, then each on its own."""
    h_1TD = norm(model, part.w, x_1TD) if part.norms else x_1TD
    q_1HTE, k_1KTE, v_1KTE = projected(model, None, h_1TD, part.w, part.heads, part.keys, 0)
    contexts, at = [], 0
    for name, start, rows in ragged.pieces:
        q, k, v = (x.narrow(2, at, rows) for x in (q_1HTE, k_1KTE, v_1KTE))
        if part.rope is not None:
            q, k = (rotate(part.rope, x, start) for x in (q, k))
        cache = cache_of(name, op.layer, part.first_key, caches)
        assert cache is not None, "a sequence of a ragged batch has a KV cache"
        k, v = cache.append(k, v)
        contexts.append(attend(model, op.layer, q, k, v, part.offset, start, part.w.get("sinks")))
        at += rows
    context_1TC = merge(torch.cat(contexts, dim=2))
    return linear(context_1TC, part.w["o.weight"], part.bias if onto_D is None else onto_D)


class FeedForwardPart(NamedTuple):
    """What the feed-forward part of some columns needs besides its input."""

    w: Mapping[str, Tensor]
    bias: Tensor | None
    norms: bool
    row: RowFeedForward | None


def _feed_forward_part(op: FeedForward, model: ModelSpec, weights: Weights) -> FeedForwardPart:
    """Looked up once, as `_attention_part`."""
    key = FeedForward, op.layer, op.start, op.stop, op.bias, op.normed
    part: FeedForwardPart | None = weights.found.get(key)
    if part is None:
        w = weights.get(op.slices(model)[0])
        norms = model.norms_inputs and not op.normed
        in_one_call = whole_parts() and model.has_llama_parts and not model.num_experts
        row = row_feed_forward(model, w, norms) if in_one_call else None
        part = weights.found[key] = FeedForwardPart(w, w.get("down.bias") if op.bias else None, norms, row)
    return part


def run_feed_forward(
    op: FeedForward,
    model: ModelSpec,
    weights: Weights,
    caches: Caches,
    x_BTD: Tensor,
    onto_D: Tensor | None = None,
) -> Tensor:
    """`onto_D` as in `run_attention`."""
    w, bias, norms, row = _feed_forward_part(op, model, weights)
    if op.start == op.stop:
        return only_bias(x_BTD, bias)
    if row and is_row(model, x_BTD):
        return row(x_BTD.contiguous(), bias if onto_D is None else onto_D)
    h_BTD = norm(model, w, x_BTD) if norms else x_BTD
    if model.num_experts:
        return mixture(model, w, ACTIVATIONS[model.activation], h_BTD)
    return linear(expand(model, w, h_BTD), w["down.weight"], bias if onto_D is None else onto_D)


def expand(model: ModelSpec, w: Mapping[str, Tensor], h_BTD: Tensor) -> Tensor:
    """The first matrix or matrices of the feed-forward part and its activation: [B, T, F]."""
    activation = ACTIVATIONS[model.activation]
    up_BTF = linear(h_BTD, w["up.weight"], w.get("up.bias"))
    if not model.gated_ffn:
        return activation(up_BTF)
    return activation(linear(h_BTD, w["gate.weight"], w.get("gate.bias"))).mul_(up_BTF)


def _norm(op: Norm, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor) -> Tensor:
    pieces = op.slices(model)
    return norm(model, weights.get(pieces[0]), x_BTD) if pieces else x_BTD


def run_residual(
    op: Residual, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor, sum_BTD: Tensor
) -> Tensor:
    if model.residual_multiplier != 1:
        sum_BTD = sum_BTD * model.residual_multiplier
    if not model.norms_sums:
        return x_BTD + sum_BTD
    w = weights.get(op.slices(model)[0])
    if model.sublayer_norm:
        sum_BTD = norm(model, w, sum_BTD, "post_norm")
    total_BTD = x_BTD + sum_BTD
    return norm(model, w, total_BTD) if model.norm_position == "post" else total_BTD


def run_block(op: Block, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor) -> Tensor:
    attention, residual, ffn, residual_ffn = op.parts(model)
    if _adds_in_products(model, x_BTD):
        y_BTD = run_attention(attention, model, weights, caches, x_BTD, x_BTD.view(-1))
        return run_feed_forward(ffn, model, weights, caches, y_BTD, y_BTD.view(-1))
    y_BTD = run_attention(attention, model, weights, caches, x_BTD)
    y_BTD = run_residual(residual, model, weights, caches, x_BTD, y_BTD)
    return run_residual(
        residual_ffn, model, weights, caches, y_BTD, run_feed_forward(ffn, model, weights, caches, y_BTD)
    )


def _adds_in_products(model: ModelSpec, x_BTD: Tensor) -> bool:
    """Whether the products at the end of both parts may add the row that came in: one, in float32."""
    return is_row(model, x_BTD) and model.adds_bare_sums


def is_row(model: ModelSpec, x_BTD: Tensor) -> bool:
    """Whether it is a single row in float32."""
    return x_BTD.numel() == model.hidden_size and x_BTD.dtype is torch.float32


def _add(op: Add, model: ModelSpec, weights: Weights, caches: Caches, x: Tensor, y: Tensor) -> Tensor:
    return x + y


def run_head(
    op: Head | HeadColumns, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor
) -> Tensor:
    w = weights.get(op.slices(model)[0])
    last_BD = x_BTD[:, -1]
    if model.norms_end:
        last_BD = norm(model, w, last_BD)
    logits_BV = linear(last_BD, w["weight"])
    if model.logits_scaling != 1:
        logits_BV = logits_BV / model.logits_scaling
    return capped(logits_BV, model.logit_softcap)


def _final_hidden(
    op: FinalHidden, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor
) -> Tensor:
    if not model.norms_end:
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
    Head: run_head,
    FinalHidden: _final_hidden,
}


def norm(model: ModelSpec, w: Mapping[str, Tensor], x: Tensor, key: str = "norm") -> Tensor:
    if model.norm == "rmsnorm":
        return rms_norm(model, x, w[f"{key}.weight"])
    return F.layer_norm(x, (model.hidden_size,), w[f"{key}.weight"], w[f"{key}.bias"], model.norm_eps)


def only_bias(x_BTD: Tensor, bias_D: Tensor | None) -> Tensor:
    """The partial sum of no heads or columns at all."""
    return torch.zeros_like(x_BTD) if bias_D is None else bias_D.expand_as(x_BTD).clone()
