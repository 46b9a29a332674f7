"""Attention that recomputes the oldest keys and values from their tokens in every step, instead of caching
them.

LIME's baselines do so when the KV cache no longer fits (Lin et al., "LIME", section V): evicted tokens
go through all layers again with the new one, and their keys and values live only while their layer runs.
The oldest go first, so the cache always has the newest rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.ops.kernels import attention_kernels, embedding_kernels, norm_kernels, position_kernels, weighted
from engine.ops.layout import kv_heads
from engine.ops.operation import Cost, Operation, Share, piece_of
from engine.ops.tensors import Meta


@dataclass(frozen=True, slots=True)
class EmbedAgain(Operation):
    """Token ids [B, T] at positions `start`… → their hidden rows after those of the `evicted` oldest tokens.

    It keeps the ids of earlier steps under the name of the KV cache. Evicted tokens that are among the new
    ones come once: the result has T + min(evicted, start) rows.
    """

    start: int
    evicted: int
    cache: str
    name: ClassVar[str] = "embed"
    layer: ClassVar[int] = -1
    takes: ClassVar[str] = "B T"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(-1, "embed"),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, new = inputs[0].shape
        rows = new + min(self.evicted, self.start)
        kernels = embedding_kernels(model, batch * rows)
        output = Meta((batch, rows, model.hidden_size), model.dtype)
        return Cost(kernels, output, kv_rows=new)  # like the prompt, ids are not counted as memory


@dataclass(frozen=True, slots=True)
class AttentionAgain(Operation):
    """Compute `Attention` whose first `evicted` rows are at positions 0…, and the others from `position`.

    Rows of the cache before position `evicted` are removed; those of the evicted rows are not kept.
    """

    layer: int
    start: int
    stop: int
    bias: bool
    cache: str
    evicted: int
    position: int
    normed: bool = False
    name: ClassVar[str] = "attention"
    takes: ClassVar[str] = "B T D"
    counts: ClassVar[str] = "num_heads"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(self.layer, "attention", "heads", self.start, self.stop),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        (x,) = inputs
        batch, rows, hidden = x.shape
        heads, size, wide = self.stop - self.start, model.element_bytes, model.head_dim
        if not heads:
            return Cost((), x)
        first, last = kv_heads(model, self.start, self.stop)
        keys, new = last - first, rows - self.evicted
        seen = self.position + new
        norms = () if self.normed else norm_kernels(model, batch * rows, "pre")
        kernels = (
            *norms,
            weighted(model, batch * rows, hidden, heads * wide),
            *[weighted(model, batch * rows, hidden, keys * wide)] * 2,
            *position_kernels(model, self.layer, batch * rows, heads, keys),
            *attention_kernels(model, self.layer, range(self.evicted), self.evicted, batch * heads),
            *attention_kernels(model, self.layer, range(self.position, seen), seen, batch * heads),
            weighted(model, batch * rows, heads * wide, hidden),
        )
        read = seen - model.first_key(self.layer, self.position)
        scores = heads * max(self.evicted**2, new * read)
        per_row = len(norms) * hidden + (2 * heads + 2 * keys) * wide
        scratch = batch * (rows * per_row + scores + 2 * seen * keys * wide)
        grown = seen - self.evicted - cached
        return Cost(kernels, x, scratch * size, 2 * batch * grown * keys * wide * size, grown)

    def share(self, model: ModelSpec, inputs: Sequence[Meta]) -> Share:
        return prod(inputs[0].shape[:2]) * (self.stop - self.start), 0
