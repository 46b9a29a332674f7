"""Computes the operations of `engine/ops/quantised.py` on real tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from engine.domain.model import ModelSpec
from engine.domain.plan import Bits, Slice
from engine.ops.core import Block
from engine.ops.quantised import QuantisedBlock
from engine.ops.torch_kernels.core import run_block
from engine.ops.torch_kernels.storage import Caches, Weights


class _Whole:
    """The matrices of a layer in `bits` bits, where its operations find them."""

    def __init__(self, weights: Weights, bits: Bits):
        self.weights, self.bits = weights, bits
        self.found: dict[Any, Any] = {}

    def get(self, piece: Slice) -> Mapping[str, Tensor]:
        return self.weights.get(Slice(layer=piece.layer, part=piece.part, bits=self.bits))


def _quantised_block(
    op: QuantisedBlock, model: ModelSpec, weights: Weights, caches: Caches, x_BTD: Tensor
) -> Tensor:
    whole = weights.found.get((QuantisedBlock, op.bits))
    if whole is None:
        whole = weights.found[QuantisedBlock, op.bits] = _Whole(weights, op.bits)
    return run_block(Block(op.layer, op.cache), model, whole, caches, x_BTD)


FUNCTIONS: dict[type, Callable[..., Tensor]] = {QuantisedBlock: _quantised_block}
