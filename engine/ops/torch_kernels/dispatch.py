"""Runs an operation on real tensors: looks up the function that computes it and calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.domain.model import ModelSpec, draft_of
from engine.ops.draft import OfDraft
from engine.ops.operation import Op
from engine.ops.torch_kernels import (
    core,
    experts,
    head_columns,
    heads,
    kv_cache,
    positions,
    quantised,
    recompute,
    summa,
    tiles,
    tokens,
    vision,
)
from engine.ops.torch_kernels.core import ACTIVATIONS
from engine.ops.torch_kernels.heap import touch
from engine.ops.torch_kernels.linear import linear
from engine.ops.torch_kernels.storage import Caches, Weights


def _of_draft(op: OfDraft, model: ModelSpec, weights: Any, caches: Caches, *inputs: Tensor) -> Tensor:
    return run(op.op, draft_of(model), weights.draft, caches, inputs)


FUNCTIONS: dict[type, Callable[..., Tensor]] = (
    core.FUNCTIONS
    | positions.FUNCTIONS
    | heads.FUNCTIONS
    | vision.FUNCTIONS
    | kv_cache.FUNCTIONS
    | tiles.FUNCTIONS
    | quantised.FUNCTIONS
    | recompute.FUNCTIONS
    | tokens.FUNCTIONS
    | summa.FUNCTIONS
    | head_columns.FUNCTIONS
    | experts.FUNCTIONS
    | {OfDraft: _of_draft}
)


def run(op: Op, model: ModelSpec, weights: Weights, caches: Caches, inputs: tuple[Tensor, ...]) -> Tensor:
    """The output of `op`. Grows the KV cache that it names. Raises `PlanError` for an impossible op."""
    return FUNCTIONS[type(op)](op, model, weights, caches, *inputs)


def warm_up(model: ModelSpec, rows: int = 8) -> None:
    """Each kind of kernel once, on rows of the model's width: libraries set themselves up on first use.

    Afterwards this thread's heap has the pages that a layer over `rows` rows needs for its results.
    """
    widths = 4 * model.hidden_size + 3 * model.intermediate_size
    touch(rows * widths * model.element_bytes)
    dtype = getattr(torch, model.dtype)
    x_TD = torch.zeros(8, model.hidden_size, dtype=dtype)
    w_FD = torch.zeros(model.intermediate_size, model.hidden_size, dtype=dtype)
    h_TF = ACTIVATIONS[model.activation](linear(x_TD, w_FD))
    linear(h_TF[:1], w_FD.t())
    F.layer_norm(x_TD, x_TD.shape[1:])
    F.softmax(x_TD @ x_TD.t(), dim=-1)
    if model.vision:
        vision.warm_up(model)
