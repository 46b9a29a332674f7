"""From an operation to its arithmetic: one table of all functions, whichever file they are in."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models import (
    torch_cache_ops,
    torch_head_ops,
    torch_ops,
    torch_position_ops,
    torch_quantised_ops,
    torch_recompute_ops,
    torch_summa_ops,
    torch_tile_ops,
    torch_token_ops,
    torch_vision_ops,
)
from engine.models.ops import Op
from engine.models.spec import ModelSpec
from engine.models.torch_ops import ACTIVATIONS, Caches, Weights

FUNCTIONS: dict[type, Callable[..., Tensor]] = (
    torch_ops.FUNCTIONS | torch_position_ops.FUNCTIONS | torch_head_ops.FUNCTIONS
    | torch_vision_ops.FUNCTIONS | torch_cache_ops.FUNCTIONS | torch_tile_ops.FUNCTIONS
    | torch_quantised_ops.FUNCTIONS | torch_recompute_ops.FUNCTIONS | torch_token_ops.FUNCTIONS
    | torch_summa_ops.FUNCTIONS
)


def run(op: Op, model: ModelSpec, weights: Weights, caches: Caches, inputs: tuple[Tensor, ...]) -> Tensor:
    """The output of `op`. Grows the KV cache that it names. Raises `PlanError` for an impossible op."""
    return FUNCTIONS[type(op)](op, model, weights, caches, *inputs)


def warm_up(model: ModelSpec) -> None:
    """Each kind of kernel once, on rows of the model's width: libraries set themselves up on first use."""
    dtype = getattr(torch, model.dtype)
    x_TD = torch.zeros(8, model.hidden_size, dtype=dtype)
    w_FD = torch.zeros(model.intermediate_size, model.hidden_size, dtype=dtype)
    h_TF = ACTIVATIONS[model.activation](F.linear(x_TD, w_FD))
    F.linear(h_TF[:1], w_FD.t())
    F.layer_norm(x_TD, x_TD.shape[1:])
    F.softmax(x_TD @ x_TD.t(), dim=-1)
    if model.vision:
        torch_vision_ops.warm_up(model)
