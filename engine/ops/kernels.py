"""What an operation consists of, for its cost: matrix products and element-wise passes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from engine.domain.host_times import ATTENTION
from engine.domain.model import ModelSpec
from engine.ops.sizes import STORED_BITS


@dataclass(slots=True, unsafe_hash=True)
class Kernel:
    """One pass over data. A product is [rows, inner] × [inner, cols], `count` of them. An element-wise pass
    reads `inner` operands of [rows, cols].

    `name` names passes whose times differ between hosts: a norm, an activation, or "attention" for scores,
    softmax and values, which hosts fuse into one kernel. Only the compute model `measured` uses it.

    `weight_bits`: the matrix, inner × cols, is stored in so many bits per number, scales included; 0: as the
    other operands are. By the models `roofline` and `serial` a device reads them as they are. By the others
    it restores them first, which is an element-wise pass with `weight_bits`, and reads the restored ones.

    `inside`: it has no call of its own, but is computed within that of a product or of a whole part of a
    layer. Only `measured` uses that, too.

    Not frozen, because that takes three times as long to make; nobody changes one. `product` and
    `elementwise` give the same object for the same arguments: from one token to the next, few kernels of a
    layer change.
    """

    kind: Literal["product", "elementwise"]
    rows: int
    inner: int
    cols: int
    count: int
    element_bytes: int
    name: str = ""
    weight_bits: float = 0.0
    inside: bool = False

    @property
    def flops(self) -> int:
        if self.kind == "product":
            return 2 * self.count * self.rows * self.inner * self.cols
        return self.count * self.rows * self.cols

    @property
    def bytes(self) -> int:
        """Operands read once, restored if they are quantised, plus result written once."""
        rows, inner, cols = self.rows, self.inner, self.cols
        read = rows * inner + inner * cols if self.kind == "product" else inner * rows * cols
        return self.count * (read + rows * cols) * self.element_bytes

    @property
    def stored_bytes(self) -> int:
        """The bytes of a product that reads its weights as they are stored."""
        if not self.weight_bits:
            return self.bytes
        beside = self.rows * (self.inner + self.cols) * self.element_bytes
        return self.count * (beside + round(self.inner * self.cols * self.weight_bits / 8))


_made = lru_cache(maxsize=32768)(Kernel)


def product(
    rows: int,
    inner: int,
    cols: int,
    element_bytes: int,
    count: int = 1,
    name: str = "",
    weight_bits: float = 0.0,
    inside: bool = False,
) -> Kernel:
    """The kernel of `count` products of [rows, inner] with [inner, cols]."""
    return _made("product", rows, inner, cols, count, element_bytes, name, weight_bits, inside)


def elementwise(
    rows: int,
    cols: int,
    element_bytes: int,
    count: int = 1,
    name: str = "",
    weight_bits: float = 0.0,
    inside: bool = False,
    operands: int = 1,
) -> Kernel:
    """The kernel of `count` passes over [rows, cols], each of which reads so many tensors of that size."""
    return _made("elementwise", rows, operands, cols, count, element_bytes, name, weight_bits, inside)


def addition(rows: int, cols: int, element_bytes: int) -> Kernel:
    """The sum of two tensors [rows, cols]: both are read, and the sum is written."""
    return elementwise(rows, cols, element_bytes, name="add", operands=2)


def weighted(
    model: ModelSpec, rows: int, inner: int, cols: int, count: int = 1, inside: bool = False
) -> Kernel:
    """The product of `rows` rows with weights of `model`, in the format in which it has them."""
    bits = STORED_BITS.get(model.weight_bits, model.weight_bits)
    return product(rows, inner, cols, model.element_bytes, count, "", bits, inside)


def total_flops(kernels: Sequence[Kernel]) -> int:
    return sum(kernel.flops for kernel in kernels)


def total_bytes(kernels: Sequence[Kernel]) -> int:
    return sum(kernel.bytes for kernel in kernels)


def embedding_kernels(model: ModelSpec, rows: int) -> tuple[Kernel, ...]:
    """Look-up of `rows` token ids, and the passes over them that the family adds."""
    added = (model.positions == "learned") + (model.token_types > 0)
    scaled = model.embedding_scale is not None
    hidden, size = model.hidden_size, model.element_bytes
    before, after = ("lookup", *["scale"] * scaled), [model.norm] * model.embedding_norm
    return (
        *(elementwise(rows, hidden, size, name=name) for name in before),
        *[addition(rows, hidden, size)] * added,
        *(elementwise(rows, hidden, size, name=name) for name in after),
    )


def residual_kernels(model: ModelSpec, rows: int) -> tuple[Kernel, ...]:
    """Adding a part's sum to its input, scaled and normed where the family does so."""
    hidden, size = model.hidden_size, model.element_bytes
    scaled = (elementwise(rows, hidden, size, name="scale"),) * (model.residual_multiplier != 1)
    return (*scaled, addition(rows, hidden, size), *norm_kernels(model, rows, "post"))


def logits_kernels(model: ModelSpec, batch: int, columns: int) -> tuple[Kernel, ...]:
    """The passes over logits of `columns` tokens that the family has."""
    names = ("scale",) * (model.logits_scaling != 1) + ("softcap",) * (model.logit_softcap is not None)
    return tuple(elementwise(batch, columns, model.element_bytes, name=name) for name in names)


def norm_kernels(
    model: ModelSpec, rows: int, where: Literal["pre", "post", "end"], inside: bool = False
) -> tuple[Kernel, ...]:
    """The norm before a part, the one after its sum, or the one at the end, if the family has it."""
    if not {"pre": model.norms_inputs, "post": model.norms_sums, "end": model.norms_end}[where]:
        return ()
    return (elementwise(rows, model.hidden_size, model.element_bytes, 1, model.norm, 0.0, inside),)


def attention_kernels(
    model: ModelSpec, layer: int, rows: range, keys: int, count: int, inside: bool = False
) -> tuple[Kernel, ...]:
    """Scores, softmax and values of `count` heads: queries at positions `rows` over the first `keys` keys.

    A layer with a sliding window reads the keys from the first one that the first query sees. Scores that
    are capped, or have a sink beside them, are no longer what hosts compute in one go.
    """
    seen, wide, size = keys - model.first_key(layer, rows.start), model.head_dim, model.element_bytes
    if model.fuses_attention:
        return (
            product(len(rows), wide, seen, size, count, ATTENTION, 0.0, inside),
            elementwise(len(rows), seen, size, count, ATTENTION, 0.0, inside),
            product(len(rows), seen, wide, size, count, ATTENTION, 0.0, inside),
        )
    return (
        product(len(rows), wide, seen, size, count),
        *(elementwise(len(rows), seen, size, count, "softcap"),) * (model.score_softcap is not None),
        elementwise(len(rows), seen, size, count, "softmax"),
        product(len(rows), seen, wide, size, count),
    )


def position_kernels(
    model: ModelSpec, layer: int, rows: int, heads: int, keys: int, inside: bool = False
) -> tuple[Kernel, ...]:
    """Norms and rotary positions of `heads` projected queries and `keys` keys per row, if the layer has
    them.
    """
    size, width = model.element_bytes, (heads + keys) * model.head_dim
    norms = (elementwise(rows, width, size, name="rmsnorm"),) if model.qk_norm else ()
    turned = (heads + keys) * model.rotary_dim
    turns = (elementwise(rows, turned, size, 1, "rope", 0.0, inside),) if model.rope_of(layer) else ()
    return (*norms, *turns)
