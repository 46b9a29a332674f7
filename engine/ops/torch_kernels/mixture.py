"""Computes a mixture of experts on real tensors: only the experts that some row chooses are read.

Shape suffixes are those of `core.py`; N are all rows, K the experts that each of them chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from engine.domain.model import ModelSpec
from engine.ops.torch_kernels.linear import linear

Activation = Callable[[Tensor], Tensor]


def routed(model: ModelSpec, w: Mapping[str, Tensor], h_ND: Tensor) -> tuple[Tensor, Tensor]:
    """The weights of the experts that each row chooses, in float32, and their numbers: both [N, K]."""
    logits_NE = linear(h_ND, w["router.weight"], w.get("router.bias"))
    share_NE = torch.softmax(logits_NE, dim=-1, dtype=torch.float32)
    weight_NK, expert_NK = torch.topk(share_NE, model.experts_per_token, dim=-1)
    if model.norm_topk_prob:
        weight_NK = weight_NK / weight_NK.sum(dim=-1, keepdim=True)
    return weight_NK, expert_NK


def experts_sum(
    model: ModelSpec,
    w: Mapping[str, Tensor],
    activation: Activation,
    h_ND: Tensor,
    weight_NK: Tensor,
    expert_NK: Tensor,
) -> Tensor:
    """For each row, the weighted sum of its experts."""
    sum_ND = torch.zeros_like(h_ND)
    for number in expert_NK.unique().tolist():
        row, at = torch.where(expert_NK == number)
        one_nD = expert(model, w, f"experts.{number}.", activation, h_ND[row])
        sum_ND.index_add_(0, row, (one_nD * weight_NK[row, at, None]).to(sum_ND.dtype))
    return sum_ND


def expert(
    model: ModelSpec, w: Mapping[str, Tensor], own: str, activation: Activation, h_ND: Tensor
) -> Tensor:
    """One expert, whose tensors' keys begin with `own`."""

    def product(key: str, x: Tensor) -> Tensor:
        return linear(x, w[f"{own}{key}.weight"], w.get(f"{own}{key}.bias"))

    up_NF = product("up", h_ND)
    if not model.gated_ffn:
        return product("down", activation(up_NF))
    gate_NF, limit = product("gate", h_ND), model.swiglu_limit
    if limit is None:
        return product("down", activation(gate_NF).mul_(up_NF))
    gate_NF, up_NF = gate_NF.clamp_(max=limit), up_NF.clamp_(-limit, limit)
    return product("down", (up_NF + 1).mul_(gate_NF * torch.sigmoid(gate_NF * model.swiglu_alpha)))


def shared_sum(
    model: ModelSpec, w: Mapping[str, Tensor], activation: Activation, h_ND: Tensor
) -> Tensor | None:
    """The shared expert's sum, None without one."""
    if "shared.up.weight" not in w or not w["shared.up.weight"].shape[0]:
        return None
    sum_ND = expert(model, w, "shared.", activation, h_ND)
    gate = w.get("shared_gate.weight")
    return sum_ND if gate is None else torch.sigmoid(linear(h_ND, gate)) * sum_ND


def mixture(model: ModelSpec, w: Mapping[str, Tensor], activation: Activation, h_BTD: Tensor) -> Tensor:
    """What the columns in `w` add to the sum of every row."""
    h_ND = h_BTD.reshape(-1, h_BTD.shape[-1])
    sum_ND = experts_sum(model, w, activation, h_ND, *routed(model, w, h_ND))
    shared_ND = shared_sum(model, w, activation, h_ND)
    return (sum_ND if shared_ND is None else sum_ND + shared_ND).view_as(h_BTD)
