"""The arithmetic of the operations in `token_ops.py`."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from engine.models.spec import ModelSpec
from engine.models.token_ops import Greedy
from engine.models.torch_ops import Caches, Weights


def _greedy(op: Greedy, model: ModelSpec, weights: Weights, caches: Caches, logits_BV: Tensor) -> Tensor:
    return logits_BV.argmax(dim=-1)


FUNCTIONS: dict[type, Callable[..., Tensor]] = {Greedy: _greedy}
