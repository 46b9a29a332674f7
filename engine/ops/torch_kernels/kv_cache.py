"""Computes the operations of `engine/ops/kv_cache.py` on real tensors.

They take rows out of a KV cache and put them back with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from engine.domain.model import ModelSpec
from engine.ops.kv_cache import DropRows, PutRows, TakeRows, check_rows
from engine.ops.torch_kernels.storage import Caches, KVCache, Weights


def _take_rows(op: TakeRows, model: ModelSpec, weights: Weights, caches: Caches) -> Tensor:
    cache = _checked(op, caches)
    keys_BKRE = cache.keys[:, :, op.start : op.stop]
    return torch.stack((keys_BKRE, cache.values[:, :, op.start : op.stop]))


def _put_rows(op: PutRows, model: ModelSpec, weights: Weights, caches: Caches, rows_2BKRE: Tensor) -> Tensor:
    cache = caches.setdefault((op.cache, op.layer), KVCache(0))
    cache.append(rows_2BKRE[0], rows_2BKRE[1])
    return rows_2BKRE.new_empty(0)


def _drop_rows(op: DropRows, model: ModelSpec, weights: Weights, caches: Caches) -> Tensor:
    cache = _checked(op, caches)
    cache.rows = op.start
    return cache.keys.new_empty(0)


def _checked(op: TakeRows | DropRows, caches: Caches) -> KVCache:
    cache = caches.get((op.cache, op.layer), KVCache(0))
    check_rows(op, cache.rows)
    return cache


FUNCTIONS: dict[type, Callable[..., Tensor]] = {
    TakeRows: _take_rows,
    PutRows: _put_rows,
    DropRows: _drop_rows,
}
