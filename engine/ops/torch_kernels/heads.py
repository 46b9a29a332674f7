"""Computes the operations of `engine/ops/heads.py` on real tensors.

Shape suffixes are those of `core.py`; h are some of the H query heads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.ops.heads import (
    Attend,
    Features,
    Heads,
    Importance,
    Join,
    Mix,
    Project,
    Recall,
    Regroup,
    Statistics,
    Weigh,
)
from engine.ops.layout import kv_heads
from engine.ops.torch_kernels.attention import (
    heads_of,
    mask_of,
    masked_attention,
    merge,
    positioned_heads,
    scaled,
)
from engine.ops.torch_kernels.core import norm, only_bias
from engine.ops.torch_kernels.linear import linear
from engine.ops.torch_kernels.storage import Caches, KVCache, Weights


class HeadCache(KVCache):
    """Keys and values of any set of KV heads, in the order of `stored`."""

    __slots__ = ("stored",)

    def __init__(self, stored: Heads):
        super().__init__(stored[0] if stored else 0)
        self.stored = stored


def _project(op: Project, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor) -> Tensor:
    heads = op.stop - op.start
    if not heads:
        return x_BTD.new_empty(x_BTD.shape[0], 0, x_BTD.shape[1], model.head_dim)
    w = weights.get(op.slices(model)[0])
    first, last = kv_heads(model, op.start, op.stop)
    h_BTD = norm(model, w, x_BTD) if model.norms_inputs and not op.normed else x_BTD
    q_BHTE = positioned_heads(model, op.layer, h_BTD, w, "q", heads, op.first_row)
    k_BKTE = positioned_heads(model, op.layer, h_BTD, w, "k", last - first, op.first_row)
    v_BKTE = heads_of(h_BTD, w, "v", last - first)
    return torch.cat((q_BHTE, k_BKTE, v_BKTE), dim=1)


def _attend(
    op: Attend, model: ModelSpec, weights: Weights, caches: Caches, q_BhTE: Tensor, kv_BKSE: Tensor
) -> Tensor:
    k_BKSE, v_BKSE = kv_BKSE.chunk(2, dim=1)
    if op.cache:
        cache = caches.setdefault((op.cache, op.layer), HeadCache(op.stored))
        k_BKSE, v_BKSE = _stored(cache, op.stored, op.layer, op.cache).append(k_BKSE, v_BKSE)
    if not op.heads:
        return torch.empty_like(q_BhTE)
    seen, group = k_BKSE.shape[2] - q_BhTE.shape[2], model.group_size
    whole = op.heads == tuple(kv * group + i for kv in op.stored for i in range(group))
    if not whole:
        of_head = _places(op.stored, [head // group for head in op.heads])
        k_BKSE, v_BKSE = k_BKSE.index_select(1, of_head), v_BKSE.index_select(1, of_head)
    sinks_h = None
    if model.attention_sinks:
        (piece,) = op.slices(model)
        sinks_h = weights.get(piece)["sinks"][_places(range(piece.start, piece.stop), op.heads)]
    return masked_attention(model, op.layer, q_BhTE, k_BKSE, v_BKSE, seen, whole and group > 1, sinks_h)


def _join(op: Join, model: ModelSpec, weights: Weights, caches: Caches, context_BhTE: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    bias = w.get("o.bias") if op.bias else None
    batch, heads, rows, wide = context_BhTE.shape
    if not heads:
        return only_bias(context_BhTE.new_empty(batch, rows, model.hidden_size), bias)
    wanted = tuple(range(op.start, op.stop))
    if op.heads != wanted:
        every_BHTE = context_BhTE.new_zeros(batch, len(wanted), rows, wide)
        context_BhTE = every_BHTE.index_copy_(1, _places(wanted, op.heads), context_BhTE)
    return linear(merge(context_BhTE), w["o.weight"], bias)


def _recall(op: Recall, model: ModelSpec, weights: Weights, caches: Caches) -> Tensor:
    cache = _stored(caches[op.cache, op.layer], op.stored, op.layer, op.cache)
    at = _places(op.stored, op.wanted)
    pair = (cache.keys[:, :, : cache.rows], cache.values[:, :, : cache.rows])
    return torch.cat([rows_BKSE.index_select(1, at) for rows_BKSE in pair], dim=1)


def _regroup(op: Regroup, model: ModelSpec, weights: Weights, caches: Caches, kv_BkSE: Tensor) -> Tensor:
    old = caches.setdefault((op.cache, op.layer), HeadCache(op.before))
    _stored(old, op.before, op.layer, op.cache)
    new_k_BkSE, new_v_BkSE = kv_BkSE.chunk(2, dim=1)
    order = _places((*op.before, *op.arriving), op.after)
    if op.before:
        new_k_BkSE = torch.cat((old.keys[:, :, : old.rows], new_k_BkSE), dim=1)
        new_v_BkSE = torch.cat((old.values[:, :, : old.rows], new_v_BkSE), dim=1)
    cache = HeadCache(op.after)
    cache.append(new_k_BkSE.index_select(1, order), new_v_BkSE.index_select(1, order))
    caches[op.cache, op.layer] = cache
    return kv_BkSE.new_empty(0)


def _features(op: Features, model: ModelSpec, weights: Weights, caches: Caches, qkv_BPTE: Tensor) -> Tensor:
    heads, group = model.num_heads, model.group_size
    qk_BPTE = qkv_BPTE[:, : heads + model.num_kv_heads].float()
    q_BHTE, k_BKTE = qk_BPTE[:, :heads], qk_BPTE[:, heads:]
    mean_PE = qk_BPTE.mean(dim=(0, 2))
    q_HE, k_HE = mean_PE[:heads], mean_PE[heads:]
    if group > 1:
        k_HE, k_BKTE = (x.repeat_interleave(group, dim=-2 - pair) for pair, x in ((0, k_HE), (1, k_BKTE)))
    inter_BHT = (q_BHTE * k_BKTE) @ k_HE.new_ones(model.head_dim)  # twice as fast as a sum over few columns
    inter_BHP = F.interpolate(inter_BHT, size=op.points, mode="linear", align_corners=True)
    return torch.cat((q_HE, k_HE, inter_BHP[0] if len(inter_BHP) == 1 else inter_BHP.mean(dim=0)), dim=1)


def _importance(
    op: Importance, model: ModelSpec, weights: Weights, caches: Caches, q_BhTE: Tensor, k_BKSE: Tensor
) -> Tensor:
    statistics = [
        _statistics_of(_weights_of(model, op.layer, q_BhTE[:, [head]], k_BKSE[:, [key]]))
        for head, key in enumerate(_key_of(op.heads, op.stored, model))
    ]
    return torch.cat(statistics)


def _weigh(
    op: Weigh, model: ModelSpec, weights: Weights, caches: Caches, q_BhTE: Tensor, k_BKTE: Tensor
) -> Tensor:
    of_head = _key_of(op.heads, op.stored, model)
    return _weights_of(model, op.layer, q_BhTE, k_BKTE[:, of_head]).to(q_BhTE.dtype)


def _statistics(op: Statistics, model: ModelSpec, weights: Weights, caches: Caches, a_BhTT: Tensor) -> Tensor:
    return torch.cat([_statistics_of(a_BhTT[:, [head]].float()) for head in range(a_BhTT.shape[1])])


def _mix(
    op: Mix, model: ModelSpec, weights: Weights, caches: Caches, a_BhTT: Tensor, v_BKTE: Tensor
) -> Tensor:
    return a_BhTT @ v_BKTE[:, _key_of(op.heads, op.stored, model)]


def _weights_of(model: ModelSpec, layer: int, q_BhTE: Tensor, k_BhSE: Tensor) -> Tensor:
    """softmax(q·kᵀ/√E) in float32, with the layer's mask: [B, h, T, S]."""
    rows, seen = q_BhTE.shape[2], k_BhSE.shape[2]
    s_BhTS = scaled(model, q_BhTE @ k_BhSE.transpose(-1, -2))
    if model.causal:
        s_BhTS = s_BhTS.masked_fill(~mask_of(seen - rows, rows, seen, model.window_of(layer)), float("-inf"))
    return torch.softmax(s_BhTS, dim=-1, dtype=torch.float32)


def _statistics_of(a_BhTS: Tensor) -> Tensor:
    """Variance and entropy of every head: [h, 2]."""
    rows, seen = a_BhTS.shape[2:]
    variance = a_BhTS.square().sum(dim=(2, 3)).mean(dim=0) / (rows * seen) - seen**-2
    entropy = torch.special.entr(a_BhTS).sum(dim=(2, 3)).mean(dim=0) / rows
    return torch.stack((variance, entropy), dim=1)


def _key_of(heads: Heads, stored: Heads, model: ModelSpec) -> list[int]:
    """Place of each head's KV head in `stored`."""
    return [stored.index(head // model.group_size) for head in heads]


def _stored(cache: KVCache, stored: Heads, layer: int, name: str) -> KVCache:
    have = cache.stored if isinstance(cache, HeadCache) else f"heads from {cache.first}"
    if have != stored:
        raise PlanError(f"layer {layer}: the KV cache {name} has KV heads {have}, expected {stored}.")
    return cache


def _places(where: Sequence[int], heads: Sequence[int]) -> Tensor:
    """Index of each of `heads` in `where`."""
    place = {head: index for index, head in enumerate(where)}
    return torch.tensor([place[head] for head in heads], dtype=torch.long)


FUNCTIONS: dict[type, Callable[..., Tensor]] = {
    Project: _project,
    Attend: _attend,
    Join: _join,
    Recall: _recall,
    Regroup: _regroup,
    Features: _features,
    Importance: _importance,
    Weigh: _weigh,
    Statistics: _statistics,
    Mix: _mix,
}
