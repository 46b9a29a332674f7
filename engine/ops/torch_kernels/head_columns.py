"""Computes the operations of `engine/ops/head_columns.py` on real tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from engine.domain.model import ModelSpec
from engine.ops.draws import candidates, drawn
from engine.ops.head_columns import Best, Candidates, Choose, DrawAmong, HeadColumns
from engine.ops.torch_kernels.core import run_head
from engine.ops.torch_kernels.storage import Caches, Weights


def _best(op: Best, model: ModelSpec, weights: Weights, caches: Caches, logits_Bn: Tensor) -> Tensor:
    at_B = logits_Bn.argmax(dim=-1)
    best_B = logits_Bn.gather(1, at_B[:, None])[:, 0]
    return torch.stack((best_B.float(), (at_B + op.start).float()), dim=1)


def _choose(op: Choose, model: ModelSpec, weights: Weights, caches: Caches, *found_B2: Tensor) -> Tensor:
    found_KB2 = torch.stack(found_B2)
    first_B = found_KB2[:, :, 0].argmax(dim=0)
    return found_KB2[first_B, torch.arange(len(first_B)), 1].long()


def _candidates(
    op: Candidates, model: ModelSpec, weights: Weights, caches: Caches, logits_Bn: Tensor
) -> Tensor:
    rows = logits_Bn.double().numpy()
    at = [candidates(draw, row, op.start, op.count) for draw, row in zip(op.draws, rows, strict=True)]
    at_BC = torch.from_numpy(np.stack(at))
    return torch.stack((logits_Bn.float().gather(1, at_BC), (at_BC + op.start).float()), dim=2)


def _draw_among(
    op: DrawAmong, model: ModelSpec, weights: Weights, caches: Caches, *found_BC2: Tensor
) -> Tensor:
    ids = []
    for draw, pairs in zip(op.draws, torch.cat(found_BC2, dim=1).double().numpy(), strict=True):
        logits, known = pairs[pairs[:, 1].argsort()].T
        ids.append(drawn(draw, logits, known.astype(np.int64)))
    return torch.tensor(ids)


FUNCTIONS: dict[type, Callable[..., Tensor]] = {
    HeadColumns: run_head,
    Best: _best,
    Choose: _choose,
    Candidates: _candidates,
    DrawAmong: _draw_among,
}
