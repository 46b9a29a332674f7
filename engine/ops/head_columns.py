"""The output matrix cut by rows of the vocabulary: each device finds its best token, the source chooses.

Shoeybi et al., Megatron-LM (2019), section 3: the embedding's rows are divided among the devices, and what
follows from all logits is computed without sending them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.domain.sampling import TokenDraw
from engine.ops.kernels import elementwise, logits_kernels, norm_kernels, weighted
from engine.ops.operation import Cost, Operation, piece_of
from engine.ops.tensors import Meta
from engine.ops.tokens import draw_kernels


@dataclass(frozen=True, slots=True)
class HeadColumns(Operation):
    """Final norm and rows [start, stop) of the output matrix on the last row → their logits, one each."""

    start: int
    stop: int
    name: ClassVar[str] = "head"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T D"
    counts: ClassVar[str] = "vocab_size"
    needs_rows: ClassVar[bool] = True

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(-1, "lm_head", "columns", self.start, self.stop),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, size, columns = inputs[0].shape[0], model.element_bytes, self.stop - self.start
        kernels = (
            *norm_kernels(model, batch, "end"),
            weighted(model, batch, model.hidden_size, columns),
            *logits_kernels(model, batch, columns),
        )
        return Cost(kernels, Meta((batch, columns), model.dtype), batch * model.hidden_size * size)


@dataclass(frozen=True, slots=True)
class Best(Operation):
    """Logits [B, n] of the tokens from `start` on → [B, 2] in float32: the largest logit and its token's id,
    which is exact below 2²⁴.
    """

    start: int
    name: ClassVar[str] = "best"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B n"

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, columns = inputs[0].shape
        return Cost((elementwise(batch, columns, model.element_bytes),), Meta((batch, 2), "float32"))


@dataclass(frozen=True, slots=True)
class Choose(Operation):
    """What all devices found, in the order of the vocabulary → ids [B]: of equal logits the lowest id."""

    name: ClassVar[str] = "choose"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch = inputs[0].shape[0]
        return Cost((elementwise(batch, len(inputs), 4),), Meta((batch,), "int64"))


@dataclass(frozen=True, slots=True)
class Candidates(Operation):
    """Logits [B, n] of the tokens from `start` on → [B, count, 2] in float32: the logits and ids of those
    that decide what is drawn. Both are exact. `draws` says how, of each row.
    """

    start: int
    count: int
    draws: tuple[TokenDraw, ...] = field(compare=False)
    name: ClassVar[str] = "candidates"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B n"

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, columns = inputs[0].shape
        kernels = draw_kernels(batch, columns, self.count > 1)
        return Cost(kernels, Meta((batch, self.count, 2), "float32"))


@dataclass(frozen=True, slots=True)
class DrawAmong(Operation):
    """The candidates of all devices [B, k, 2], in the order of the vocabulary → ids [B], drawn at random as
    `draws` says of each row.
    """

    draws: tuple[TokenDraw, ...] = field(compare=False)
    name: ClassVar[str] = "draw"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, found = inputs[0].shape[0], sum(part.shape[1] for part in inputs)
        return Cost(draw_kernels(batch, found, found > len(inputs)), Meta((batch,), "int64"))
