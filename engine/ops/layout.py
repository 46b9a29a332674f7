"""Lists the tensors of a slice of a model: their names, their shapes and which rows or columns belong to it.

Canonical names are those of a linear layer's mathematics: `q k v o` for attention, `up gate down` for the
feed-forward part, every matrix [outputs, inputs]. `engine/models/families/` maps them to the names and
storage orders of Hugging Face files.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec, tower_model
from engine.domain.plan import Axis, Part, Slice
from engine.domain.vision import NUM_CHANNELS

BARED = ("norm.weight", "norm.bias", "post_norm.weight", "post_norm.bias", "o.bias", "down.bias")
ROUTERS = ("router.weight", "shared_gate.weight")
"""Matrices that weigh experts, which are never quantised: they are small, and decide much."""
OVER_HEADS = "queries and keys are normed over all heads at once, which no cut between heads has"
VOCABULARY_BLOCK = 1024
"""Rows of a table, or numbers of a vector, that random weights draw at once."""
FFN_BLOCK = 64
"""Columns of the feed-forward part that random weights draw at once."""


class TensorPart(NamedTuple):
    """Indices [start, stop) along `dim` of the tensor `name`, called `key` inside its slice.

    `block` is the number of indices along `dim` that belong together (a head, 64 columns).
    """

    key: str
    name: str
    full_shape: tuple[int, ...]
    dim: int
    start: int
    stop: int
    block: int

    @property
    def shape(self) -> tuple[int, ...]:
        shape = list(self.full_shape)
        shape[self.dim] = self.stop - self.start
        return tuple(shape)

    @property
    def num_elements(self) -> int:
        return prod(self.shape)

    @property
    def is_matrix(self) -> bool:
        return len(self.full_shape) == 2 and not self.key.endswith(ROUTERS)


def kv_heads(model: ModelSpec, start: int, stop: int) -> tuple[int, int]:
    """KV heads [first, last) that query heads [start, stop) read; uneven ranges share a KV head."""
    first = start // model.group_size
    return first, first if start == stop else -(-stop // model.group_size)


def tensor_parts(model: ModelSpec, piece: Slice) -> tuple[TensorPart, ...]:
    """The tensors of `piece`. Norms and output biases come whole with every slice that is not bare.

    Raises `PlanError` for a slice that the model does not have.
    """
    if piece.part == "embed":
        return _embed(model) if model.reads_text else _embed_image(model, "embed.", model.hidden_size)
    if piece.part == "vision":
        return _tower(model)
    if piece.part == "lm_head":
        rows = (piece.start, piece.stop) if piece.axis == "columns" else (0, model.vocab_size)
        return _lm_head(model, *rows)
    if not 0 <= piece.layer < model.num_layers:
        last = model.num_layers - 1
        raise PlanError(f"{piece.part} of layer {piece.layer}: {model.name} has layers 0 to {last}.")
    if piece.bits and piece.axis != "all":
        raise PlanError(f"layer {piece.layer} {piece.part}: only whole parts are quantised, no {piece.axis}.")
    axis, size = _axis(model, piece)
    start, stop = (0, size) if piece.axis in ("all", "positions") else (piece.start, piece.stop)
    if piece.axis not in ("all", "positions", axis) or not 0 <= start <= stop <= size:
        raise PlanError(
            f"layer {piece.layer} {piece.part}: no slice {piece.axis} {start}:{stop}, "
            f"{model.name} has {axis} 0:{size}."
        )
    if axis == "heads" and model.qk_norm_over_heads and stop - start not in (0, size):
        raise PlanError(f"layer {piece.layer} attention: no slice heads {start}:{stop}: {OVER_HEADS}.")
    prefix = f"layers.{piece.layer}.{piece.part}."
    if axis == "experts":
        parts = _experts(model, prefix, range(start, stop), 0, model.intermediate_size)
        return (
            tuple(parts)
            if piece.bare
            else (*_around_experts(model, prefix, 0, model.intermediate_size), *parts)
        )
    cut = _attention if piece.part == "attention" else _mixture if model.num_experts else _ffn
    parts = cut(model, prefix, start, stop)
    return tuple(part for part in parts if part.key not in BARED) if piece.bare else parts


def _axis(model: ModelSpec, piece: Slice) -> tuple[Axis, int]:
    """The axis along which a part of a layer is cut for `piece`, and its size."""
    if piece.part == "attention":
        return "heads", model.num_heads
    if piece.axis == "experts":
        return "experts", model.num_experts
    return "columns", model.intermediate_size


def whole_model(model: ModelSpec) -> tuple[Slice, ...]:
    """All parts of `model`, in the order of computation."""
    parts: tuple[Part, Part] = ("attention", "ffn")
    layers = [Slice(layer=layer, part=part) for layer in range(model.num_layers) for part in parts]
    tower = [Slice(layer=-1, part="vision")] if model.has_tower else []
    return (*tower, Slice(layer=-1, part="embed"), *layers, Slice(layer=-1, part="lm_head"))


def _whole(key: str, name: str, shape: tuple[int, ...]) -> TensorPart:
    return TensorPart(key, name, shape, 0, 0, shape[0], VOCABULARY_BLOCK)


def _norm(model: ModelSpec, prefix: str, key: str = "norm") -> list[TensorPart]:
    kinds = ("weight", "bias") if model.norm == "layernorm" else ("weight",)
    return [_whole(f"{key}.{kind}", f"{prefix}{key}.{kind}", (model.hidden_size,)) for kind in kinds]


def _part_norms(model: ModelSpec, prefix: str) -> list[TensorPart]:
    """The norms of an attention or feed-forward part: `post_norm` is that of its sum."""
    before = _norm(model, prefix) if model.norm_position != "sum" else []
    return [*before, *(_norm(model, prefix, "post_norm") if model.sublayer_norm else [])]


def _embed(model: ModelSpec) -> tuple[TensorPart, ...]:
    hidden = model.hidden_size
    parts = [_whole("tokens", "embed.tokens", (model.vocab_size, hidden))]
    if model.positions == "learned":
        rows = model.position_offset + model.max_positions
        parts.append(_whole("positions", "embed.positions", (rows, hidden)))
    if model.token_types:
        parts.append(_whole("types", "embed.types", (model.token_types, hidden)))
    return (*parts, *(_norm(model, "embed.") if model.embedding_norm else []))


def _embed_image(model: ModelSpec, prefix: str, hidden: int) -> tuple[TensorPart, ...]:
    """Patches, the CLS row and positions; ViT's patches have a bias, CLIP's a norm after all of it."""
    vision = model.vision
    assert vision is not None
    size, rows = vision.patch_size, vision.num_patches + 1
    parts = [_whole("patches.weight", f"{prefix}patches.weight", (hidden, NUM_CHANNELS, size, size))]
    stored: tuple[int, ...] = () if vision.tower else (1, 1)  # ViT's files keep leading ones
    if not vision.tower:
        parts.append(_whole("patches.bias", f"{prefix}patches.bias", (hidden,)))
    parts.append(_whole("cls", f"{prefix}cls", (*stored, hidden)))
    return (*parts, _whole("positions", f"{prefix}positions", (*stored[:1], rows, hidden)))


def _tower(model: ModelSpec) -> tuple[TensorPart, ...]:
    """All of the tower that is used, and the projector; a layer's keys begin with its number and part."""
    if not model.has_tower:
        raise PlanError(f"vision: {model.name} has no tower.")
    tower, hidden = tower_model(model), model.hidden_size
    parts = [*_embed_image(model, "vision.", tower.hidden_size), *_norm(tower, "vision.")]
    for layer in range(tower.num_layers):
        for kind in ("attention", "ffn"):
            for part in tensor_parts(tower, Slice(layer=layer, part=kind)):
                parts.append(part._replace(key=f"{layer}.{kind}.{part.key}", name=f"vision.{part.name}"))
    for key, inputs in (("up", tower.hidden_size), ("down", hidden)):
        name = f"projector.{key}"
        parts.append(_whole(f"{name}.weight", f"vision.{name}.weight", (hidden, inputs)))
        parts.append(_whole(f"{name}.bias", f"vision.{name}.bias", (hidden,)))
    return tuple(parts)


def _lm_head(model: ModelSpec, start: int, stop: int) -> tuple[TensorPart, ...]:
    """Rows [start, stop) of the output matrix."""
    parts = _norm(model, "lm_head.") if model.norms_end else []
    if model.has_head:
        name = "embed.tokens" if model.tied_head else "lm_head.weight"
        shape = (model.vocab_size, model.hidden_size)
        parts.append(TensorPart("weight", name, shape, 0, start, stop, VOCABULARY_BLOCK))
    if model.num_classes:
        shape = (model.num_classes, model.hidden_size)
        parts.append(_whole("weight", "lm_head.classifier.weight", shape))
        parts.append(_whole("bias", "lm_head.classifier.bias", shape[:1]))
    return tuple(parts)


def _attention(model: ModelSpec, prefix: str, start: int, stop: int) -> tuple[TensorPart, ...]:
    hidden, wide = model.hidden_size, model.head_dim
    parts = _part_norms(model, prefix)
    counts = (model.num_heads, model.num_kv_heads) if model.qk_norm_over_heads else (1, 1)
    for key, count in zip(("q_norm", "k_norm"), counts, strict=True) if model.qk_norm else ():
        parts.append(_whole(f"{key}.weight", f"{prefix}{key}.weight", (count * wide,)))
    for key in ("q", "k", "v"):
        first, last = (start, stop) if key == "q" else kv_heads(model, start, stop)
        outputs = wide * (model.num_heads if key == "q" else model.num_kv_heads)
        shapes = [("weight", (outputs, hidden)), ("bias", (outputs,))]
        for kind, shape in shapes if model.attention_bias else shapes[:1]:
            name = f"{key}.{kind}"
            parts.append(TensorPart(name, prefix + name, shape, 0, first * wide, last * wide, wide))
    inputs = model.num_heads * wide
    parts.append(
        TensorPart("o.weight", prefix + "o.weight", (hidden, inputs), 1, start * wide, stop * wide, wide)
    )
    if model.has_output_bias:
        parts.append(_whole("o.bias", prefix + "o.bias", (hidden,)))
    if model.attention_sinks:
        parts.append(TensorPart("sinks", prefix + "sinks", (model.num_heads,), 0, start, stop, 1))
    return tuple(parts)


def _ffn(model: ModelSpec, prefix: str, start: int, stop: int) -> tuple[TensorPart, ...]:
    hidden, columns = model.hidden_size, model.intermediate_size
    parts = _part_norms(model, prefix)
    for key in ("up", "gate") if model.gated_ffn else ("up",):
        shapes = [("weight", (columns, hidden)), ("bias", (columns,))]
        for kind, shape in shapes if model.ffn_bias else shapes[:1]:
            name = f"{key}.{kind}"
            parts.append(TensorPart(name, prefix + name, shape, 0, start, stop, FFN_BLOCK))
    shape = (hidden, columns)
    parts.append(TensorPart("down.weight", prefix + "down.weight", shape, 1, start, stop, FFN_BLOCK))
    if model.ffn_bias:
        parts.append(_whole("down.bias", prefix + "down.bias", (hidden,)))
    return tuple(parts)


def shared_columns(model: ModelSpec, start: int, stop: int) -> tuple[int, int]:
    """The shared expert's columns that come along with columns [start, stop) of the others."""
    shared, columns = model.shared_intermediate_size, model.intermediate_size
    return start * shared // columns, stop * shared // columns


def _mixture(model: ModelSpec, prefix: str, start: int, stop: int) -> tuple[TensorPart, ...]:
    """Columns [start, stop) of every expert, and what chooses experts."""
    experts = _experts(model, prefix, range(model.num_experts), start, stop)
    return (*_around_experts(model, prefix, start, stop), *experts)


def _around_experts(model: ModelSpec, prefix: str, start: int, stop: int) -> list[TensorPart]:
    """The norm and the router, whole, and what comes of the shared expert with columns [start, stop)."""
    parts = _part_norms(model, prefix)
    parts.append(_whole("router.weight", f"{prefix}router.weight", (model.num_experts, model.hidden_size)))
    if model.ffn_bias:
        parts.append(_whole("router.bias", f"{prefix}router.bias", (model.num_experts,)))
    if model.shared_expert_gate:
        parts.append(_whole("shared_gate.weight", f"{prefix}shared_gate.weight", (1, model.hidden_size)))
    if model.shared_intermediate_size:
        cut = shared_columns(model, start, stop)
        parts += _expert(model, prefix, "shared.", model.shared_intermediate_size, *cut)
    return parts


def _experts(model: ModelSpec, prefix: str, numbers: range, start: int, stop: int) -> tuple[TensorPart, ...]:
    columns = model.intermediate_size
    each = (_expert(model, prefix, f"experts.{number}.", columns, start, stop) for number in numbers)
    return tuple(part for expert in each for part in expert)


def _expert(
    model: ModelSpec, prefix: str, own: str, columns: int, start: int, stop: int
) -> Iterator[TensorPart]:
    """Columns [start, stop) of one expert, whose keys begin with `own`. The bias of its sum comes with the
    first column.
    """
    hidden = model.hidden_size
    for key in ("up", "gate") if model.gated_ffn else ("up",):
        shapes = [("weight", (columns, hidden)), ("bias", (columns,))]
        for kind, shape in shapes if model.ffn_bias else shapes[:1]:
            name = f"{own}{key}.{kind}"
            yield TensorPart(name, prefix + name, shape, 0, start, stop, FFN_BLOCK)
    name = f"{own}down.weight"
    yield TensorPart(name, prefix + name, (hidden, columns), 1, start, stop, FFN_BLOCK)
    if model.ffn_bias and start == 0 < stop:
        name = f"{own}down.bias"
        yield _whole(name, prefix + name, (hidden,))
