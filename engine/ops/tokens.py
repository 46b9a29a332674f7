"""Chooses tokens on the device that has the logits, so that it sends ids only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from engine.domain.model import ModelSpec
from engine.domain.sampling import TokenDraw
from engine.ops.kernels import Kernel, elementwise
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


SCORE_PASSES = 5
"""Over the logits: random numbers, two logarithms, the weighted sum, the largest one."""
FILTER_PASSES = 3
"""Besides: the exponential, the running sum, what is below its limit."""
DRAW_BYTES = 8
"""Draws are computed in float64, so that rounding makes no two scores equal; one row after the other, in a
few arrays of the vocabulary's size that no method plans for.
"""


@dataclass(frozen=True, slots=True)
class Draw(Operation):
    """Parts of logits [B, n], in the order of the vocabulary → ids [B], drawn at random as `draws` says of
    each row. `filtered`: only some of the tokens may be drawn.
    """

    draws: tuple[TokenDraw, ...] = field(compare=False)
    filtered: bool = False
    name: ClassVar[str] = "draw"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, vocabulary = inputs[0].shape[0], sum(part.shape[1] for part in inputs)
        return Cost(draw_kernels(batch, vocabulary, self.filtered), Meta((batch,), "int64"))


def draw_kernels(batch: int, tokens: int, filtered: bool) -> tuple[Kernel, ...]:
    """The passes over the logits of so many tokens; to sort n of them takes log2(n) further ones."""
    passes = SCORE_PASSES + (FILTER_PASSES + (tokens - 1).bit_length()) * filtered
    return (elementwise(batch, tokens, DRAW_BYTES, count=passes),)
