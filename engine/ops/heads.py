"""Attention split into three operations, so that devices without weights can compute heads.

`Project` (norm, W_q W_k W_v, norms of heads, RoPE), `Attend` (softmax(q·kᵀ/√E)·v) and `Join` (W_o) in this
order are `Attention`: over all heads, over a range [start, stop) of them, or over some rows at a
time. Between them heads travel as tensors [B, heads, T, E]; a projection is packed along the second
dimension, query heads first, then K, then V of their KV heads. `Recall` and `Regroup` move cached heads to
another device. `Features` and `Importance` are what EdgeFormer measures of a head; `Weigh`, `Statistics` and
`Mix` are `Importance` and `Attend` with the attention weights between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.ops.kernels import (
    attention_kernels,
    elementwise,
    norm_kernels,
    position_kernels,
    product,
    weighted,
)
from engine.ops.layout import kv_heads
from engine.ops.operation import Cost, Operation, Share, piece_of
from engine.ops.tensors import Meta

Heads = tuple[int, ...]
"""Numbers of query heads or of KV heads, in the order in which a tensor has them."""


def kv_of(model: ModelSpec, heads: Sequence[int]) -> Heads:
    """The KV heads that query `heads` read: each once, ascending."""
    return tuple(sorted({head // model.group_size for head in heads}))


@dataclass(frozen=True, slots=True)
class Project(Operation):
    """Hidden rows [B, T, D] → queries of heads [start, stop), K and V of their KV heads: [B, H+2K, T, E].

    `first_row` is the position of row 0: of the prompt's first row 0, of a tile its first row's. `normed`
    rows have been through the part's `Norm`.
    """

    layer: int
    start: int
    stop: int
    first_row: int = 0
    normed: bool = False
    name: ClassVar[str] = "project"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T D"
    counts: ClassVar[str] = "num_heads"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(self.layer, "attention", "heads", self.start, self.stop),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, rows, hidden = inputs[0].shape
        heads, size, wide = self.stop - self.start, model.element_bytes, model.head_dim
        first, last = kv_heads(model, self.start, self.stop)
        keys = last - first
        output = Meta((batch, heads + 2 * keys, rows, wide), model.dtype)
        if not heads:
            return Cost((), output)
        norms = () if self.normed else norm_kernels(model, batch * rows, "pre")
        kernels = (
            *norms,
            weighted(model, batch * rows, hidden, heads * wide),
            *[weighted(model, batch * rows, hidden, keys * wide)] * 2,
            *position_kernels(model, self.layer, batch * rows, heads, keys),
        )
        return Cost(kernels, output, batch * rows * len(norms) * hidden * size)


@dataclass(frozen=True, slots=True)
class Attend(Operation):
    """Query `heads` [B, h, T, E] over K and V of the KV heads `stored` [B, 2k, S, E] → [B, h, T, E].

    Needs no weights, but for the sinks of its heads in a model that has them. Without a `cache` the T query
    rows are the last of the S rows. With one, the second input has the T new rows: they are appended to the
    cache, which has exactly `stored`, and the queries see all of its rows. `stored` may be more than `heads`
    read: a master copy keeps all.
    """

    layer: int
    heads: Heads
    stored: Heads
    cache: str | None = None
    name: ClassVar[str] = "attend"
    takes: ClassVar[str] = "B h T E, B 2k S E"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        if not (model.attention_sinks and self.heads):
            return ()
        first, last = min(self.heads), max(self.heads)
        return (piece_of(self.layer, "attention", "heads", first, last + 1, True),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        queries, keys_values = inputs
        batch, heads, rows, wide = queries.shape
        new, size = keys_values.shape[2], model.element_bytes
        added = batch * keys_values.shape[1] * new * wide * size if self.cache else 0
        seen = cached + new
        first_row = seen - rows
        kernels = attention_kernels(model, self.layer, range(first_row, seen), seen, batch * heads)
        scratch = batch * heads * rows * (seen - model.first_key(self.layer, first_row)) * size
        return Cost(kernels if heads else (), queries, scratch, added, new if self.cache else 0)

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"h": len(self.heads), "2k": 2 * len(self.stored)}

    def share(self, model: ModelSpec, inputs: Sequence[Meta]) -> Share:
        return prod(inputs[0].shape[:3]), 0


@dataclass(frozen=True, slots=True)
class Join(Operation):
    """Attended `heads` [B, h, T, E] → their sum after the output matrix of heads [start, stop): [B, T, D].

    Every head comes to its own columns of the matrix, whatever the order of `heads`; heads of the range
    that are missing count as zero. The output bias is added only if `bias`: by one device.
    """

    layer: int
    start: int
    stop: int
    heads: Heads
    bias: bool
    name: ClassVar[str] = "join"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B h T E"
    counts: ClassVar[str] = "num_heads"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(self.layer, "attention", "heads", self.start, self.stop),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, heads, rows, wide = inputs[0].shape
        inner, size = (self.stop - self.start) * wide, model.element_bytes
        output = Meta((batch, rows, model.hidden_size), model.dtype)
        if not heads:
            return Cost((), output)
        return Cost(
            (weighted(model, batch * rows, inner, model.hidden_size),), output, batch * rows * inner * size
        )

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"h": len(self.heads)}


@dataclass(frozen=True, slots=True)
class Recall(Operation):
    """K and V of the KV heads `wanted`, all rows, out of a cache that has `stored`: [B, 2k, S, E]."""

    layer: int
    wanted: Heads
    stored: Heads
    batch: int
    cache: str
    name: ClassVar[str] = "recall"

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        columns = 2 * len(self.wanted) * model.head_dim
        output = Meta((self.batch, 2 * len(self.wanted), cached, model.head_dim), model.dtype)
        return Cost((elementwise(cached, columns, model.element_bytes, self.batch),), output)


@dataclass(frozen=True, slots=True)
class Regroup(Operation):
    """K and V [B, 2k, S, E] of the KV heads that a cache of `before` lacks: it has those of `after` then.

    KV heads that stay keep their rows; others are removed. The result has no elements.
    """

    layer: int
    before: Heads
    after: Heads
    cache: str
    name: ClassVar[str] = "regroup"
    takes: ClassVar[str] = "B 2k rows E"

    @property
    def arriving(self) -> Heads:
        return tuple(head for head in self.after if head not in self.before)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, _, rows, wide = inputs[0].shape
        size = 2 * batch * wide * model.element_bytes
        grown = size * (len(self.after) * rows - len(self.before) * cached)
        kernel = elementwise(rows, 2 * len(self.after) * wide, model.element_bytes, batch)
        return Cost((kernel,), Meta((0,), model.dtype), 0, grown, rows - cached)

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"2k": 2 * len(self.arriving)}


@dataclass(frozen=True, slots=True)
class Features(Operation):
    """A whole projection [B, H+2K, T, E] → features that identify a head: [H, 2E + `points`], float32.

    Per head f_sep = (mean of Q rows, mean of K rows) and f_inter[t] = Q[t]·K[t], resampled from T to
    `points` values by linear interpolation; Q unscaled and after RoPE, all means also over the batch
    (Yao et al., EdgeFormer, on importance retrieval).
    """

    layer: int
    points: int
    name: ClassVar[str] = "features"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B heads T E"

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, _, rows, wide = inputs[0].shape
        columns = (2 * model.num_heads + model.num_kv_heads) * wide  # both means, and the products
        output = Meta((model.num_heads, 2 * wide + self.points), "float32")
        return Cost((elementwise(batch * rows, columns, model.element_bytes),), output)

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"heads": model.num_heads + 2 * model.num_kv_heads}


@dataclass(frozen=True, slots=True)
class Importance(Operation):
    """Queries of `heads` [B, h, T, E] and K of `stored` [B, k, S, E] → variance and entropy: [h, 2], float32.

    Of the T×S matrix A = softmax(q·kᵀ/√E) with the model's mask, the queries being the last T of the S rows:
    ΣA²/(T·S) - 1/S² and -ΣA ln A / T (rows sum to 1, so the mean is 1/S; masked entries are 0), mean over the
    batch (EdgeFormer, Eqs. 12 and 13, where T = S = n). Heads are done one at a time: two T×S matrices are in
    memory.
    """

    layer: int
    heads: Heads
    stored: Heads
    name: ClassVar[str] = "importance"
    cache: ClassVar[None] = None
    sums_to_one: ClassVar[bool] = True
    takes: ClassVar[str] = "B h T E, B k S E"

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, heads, rows, wide = inputs[0].shape
        seen, size = inputs[1].shape[2], model.element_bytes
        kernels = (
            product(rows, wide, seen, size, count=batch * heads),
            # softmax, squares, entropy, and the cap if there is one
            elementwise(rows, seen, size, count=(3 + (model.score_softcap is not None)) * batch * heads),
        )
        return Cost(kernels, Meta((heads, 2), "float32"), 2 * batch * rows * seen * size)

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"h": len(self.heads), "k": len(self.stored)}


@dataclass(frozen=True, slots=True)
class Weigh(Operation):
    """Queries of `heads` [B, h, T, E] and K of `stored` [B, k, T, E] → attention weights A: [B, h, T, T].

    `Statistics` of A are `Importance`, and `Mix` of A and V is `Attend`: heads that are measured and then
    attended on the same device form A once.
    """

    layer: int
    heads: Heads
    stored: Heads
    name: ClassVar[str] = "weigh"
    cache: ClassVar[None] = None
    sums_to_one: ClassVar[bool] = True
    takes: ClassVar[str] = "B h T E, B k T E"

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, heads, rows, wide = inputs[0].shape
        size = model.element_bytes
        kernels = (
            product(rows, wide, rows, size, count=batch * heads),
            elementwise(rows, rows, size, count=(1 + (model.score_softcap is not None)) * batch * heads),
        )
        return Cost(kernels, Meta((batch, heads, rows, rows), model.dtype))

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"h": len(self.heads), "k": len(self.stored)}


@dataclass(frozen=True, slots=True)
class Statistics(Operation):
    """Attention weights A [B, h, T, T] → variance and entropy of every head, as `Importance`: [h, 2]."""

    layer: int
    name: ClassVar[str] = "statistics"
    cache: ClassVar[None] = None
    sums_to_one: ClassVar[bool] = True
    takes: ClassVar[str] = "B h T T"

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, heads, rows, _ = inputs[0].shape
        size = model.element_bytes
        kernel = elementwise(rows, rows, size, count=2 * batch * heads)  # squares, entropy
        return Cost((kernel,), Meta((heads, 2), "float32"), 2 * batch * rows * rows * size)


@dataclass(frozen=True, slots=True)
class Mix(Operation):
    """Attention weights A of `heads` [B, h, T, T] and V of `stored` [B, k, T, E] → A·V: [B, h, T, E]."""

    layer: int
    heads: Heads
    stored: Heads
    name: ClassVar[str] = "mix"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B h T T, B k T E"

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, heads, rows, _ = inputs[0].shape
        wide, size = inputs[1].shape[3], model.element_bytes
        kernel = product(rows, rows, wide, size, count=batch * heads)
        return Cost((kernel,), Meta((batch, heads, rows, wide), model.dtype))

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"h": len(self.heads), "k": len(self.stored)}

    def share(self, model: ModelSpec, inputs: Sequence[Meta]) -> Share:
        return prod(inputs[0].shape[:3]), 0
