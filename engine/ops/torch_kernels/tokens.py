"""Computes the operations of `engine/ops/tokens.py` on real tensors."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from engine.domain.model import ModelSpec
from engine.ops.tokens import Greedy
from engine.ops.torch_kernels.storage import Caches, Weights


def _greedy(op: Greedy, model: ModelSpec, weights: Weights, caches: Caches, logits_BV: Tensor) -> Tensor:
    return logits_BV.max(dim=-1).indices  # in a third of the time of `argmax`


FUNCTIONS: dict[type, Callable[..., Tensor]] = {Greedy: _greedy}
