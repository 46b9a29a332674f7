"""Computes the operations of `engine/ops/positions.py` on real tensors.

They compute rows of a layer's output in any of the orders of matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from engine.domain.model import ModelSpec
from engine.ops.core import Block
from engine.ops.operation import piece_of
from engine.ops.positions import PositionBlock
from engine.ops.torch_kernels.attention import (
    attend,
    heads_of,
    mask_of,
    merge,
    positioned_heads,
    scaled,
    softmax,
)
from engine.ops.torch_kernels.core import norm, run_feed_forward, run_residual
from engine.ops.torch_kernels.linear import linear
from engine.ops.torch_kernels.storage import Caches, Weights, cache_of


def _position_block(
    op: PositionBlock, model: ModelSpec, weights: Weights, caches: Caches, x_BND: Tensor
) -> Tensor:
    cache = cache_of(op.cache, op.layer, 0, caches)
    op.check(model, x_BND.shape[1], cache.rows if cache else 0)
    x_BPD = x_BND[:, op.start : op.stop]
    if op.start == op.stop and not cache:
        return x_BPD
    w = weights.get(piece_of(op.layer, "attention"))
    heads, keys = model.num_heads, model.num_kv_heads
    h_BSD = x_BND[:, : op.keys_stop]
    if model.norms_inputs:
        h_BSD = norm(model, w, h_BSD)
    k_BKSE = v_BKSE = None
    if cache or op.score_order == "naive":
        k_BKSE = positioned_heads(model, op.layer, h_BSD, w, "k", keys, 0)
    if cache or op.value_order == "naive":
        v_BKSE = heads_of(h_BSD, w, "v", keys)
    if cache and k_BKSE is not None and v_BKSE is not None:
        cache.append(k_BKSE, v_BKSE)
    if op.start == op.stop:
        return x_BPD
    q_BHPE = positioned_heads(model, op.layer, h_BSD[:, op.start : op.stop], w, "q", heads, op.start)
    if k_BKSE is not None and v_BKSE is not None:
        context_BHPE = attend(model, op.layer, q_BHPE, k_BKSE, v_BKSE, 0, op.start, w.get("sinks"))
    else:
        first = model.first_key(op.layer, op.start)
        h_BSD = h_BSD[:, first:]
        k_BKSE, v_BKSE = (x if x is None else x[:, :, first:] for x in (k_BKSE, v_BKSE))
        s_BHPS = _scores(model, op, w, q_BHPE, k_BKSE, h_BSD)
        context_BHPE = _values(model, w, s_BHPS, v_BKSE, h_BSD)
    sum_BPD = linear(merge(context_BHPE), w["o.weight"], w.get("o.bias"))
    _, residual, ffn, residual_ffn = Block(op.layer).parts(model)
    y_BPD = run_residual(residual, model, weights, caches, x_BPD, sum_BPD)
    sum_BPD = run_feed_forward(ffn, model, weights, caches, y_BPD)
    return run_residual(residual_ffn, model, weights, caches, y_BPD, sum_BPD)


def _scores(
    model: ModelSpec,
    op: PositionBlock,
    w: Mapping[str, Tensor],
    q_BHPE: Tensor,
    k_BKSE: Tensor | None,
    h_BSD: Tensor,
) -> Tensor:
    """Softmax of q·k, with K formed or as ((q W_K) hᵀ): K's bias shifts whole rows, which softmax ignores."""
    batch, heads, rows, wide = q_BHPE.shape
    grouped = q_BHPE.reshape(batch, model.num_kv_heads, model.group_size * rows, wide)
    if k_BKSE is not None:
        s_BHPS = grouped @ k_BKSE.transpose(-1, -2)
    else:
        q_D = grouped @ w["k.weight"].view(model.num_kv_heads, wide, -1)
        s_BHPS = q_D.reshape(batch, heads * rows, -1) @ h_BSD.transpose(-1, -2)
    s_BHPS = scaled(model, s_BHPS.view(batch, heads, rows, -1))
    if model.causal:
        start = op.start - model.first_key(op.layer, op.start)
        mask_PS = mask_of(start, rows, h_BSD.shape[1], model.window_of(op.layer))
        s_BHPS = s_BHPS.masked_fill(~mask_PS, float("-inf"))
    return softmax(s_BHPS, w.get("sinks")).to(q_BHPE.dtype)


def _values(
    model: ModelSpec, w: Mapping[str, Tensor], s_BHPS: Tensor, v_BKSE: Tensor | None, h_BSD: Tensor
) -> Tensor:
    """Scores times V: with V formed, or as (S h) W_V; rows of S sum to 1, so the bias comes last, or to less
    beside sinks.
    """
    batch, heads, rows, seen = s_BHPS.shape
    keys, wide = model.num_kv_heads, model.head_dim
    if v_BKSE is not None:
        context = s_BHPS.reshape(batch, keys, -1, seen) @ v_BKSE
    else:
        mixed_D = (s_BHPS.reshape(batch, heads * rows, seen) @ h_BSD).view(batch, keys, -1, model.hidden_size)
        context = mixed_D @ w["v.weight"].view(keys, wide, -1).transpose(-1, -2)
        if "v.bias" in w:
            bias_K1E = w["v.bias"].view(keys, 1, wide)
            sums = s_BHPS.sum(-1).view(batch, keys, -1, 1) if model.attention_sinks else 1
            context = context + sums * bias_K1E
    return context.view(batch, heads, rows, wide)


FUNCTIONS: dict[type, Callable[..., Tensor]] = {PositionBlock: _position_block}
