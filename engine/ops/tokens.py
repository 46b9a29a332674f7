"""Chooses tokens on the device that has the logits, so that it sends ids only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from engine.domain.model import ModelSpec
from engine.ops.kernels import elementwise
from engine.ops.operation import Cost, Operation
from engine.ops.tensors import Meta


@dataclass(frozen=True, slots=True)
class Greedy(Operation):
    """Logits [B, V] → ids [B] of the most likely tokens, the lowest of equally likely ones."""

    name: ClassVar[str] = "greedy"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B V"

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, vocabulary = inputs[0].shape
        return Cost((elementwise(batch, vocabulary, model.element_bytes),), Meta((batch,), "int64"))
