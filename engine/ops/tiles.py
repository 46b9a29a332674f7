"""The feed-forward part split into its two products, so that a few rows can be computed at a time.

`Expand` (norm, first matrix or matrices, activation) and `Contract` (second matrix) in this order are
`FeedForward` over the same columns; between them rows are [B, T, columns].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.ops.kernels import elementwise, norm_kernels, weighted
from engine.ops.operation import Cost, Operation, Share, piece_of
from engine.ops.tensors import Meta


@dataclass(frozen=True, slots=True)
class Expand(Operation):
    """Hidden rows [B, T, D], `normed` already or not → activations of columns [start, stop)."""

    layer: int
    start: int
    stop: int
    normed: bool = False
    name: ClassVar[str] = "expand"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T D"
    counts: ClassVar[str] = "intermediate_size"
    is_of_one_part: ClassVar[bool] = True

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(self.layer, "ffn", "columns", self.start, self.stop),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, rows, hidden = inputs[0].shape
        columns, size, gated = self.stop - self.start, model.element_bytes, int(model.gated_ffn)
        output = Meta((batch, rows, columns), model.dtype)
        if not columns:
            return Cost((), output)
        norms = () if self.normed else norm_kernels(model, batch * rows, "pre")
        kernels = (
            *norms,
            *[weighted(model, batch * rows, hidden, columns)] * (1 + gated),
            elementwise(batch * rows, columns, size, 1 + gated, model.activation),
        )
        return Cost(kernels, output, batch * rows * (len(norms) * hidden + gated * columns) * size)


@dataclass(frozen=True, slots=True)
class Contract(Operation):
    """Activations of columns [start, stop) → their partial sum [B, T, D], the output bias only if `bias`."""

    layer: int
    start: int
    stop: int
    bias: bool
    name: ClassVar[str] = "contract"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T n"
    counts: ClassVar[str] = "intermediate_size"
    is_of_one_part: ClassVar[bool] = True

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(self.layer, "ffn", "columns", self.start, self.stop),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, rows, columns = inputs[0].shape
        output = Meta((batch, rows, model.hidden_size), model.dtype)
        if not columns:
            return Cost((), output)
        return Cost((weighted(model, batch * rows, columns, model.hidden_size),), output)

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"n": self.stop - self.start}

    def share(self, model: ModelSpec, inputs: Sequence[Meta]) -> Share:
        return 0, prod(inputs[0].shape[:2]) * (self.stop - self.start) * model.hidden_size
