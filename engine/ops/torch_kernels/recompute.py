"""Computes the operations of `engine/ops/recompute.py` on real tensors.

Shape suffixes are those of `core.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from engine.domain.model import ModelSpec
from engine.ops.core import Embed
from engine.ops.layout import kv_heads
from engine.ops.recompute import AttentionAgain, EmbedAgain
from engine.ops.torch_kernels.attention import attend, heads_of, merge, positioned_heads
from engine.ops.torch_kernels.core import norm, only_bias, run_embed
from engine.ops.torch_kernels.linear import linear
from engine.ops.torch_kernels.storage import Caches, KVCache, Weights, cache_of


def _embed_again(
    op: EmbedAgain, model: ModelSpec, weights: Weights, caches: Caches, ids_BT: Tensor
) -> Tensor:
    seen = caches.setdefault((op.cache, op.layer), KVCache(0))
    ids_B1S1, _ = seen.append(ids_BT[:, None, :, None], ids_BT[:, None, :, None])
    old_BT = ids_B1S1[:, 0, : min(op.evicted, op.start), 0]
    pieces = [(0, old_BT), (op.start, ids_BT)]
    embedded = [run_embed(Embed(start), model, weights, caches, ids) for start, ids in pieces if ids.shape[1]]
    return torch.cat(embedded, dim=1)


def _attention_again(
    op: AttentionAgain, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor
) -> Tensor:
    w = weights.get(op.slices(model)[0])
    heads, old = op.stop - op.start, op.evicted
    if not heads:
        return only_bias(x_BTD, w.get("o.bias") if op.bias else None)
    first, last = kv_heads(model, op.start, op.stop)
    h_BTD = norm(model, w, x_BTD) if model.norms_inputs and not op.normed else x_BTD
    cache = cache_of(op.cache, op.layer, first, caches)
    assert cache is not None, "the operation names a cache"
    cache.evict(cache.rows - (op.position - old))
    parts = [(h_BTD[:, :old], 0), (h_BTD[:, old:], op.position)]

    def positioned(key: str, count: int) -> Tensor:
        pieces = [positioned_heads(model, op.layer, h, w, key, count, at) for h, at in parts if h.shape[1]]
        return torch.cat(pieces, dim=2)

    q_BHTE, k_BKTE = positioned("q", heads), positioned("k", last - first)
    v_BKTE = heads_of(h_BTD, w, "v", last - first)
    k_kept, v_kept = cache.append(k_BKTE[:, :, old:], v_BKTE[:, :, old:])
    offset = op.start - first * model.group_size
    k_BKSE = torch.cat((k_BKTE[:, :, :old], k_kept), dim=2)
    v_BKSE = torch.cat((v_BKTE[:, :, :old], v_kept), dim=2)
    sinks_H = w.get("sinks")
    contexts = [attend(model, op.layer, q_BHTE[:, :, old:], k_BKSE, v_BKSE, offset, op.position, sinks_H)]
    if old:
        q_old, k_old, v_old = (x[:, :, :old] for x in (q_BHTE, k_BKTE, v_BKTE))
        contexts.insert(0, attend(model, op.layer, q_old, k_old, v_old, offset, 0, sinks_H))
    joined = merge(torch.cat(contexts, dim=2))
    return linear(joined, w["o.weight"], w.get("o.bias") if op.bias else None)


FUNCTIONS: dict[type, Callable[..., Tensor]] = {EmbedAgain: _embed_again, AttentionAgain: _attention_again}
