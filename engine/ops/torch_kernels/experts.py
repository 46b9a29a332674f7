"""Computes the pieces of a mixture in `engine/ops/mixture.py` on real tensors.

Shape suffixes are those of `core.py`; N are all rows, n those of one expert, e some of the E experts.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from engine.domain.model import ModelSpec
from engine.ops.mixture import Experts, Route, SharedExpert
from engine.ops.torch_kernels.core import ACTIVATIONS, norm
from engine.ops.torch_kernels.mixture import expert, routed, shared_sum
from engine.ops.torch_kernels.storage import Caches, Weights


def _route(op: Route, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    h_BTD = norm(model, w, x_BTD) if model.norms_inputs else x_BTD
    weight_NK, expert_NK = routed(model, w, h_BTD.reshape(-1, model.hidden_size))
    weight_NE = weight_NK.new_zeros(weight_NK.shape[0], model.num_experts)
    weight_NE.scatter_(1, expert_NK, weight_NK)
    return torch.cat((h_BTD, weight_NE.view(*x_BTD.shape[:2], -1).to(x_BTD.dtype)), dim=-1)


def _experts(op: Experts, model: ModelSpec, weights: Weights, caches: Caches, x_BTX: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    h_ND, weight_Ne = x_BTX.reshape(-1, x_BTX.shape[-1]).split((model.hidden_size, op.stop - op.start), -1)
    sum_ND = torch.zeros_like(h_ND)
    for at in weight_Ne.any(dim=0).nonzero()[:, 0].tolist():
        row = weight_Ne[:, at].nonzero()[:, 0]
        own = f"experts.{op.start + at}."
        one_nD = expert(model, w, own, ACTIVATIONS[model.activation], h_ND[row])
        sum_ND.index_add_(0, row, one_nD * weight_Ne[row, at, None])
    return sum_ND.view(*x_BTX.shape[:2], -1)


def _shared(op: SharedExpert, model: ModelSpec, weights: Weights, caches: Caches, x_BTX: Tensor) -> Tensor:
    w = weights.get(op.slices(model)[0])
    sum_BTD = shared_sum(model, w, ACTIVATIONS[model.activation], x_BTX[..., : model.hidden_size])
    assert sum_BTD is not None
    return sum_BTD


FUNCTIONS: dict[type, Callable[..., Tensor]] = {Route: _route, Experts: _experts, SharedExpert: _shared}
