"""Computes the operations of `engine/ops/summa.py` on real tensors. K is a block of hidden units."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from engine.domain.model import ModelSpec
from engine.ops.summa import SummaActivate, SummaDown, SummaUp
from engine.ops.torch_kernels.core import ACTIVATIONS
from engine.ops.torch_kernels.linear import linear
from engine.ops.torch_kernels.storage import Caches, Weights


def _up(op: SummaUp, model: ModelSpec, weights: Weights, caches: Caches, x_BTK: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    keys = ("up", "gate") if model.gated_ffn else ("up",)
    return torch.cat([linear(x_BTK, w[f"{key}.weight"][:, op.first : op.last]) for key in keys], dim=-1)


def _activate(
    op: SummaActivate, model: ModelSpec, weights: Weights, caches: Caches, sums_BTF: Tensor
) -> Tensor:
    w, activation = weights.get(op.slices(model)[0]), ACTIVATIONS[model.activation]
    columns = op.stop - op.start
    up_BTF = sums_BTF[..., :columns]
    if "up.bias" in w:
        up_BTF = up_BTF + w["up.bias"]
    if not model.gated_ffn:
        return activation(up_BTF)
    gate_BTF = sums_BTF[..., columns:]
    if "gate.bias" in w:
        gate_BTF = gate_BTF + w["gate.bias"]
    return activation(gate_BTF) * up_BTF


def _down(op: SummaDown, model: ModelSpec, weights: Weights, caches: Caches, h_BTF: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    bias = w["down.bias"][op.first : op.last] if op.bias and "down.bias" in w else None
    return linear(h_BTF, w["down.weight"][op.first : op.last], bias)


FUNCTIONS: dict[type, Callable[..., Tensor]] = {
    SummaUp: _up,
    SummaActivate: _activate,
    SummaDown: _down,
}
