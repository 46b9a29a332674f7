"""The operations of a decoder or encoder layer and of both ends of a model, as frozen values.

Each op says what it costs (from shapes alone) and which weights must be resident. The functions in
`engine/ops/torch_kernels/core.py` compute them on real tensors.

Tensors are [B, T, D] unless said otherwise (B batch, T new rows, S all rows, D hidden_size, E head_dim).
Pre-norm families normalise inside attention and feed-forward ops, unless the op says that its input is
`normed` already (by a `Norm`); post-norm families normalise in `Residual`.
Matrix products are counted exactly. Element-wise passes (norms, softmax, activations, RoPE, additions) count
one FLOP per element. Views, masks and the arithmetic of table look-ups count nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import ClassVar

from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.ops.kernels import (
    addition,
    attention_kernels,
    elementwise,
    embedding_kernels,
    logits_kernels,
    norm_kernels,
    position_kernels,
    residual_kernels,
    weighted,
)
from engine.ops.layout import kv_heads
from engine.ops.mixture import mixture_cost
from engine.ops.operation import ALIKE, Cost, LayerPart, Operation, Share, norm_piece, piece_of, whole_share
from engine.ops.ragged import CacheName, Piece, Ragged
from engine.ops.tensors import Meta


@dataclass(frozen=True, slots=True)
class Embed(Operation):
    """Token ids [B, T] → hidden rows at positions `start`…, with all that the family adds to them. Those of a
    `ragged` batch are at the positions of its sequences.
    """

    start: int
    ragged: Ragged | None = None
    name: ClassVar[str] = "embed"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(-1, "embed"),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, rows = inputs[0].shape
        kernels = embedding_kernels(model, batch * rows)
        return Cost(kernels, Meta((batch, rows, model.hidden_size), model.dtype))


@dataclass(frozen=True, slots=True)
class Attention(Operation):
    """Query heads [start, stop) → their partial sum after the output matrix; all heads' sums add up.

    The output bias is added only if `bias`: by one device. A `normed` input that gets no bias needs nothing
    but the bare slice. KV heads come along (`kv_heads`).
    """

    layer: int
    start: int
    stop: int
    bias: bool
    cache: CacheName | None = None
    normed: bool = False
    name: ClassVar[str] = "attention"
    takes: ClassVar[str] = "B T D"
    counts: ClassVar[str] = "num_heads"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        bare = self.normed and not self.bias
        return (piece_of(self.layer, "attention", "heads", self.start, self.stop, bare),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        (x,) = inputs
        batch, rows, hidden = x.shape
        heads, size, wide = self.stop - self.start, model.element_bytes, model.head_dim
        if not heads:
            return Cost((), x)
        first, last = kv_heads(model, self.start, self.stop)
        keys = last - first
        one = Piece("", cached, rows)
        pieces = self.cache.pieces if isinstance(self.cache, Ragged) else (one,)
        scores = max((end - at) * (end - model.first_key(self.layer, at)) for _, at, end in _spans(pieces))
        whole = _in_one_call(model, batch * rows) and heads == keys * model.group_size
        norms = () if self.normed else norm_kernels(model, batch * rows, "pre", whole)
        kernels = [
            *norms,
            weighted(model, batch * rows, hidden, heads * wide, 1, whole),
            *[weighted(model, batch * rows, hidden, keys * wide, 1, whole)] * 2,
            *position_kernels(model, self.layer, batch * rows, heads, keys, whole),
            *(
                kernel
                for _, at, end in _spans(pieces)
                for kernel in attention_kernels(model, self.layer, range(at, end), end, batch * heads, whole)
            ),
            weighted(model, batch * rows, heads * wide, hidden, 1, whole),
        ]
        per_row = len(norms) * hidden + (2 * heads + 2 * keys) * wide
        scratch = batch * (rows * per_row + heads * scores)
        added = 2 * batch * rows * keys * wide * size if self.cache else 0
        return Cost(tuple(kernels), x, scratch * size, added, rows if self.cache else 0)

    def share(self, model: ModelSpec, inputs: Sequence[Meta]) -> Share:
        return prod(inputs[0].shape[:2]) * (self.stop - self.start), 0


@dataclass(frozen=True, slots=True)
class FeedForward(Operation):
    """Columns [start, stop) → their partial sum after the second matrix, its bias added only if `bias`.

    Of a model with experts they are those of every expert that a row chooses.
    """

    layer: int
    start: int
    stop: int
    bias: bool
    normed: bool = False
    name: ClassVar[str] = "ffn"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T D"
    counts: ClassVar[str] = "intermediate_size"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        bare = self.normed and not self.bias
        return (piece_of(self.layer, "ffn", "columns", self.start, self.stop, bare),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        (x,) = inputs
        rows, hidden = x.shape[0] * x.shape[1], x.shape[2]
        columns, size, gated = self.stop - self.start, model.element_bytes, int(model.gated_ffn)
        if not columns:
            return Cost((), x)
        if model.num_experts:
            return mixture_cost(model, x, self.start, self.stop, self.normed)
        whole = _in_one_call(model, rows)
        norms = () if self.normed else norm_kernels(model, rows, "pre", whole)
        kernels = (
            *norms,
            *[weighted(model, rows, hidden, columns, 1, whole)] * (1 + gated),
            elementwise(rows, columns, size, 1 + gated, model.activation, 0.0, whole),
            weighted(model, rows, columns, hidden, 1, whole),
        )
        return Cost(kernels, x, rows * (len(norms) * hidden + (1 + gated) * columns) * size)

    def share(self, model: ModelSpec, inputs: Sequence[Meta]) -> Share:
        return 0, prod(inputs[0].shape[:2]) * (self.stop - self.start) * model.hidden_size


def _spans(pieces: Sequence[Piece]) -> list[tuple[str, int, int]]:
    """The KV cache of each piece, its first new row and the number of rows that it has in the end."""
    return [(piece.cache, piece.start, piece.start + piece.rows) for piece in pieces]


def _in_one_call(model: ModelSpec, rows: int) -> bool:
    """Whether so many rows go through a part of a layer in one call, where the host has such a call."""
    return rows == 1 and model.has_llama_parts


@dataclass(frozen=True, slots=True)
class Norm(Operation):
    """x → the input that `part` computes on: normalised in pre-norm families, x itself in post-norm ones."""

    layer: int
    part: LayerPart
    name: ClassVar[str] = "norm"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T D"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (norm_piece(self.layer, self.part),) if model.norms_inputs else ()

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        x = inputs[0]
        return Cost(norm_kernels(model, x.shape[0] * x.shape[1], "pre"), x)


@dataclass(frozen=True, slots=True)
class Residual(Operation):
    """Add the residual: (x, complete sum of `part`) → x + sum. Post-norm families normalise the result, and
    those with sublayer norms the sum before.
    """

    layer: int
    part: LayerPart
    name: ClassVar[str] = "residual"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T D, B T D"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (norm_piece(self.layer, self.part),) if model.norms_sums else ()

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        x = inputs[0]
        return Cost(residual_kernels(model, x.shape[0] * x.shape[1]), x)


@lru_cache(maxsize=4096)
def _whole_layer(
    layer: int, cache: CacheName | None, heads: int, columns: int
) -> tuple[Attention, Residual, FeedForward, Residual]:
    """The parts of a layer, cached, because every step needs the same."""
    return (
        Attention(layer, 0, heads, True, cache),
        Residual(layer, "attention"),
        FeedForward(layer, 0, columns, True),
        Residual(layer, "ffn"),
    )


@dataclass(frozen=True, slots=True)
class Block(Operation):
    """A whole layer in one operation: attention and feed-forward part, each followed by its residual."""

    layer: int
    cache: CacheName | None = None
    name: ClassVar[str] = "block"
    takes: ClassVar[str] = "B T D"

    def parts(self, model: ModelSpec) -> tuple[Attention, Residual, FeedForward, Residual]:
        return _whole_layer(self.layer, self.cache, model.num_heads, model.intermediate_size)

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return piece_of(self.layer, "attention"), piece_of(self.layer, "ffn")

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        (x,) = inputs
        attention, residual, ffn, residual_ffn = self.parts(model)
        if prod(x.shape[:-1]) == 1 and model.adds_bare_sums:  # the products add the row that came in
            add = elementwise(1, x.shape[-1], model.element_bytes, 1, "add", 0.0, True)
            sums = [Cost((add,), x)] * 2
        else:
            sums = [residual.cost(model, (x, x), 0), residual_ffn.cost(model, (x, x), 0)]
        costs = [attention.cost(model, (x,), cached), sums[0], ffn.cost(model, (x,), 0), sums[1]]
        kernels = tuple(kernel for cost in costs for kernel in cost.kernels)
        between = prod(x.shape) * model.element_bytes  # the residual stream while a part runs
        scratch = between + max(cost.scratch_bytes for cost in costs)
        return Cost(kernels, x, scratch, costs[0].kv_bytes, costs[0].kv_rows)

    def share(self, model: ModelSpec, inputs: Sequence[Meta]) -> Share:
        return whole_share(model, prod(inputs[0].shape[:2]))


@dataclass(frozen=True, slots=True)
class Add(Operation):
    """Two tensors of equal shape → their sum: one step of a reduction."""

    name: ClassVar[str] = "add"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None
    takes: ClassVar[str] = ALIKE

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        shape = inputs[0].shape
        add = addition(prod(shape[:-1]), shape[-1], model.element_bytes)
        return Cost((add,), inputs[0])


@dataclass(frozen=True, slots=True)
class Head(Operation):
    """Final norm and output matrix on the last row → logits [B, V], capped if the family does so."""

    name: ClassVar[str] = "head"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T D"
    needs_rows: ClassVar[bool] = True

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(-1, "lm_head"),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, hidden = inputs[0].shape[0], model.hidden_size
        logits = weighted(model, batch, hidden, model.vocab_size)
        output = Meta((batch, model.vocab_size), model.dtype)
        kernels = (
            *norm_kernels(model, batch, "end"),
            logits,
            *logits_kernels(model, batch, model.vocab_size),
        )
        return Cost(kernels, output, batch * hidden * model.element_bytes)


@dataclass(frozen=True, slots=True)
class FinalHidden(Operation):
    """All rows, after the final norm if the family has one: an encoder's output."""

    name: ClassVar[str] = "final_hidden"
    layer: ClassVar[int] = -1
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T D"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(-1, "lm_head"),) if model.norms_end else ()

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        x = inputs[0]
        return Cost(norm_kernels(model, x.shape[0] * x.shape[1], "end"), x)
