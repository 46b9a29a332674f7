"""Computes the bytes of weights and KV caches from a model's spec."""

from __future__ import annotations

from functools import lru_cache

from engine.domain.model import ModelSpec, draft_of
from engine.domain.plan import Bits, Slice, of_model
from engine.ops.layout import TensorPart, tensor_parts, whole_model

GROUP_INPUTS = 128
"""Inputs that share one scale in 4-bit quantisation."""
HIGHEST = {8: 127, 4: 7}
SCALE_BYTES = 2
STORED_BITS: dict[float, float] = {8: 8.0, 4: 4 + 8 * SCALE_BYTES / GROUP_INPUTS}
"""Bits per number with its share of a scale; that of 8 bits is less than a thousandth."""
COMPUTED_BITS = (0, *STORED_BITS)
"""What a model's `weight_bits` may be in a run that computes."""


def bits_of(model: ModelSpec, piece: Slice) -> Bits:
    """8 or 4 where the matrices of `piece` are in a format that kernels here compute with, else 0."""
    if piece.bits:
        return piece.bits
    return 8 if model.weight_bits == 8 else 4 if model.weight_bits == 4 else 0


@lru_cache(maxsize=16384)
def weight_bytes(model: ModelSpec, piece: Slice) -> int:
    """Bytes of `piece`, norms and output biases of its part included.

    A tied head includes its table: the caller subtracts it once for a device that also has `embed`.
    """
    if piece.draft:
        return weight_bytes(draft_of(model), of_model(piece))
    bits = bits_of(model, piece)
    return sum(part_bytes(model, part, bits) for part in tensor_parts(model, piece))


def table_bytes(model: ModelSpec, rows: int) -> int:
    """Bytes of so many rows of a tied table."""
    matrix = TensorPart("", "", (rows, model.hidden_size), 0, 0, rows, 1)
    return part_bytes(model, matrix, bits_of(model, Slice(layer=-1, part="embed")))


def part_bytes(model: ModelSpec, part: TensorPart, bits: Bits) -> int:
    """Bytes of a tensor of the weights, `part` with its shape, as `bits_of` its piece says."""
    if not part.is_matrix:
        return model.element_bytes * part.num_elements
    if bits:
        return quantised_bytes(part, bits)
    return round(part.num_elements * (model.weight_bits or 8 * model.element_bytes) / 8)


def quantised_bytes(matrix: TensorPart, bits: Bits) -> int:
    """Bytes of `matrix` [outputs, inputs] in 8 or 4 bits and of its scales.

    `engine/models/weights/quantise.py` makes these numbers.
    """
    outputs, inputs = matrix.shape
    if bits == 8:
        return outputs * (inputs + SCALE_BYTES)
    return outputs * (-(-inputs // 2) + SCALE_BYTES * -(-inputs // GROUP_INPUTS))


def kv_bytes_per_row(model: ModelSpec, num_kv_heads: int) -> int:
    """Bytes that one token adds to one layer's KV cache of `num_kv_heads` heads, keys and values."""
    return 2 * num_kv_heads * model.head_dim * model.element_bytes


@lru_cache(maxsize=256)
def num_parameters(model: ModelSpec) -> int:
    """Numbers in the whole model; a tied table counts once."""
    parts = (part for piece in whole_model(model) for part in tensor_parts(model, piece))
    return sum({part.name: part.num_elements for part in parts}.values())


@lru_cache(maxsize=256)
def model_bytes(model: ModelSpec) -> int:
    """Bytes of the whole model on one device; a tied table counts once."""
    bits = bits_of(model, Slice(layer=-1, part="embed"))
    parts = {part.name: part for piece in whole_model(model) for part in tensor_parts(model, piece)}
    return sum(part_bytes(model, part, bits) for part in parts.values())
