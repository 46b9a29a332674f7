"""Computes the operations of `engine/ops/tiles.py` on real tensors. Shape suffixes are those of `core.py`."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from engine.domain.model import ModelSpec
from engine.ops.tiles import Contract, Expand
from engine.ops.torch_kernels.core import expand, norm, only_bias
from engine.ops.torch_kernels.linear import linear
from engine.ops.torch_kernels.storage import Caches, Weights


def _expand(op: Expand, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor) -> Tensor:
    if op.start == op.stop:
        return x_BTD.new_empty(*x_BTD.shape[:2], 0)
    w = weights.get(op.slices(model)[0])
    h_BTD = norm(model, w, x_BTD) if model.norms_inputs and not op.normed else x_BTD
    return expand(model, w, h_BTD)


def _contract(op: Contract, model: ModelSpec, weights: Weights, caches: Caches, up_BTF: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    bias = w.get("down.bias") if op.bias else None
    if op.start == op.stop:
        return only_bias(up_BTF.new_empty(*up_BTF.shape[:2], model.hidden_size), bias)
    return linear(up_BTF, w["down.weight"], bias)


FUNCTIONS: dict[type, Callable[..., Tensor]] = {Expand: _expand, Contract: _contract}
