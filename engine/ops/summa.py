"""The feed-forward part in two-dimensional blocks of its matrices, as in SUMMA: X'_j = Σ_k X_k · W_kj.

Xu and You, "An Efficient 2D Method for Training Super-Large Deep Learning Models" (IPDPS 2023), as Hu et al.,
"AdaptLink" (AAAI 2025 workshop), Fig. 3, use it. The sum over k is complete before the activation: applied to
partial sums it would give other numbers. Inputs are normed already; rows are one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.ops.kernels import elementwise, weighted
from engine.ops.operation import Cost, Operation, Share, piece_of
from engine.ops.tensors import Meta


@dataclass(frozen=True, slots=True)
class SummaUp(Operation):
    """Hidden units [first, last) of the input, [B, T, last-first] → their part of columns [start, stop)
    before the activation, the gate's columns after the others': [B, T, (1 or 2)·(stop-start)].
    """

    layer: int
    first: int
    last: int
    start: int
    stop: int
    name: ClassVar[str] = "summa_up"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T m"
    counts: ClassVar[str] = "intermediate_size"
    is_of_one_part: ClassVar[bool] = True

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(self.layer, "ffn", "columns", self.start, self.stop),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, rows, inner = inputs[0].shape
        columns, matrices = self.stop - self.start, 1 + model.gated_ffn
        kernels = (weighted(model, batch * rows, inner, columns),) * matrices
        return Cost(kernels, Meta((batch, rows, matrices * columns), model.dtype))

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"m": self.last - self.first}

    def share(self, model: ModelSpec, inputs: Sequence[Meta]) -> Share:
        return 0, prod(inputs[0].shape) * (self.stop - self.start)


@dataclass(frozen=True, slots=True)
class SummaActivate(Operation):
    """The complete sums of columns [start, stop), as `SummaUp` has them → activated: [B, T, stop-start]."""

    layer: int
    start: int
    stop: int
    name: ClassVar[str] = "summa_activate"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T n"
    counts: ClassVar[str] = "intermediate_size"
    is_of_one_part: ClassVar[bool] = True

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(self.layer, "ffn", "columns", self.start, self.stop),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, rows, _ = inputs[0].shape
        columns, size = self.stop - self.start, model.element_bytes
        kernel = elementwise(batch * rows, columns, size, 1 + model.gated_ffn, model.activation)
        scratch = batch * rows * columns * model.gated_ffn * size
        return Cost((kernel,), Meta((batch, rows, columns), model.dtype), scratch)

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"n": (1 + model.gated_ffn) * (self.stop - self.start)}


@dataclass(frozen=True, slots=True)
class SummaDown(Operation):
    """Activated columns [start, stop) → their part of hidden units [first, last) of the output, [B, T,
    last-first]; the output bias is added only if `bias`: by one device.
    """

    layer: int
    start: int
    stop: int
    first: int
    last: int
    bias: bool
    name: ClassVar[str] = "summa_down"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T n"
    counts: ClassVar[str] = "intermediate_size"
    is_of_one_part: ClassVar[bool] = True

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(self.layer, "ffn", "columns", self.start, self.stop),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, rows, inner = inputs[0].shape
        outputs = self.last - self.first
        kernel = weighted(model, batch * rows, inner, outputs)
        return Cost((kernel,), Meta((batch, rows, outputs), model.dtype))

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"n": self.stop - self.start}
