"""A layer's rows at some positions: the operation of sequence-parallel methods (Voltage)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar, Literal

from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.ops.core import Block
from engine.ops.kernels import attention_kernels, norm_kernels, position_kernels, product, weighted
from engine.ops.operation import Cost, Operation, Share, piece_of, whole_share
from engine.ops.tensors import Meta

Order = Literal["naive", "reorder"]
"""In which order three matrices are multiplied (Voltage, Table 1)."""


@dataclass(frozen=True, slots=True)
class PositionBlock(Operation):
    """Rows [start, stop) of a layer's output, from its whole input [B, N, D] (Voltage, Algorithm 1).

    Keys are rows [0, keys_stop): all N, or stop where a causal mask hides the rest. `naive` forms K
    (or V) of all key rows; `reorder` pulls W_K (or W_V) to the other side: ((q W_K) xᵀ), (S x) W_V.
    All heads of a batch then share one skinny product with x. With a `cache` (naive only), K and V
    of the key rows become the layer's KV cache. Attention in a layer with a sliding window reads only the
    keys from the first one that row `start` sees.

    Raises `PlanError` where an order is impossible: RoPE or a norm of each key sits between q and W_K, capped
    scores need K's bias, and reordering has no K, V.
    """

    layer: int
    start: int
    stop: int
    keys_stop: int
    score_order: Order = "naive"
    value_order: Order = "naive"
    cache: str | None = None
    name: ClassVar[str] = "position_block"
    takes: ClassVar[str] = "B T D"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return piece_of(self.layer, "attention"), piece_of(self.layer, "ffn")

    def check(self, model: ModelSpec, num_positions: int, cached: int) -> None:
        """Check that rows, orders and cache go together for an input of `num_positions` rows; raises
        `PlanError`.
        """
        where = f"position_block of layer {self.layer}, rows {self.start}:{self.stop}"
        if not 0 <= self.start <= self.stop <= self.keys_stop <= num_positions:
            raise PlanError(
                f"{where}: keys_stop is {self.keys_stop}, expected {self.stop} to {num_positions}."
            )
        if not model.causal and self.keys_stop != num_positions:
            raise PlanError(f"{where}: {model.name} is not causal, so keys_stop must be {num_positions}.")
        if self.score_order == "reorder" and not model.scores_reorder:
            between = (
                "rotary positions"
                if model.positions == "rope"
                else "norms of queries and keys"
                if model.qk_norm
                else "capped scores"
            )
            raise PlanError(f"{where}: {between} forbid score_order reorder: use naive.")
        if self.cache and "reorder" in (self.score_order, self.value_order):
            raise PlanError(f"{where}: reordering makes no keys and values for a KV cache: use naive.")
        if cached:
            raise PlanError(f"{where}: the KV cache {self.cache} has {cached} rows already, expected none.")

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        (x,) = inputs
        batch, positions, hidden = x.shape
        self.check(model, positions, cached)
        rows, seen, size, wide = self.stop - self.start, self.keys_stop, model.element_bytes, model.head_dim
        heads, keys, group = model.num_heads, model.num_kv_heads, model.group_size
        read = seen - model.first_key(self.layer, self.start)  # keys that attention reads
        output = Meta((batch, rows, hidden), x.dtype)
        if not rows and not self.cache:
            return Cost((), output)
        kernels, scratch, ffn_scratch = list(norm_kernels(model, batch * seen, "pre")), 0, 0
        form_keys = weighted(model, batch * seen, hidden, keys * wide)
        per_head = [weighted(model, rows * batch * group, wide, hidden, count=keys)]
        with_x = product(heads * rows, hidden, read, size, count=batch)
        if self.cache or self.score_order == "naive":
            kernels.append(form_keys)
            scratch += batch * seen * keys * wide
        if self.cache or self.value_order == "naive":
            kernels.append(form_keys)
            scratch += batch * seen * keys * wide
        formed = seen * keys if self.score_order == "naive" else 0
        kernels += position_kernels(model, self.layer, batch, rows * heads, formed)
        if rows:
            kernels.append(weighted(model, batch * rows, hidden, heads * wide))
            at = range(self.start, self.stop)
            scores, *capped, values = attention_kernels(model, self.layer, at, seen, batch * heads)
            if self.score_order == self.value_order == "naive":
                kernels += [scores, *capped, values]
            else:  # one after the other, so no longer what hosts compute in one go
                kernels += [replace(scores, name="")] if self.score_order == "naive" else [*per_head, with_x]
                kernels += [*capped[:-1], replace(capped[-1], name="softmax")]
                back = weighted(model, rows * batch * group, hidden, wide, count=keys)
                mixed = [product(heads * rows, read, hidden, size, count=batch), back]
                kernels += [replace(values, name="")] if self.value_order == "naive" else mixed
            kernels.append(weighted(model, batch * rows, heads * wide, hidden))
            x_rows = Meta((batch, rows, hidden), x.dtype)
            _, residual, ffn, residual_ffn = Block(self.layer).parts(model)
            kernels += residual.cost(model, (x_rows, x_rows), 0).kernels
            ffn_cost = ffn.cost(model, (x_rows,), 0)
            kernels += ffn_cost.kernels
            ffn_scratch = ffn_cost.scratch_bytes
            kernels += residual_ffn.cost(model, (x_rows, x_rows), 0).kernels
        scratch += batch * (seen * hidden if model.norms_inputs else 0)
        reordered = "reorder" in (self.score_order, self.value_order)
        scratch += batch * heads * rows * (2 * wide + read + (hidden if reordered else 0))
        added = 2 * batch * seen * keys * wide * size if self.cache else 0
        between = prod(output.shape) * size  # the residual stream while a part runs
        scratch = between + max(scratch * size, ffn_scratch)
        return Cost(tuple(kernels), output, scratch, added, seen if self.cache else 0)

    def share(self, model: ModelSpec, inputs: Sequence[Meta]) -> Share:
        return whole_share(model, inputs[0].shape[0] * (self.stop - self.start))
