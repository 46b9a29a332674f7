"""What a mixture of experts costs (Shazeer et al., arXiv 1701.06538): each row goes through few of many
feed-forward parts.

A router weighs all experts for every row, and the row's sum is that of its `experts_per_token` best ones.
Which they are, only the data tell: costs are those of independent choices, even over `likely_experts`. Then
several rows choose n·(1 − (1 − k/n)^rows) different experts of n in expectation, one row k, and only those
are read. The products with them have rows·k rows in all, whichever are chosen.

For methods that place experts, `Route`, `Experts` over all of them and `SharedExpert` are `FeedForward` in
pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.ops.kernels import Kernel, addition, elementwise, norm_kernels, product, weighted
from engine.ops.layout import shared_columns
from engine.ops.operation import Cost, Operation, Share, piece_of
from engine.ops.tensors import Meta


def chosen_experts(model: ModelSpec, rows: int) -> int:
    """How many different experts `rows` rows are expected to choose."""
    among, each = model.likely_experts or model.num_experts, model.experts_per_token
    return max(each if rows else 0, round(among * (1 - (1 - each / among) ** rows)))


def mixture_cost(model: ModelSpec, x: Meta, start: int, stop: int, normed: bool) -> Cost:
    """Columns [start, stop) of the experts that the rows `x` choose, and of the shared one."""
    rows, hidden, size = x.shape[0] * x.shape[1], x.shape[2], model.element_bytes
    norms = () if normed else norm_kernels(model, rows, "pre")
    pairs, shared = rows * model.experts_per_token, shared_columns(model, start, stop)
    kernels = (
        *norms,
        *router_kernels(model, rows),
        *expert_kernels(model, pairs, chosen_experts(model, rows), stop - start),
        *shared_kernels(model, rows, shared[1] - shared[0]),
    )
    columns = max(pairs * (stop - start), rows * (shared[1] - shared[0]))
    inner = rows * (len(norms) * hidden + model.num_experts) + (1 + model.gated_ffn) * columns
    return Cost(kernels, x, (inner + pairs * hidden) * size)


def router_kernels(model: ModelSpec, rows: int) -> tuple[Kernel, ...]:
    """The weights of all experts for each row, and the softmax over them."""
    experts, size = model.num_experts, model.element_bytes
    return product(rows, model.hidden_size, experts, size), elementwise(rows, experts, size, name="softmax")


def expert_kernels(model: ModelSpec, pairs: int, experts: int, columns: int) -> Iterator[Kernel]:
    """`experts` experts on `pairs` rows in all, as even as may be, and their weighted sum."""
    if not pairs:
        return
    hidden, size, matrices = model.hidden_size, model.element_bytes, 1 + model.gated_ffn
    each, more = divmod(pairs, experts)
    for rows, count in ((each + 1, more), (each, experts - more)):
        if count:
            yield weighted(model, rows, hidden, columns, count * matrices)
            yield elementwise(rows, columns, size, count * matrices, model.activation)
            if model.swiglu_limit is not None:  # both are clamped, and 1 is added
                yield elementwise(rows, columns, size, 3 * count, "clamp")
            yield weighted(model, rows, columns, hidden, count)
    yield elementwise(pairs, hidden, size, name="scale")
    yield addition(pairs, hidden, size)


def shared_kernels(model: ModelSpec, rows: int, columns: int) -> Iterator[Kernel]:
    """`columns` columns of the shared expert, added to the others' sum."""
    if not columns:
        return
    hidden, size, matrices = model.hidden_size, model.element_bytes, 1 + model.gated_ffn
    yield weighted(model, rows, hidden, columns, matrices)
    yield elementwise(rows, columns, size, matrices, model.activation)
    yield weighted(model, rows, columns, hidden)
    if model.shared_expert_gate:
        yield product(rows, hidden, 1, size)
        yield elementwise(rows, hidden, size, name="scale")
    yield addition(rows, hidden, size)


@dataclass(frozen=True, slots=True)
class Route(Operation):
    """Hidden rows [B, T, D] → the rows as experts take them, each with its weights of all experts, 0 of those
    that it does not choose: [B, T, D + experts].
    """

    layer: int
    name: ClassVar[str] = "route"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T D"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(self.layer, "ffn", "experts"),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, rows, hidden = inputs[0].shape
        kernels = (*norm_kernels(model, batch * rows, "pre"), *router_kernels(model, batch * rows))
        return Cost(kernels, Meta((batch, rows, hidden + model.num_experts), model.dtype))


@dataclass(frozen=True, slots=True)
class Experts(Operation):
    """Rows with their weights of experts [start, stop), [B, T, D + stop - start] → the weighted sums of these
    experts, [B, T, D]. Only the data tell that `chosen` of them are, by `pairs` rows in all.
    """

    layer: int
    start: int
    stop: int
    pairs: int
    chosen: int
    name: ClassVar[str] = "experts"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T weighed"
    counts: ClassVar[str] = "num_experts"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(self.layer, "ffn", "experts", self.start, self.stop, True),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, rows, _ = inputs[0].shape
        columns, hidden = model.intermediate_size, model.hidden_size
        kernels = tuple(expert_kernels(model, self.pairs, self.chosen, columns))
        scratch = self.pairs * ((1 + model.gated_ffn) * columns + hidden) * model.element_bytes
        return Cost(kernels, Meta((batch, rows, hidden), model.dtype), scratch)

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"weighed": model.hidden_size + self.stop - self.start}

    def share(self, model: ModelSpec, inputs: Sequence[Meta]) -> Share:
        return 0, self.pairs * model.intermediate_size * model.hidden_size / model.experts_per_token


@dataclass(frozen=True, slots=True)
class SharedExpert(Operation):
    """Rows as `Route` gives them → the sum of the expert that all go through: [B, T, D]."""

    layer: int
    name: ClassVar[str] = "shared_expert"
    cache: ClassVar[None] = None
    takes: ClassVar[str] = "B T weighed"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return (piece_of(self.layer, "ffn", "experts"),)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        batch, rows, _ = inputs[0].shape
        columns = model.shared_intermediate_size
        kernels = tuple(shared_kernels(model, batch * rows, columns))
        scratch = batch * rows * (1 + model.gated_ffn) * columns * model.element_bytes
        return Cost(kernels, Meta((batch, rows, model.hidden_size), model.dtype), scratch)

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        return {"weighed": model.hidden_size + model.num_experts}
