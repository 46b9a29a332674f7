"""Computes the bytes of weights and KV caches from a model's spec."""

from __future__ import annotations

from functools import lru_cache

from engine.domain.model import ModelSpec
from engine.domain.plan import Bits, Slice
from engine.ops.layout import TensorPart, tensor_parts, whole_model

GROUP_INPUTS = 128
"""Inputs that share one scale in 4-bit quantisation."""
HIGHEST = {8: 127, 4: 7}
SCALE_BYTES = 2


@lru_cache(maxsize=16384)
def weight_bytes(model: ModelSpec, piece: Slice) -> int:
    """Bytes of `piece`, norms and output biases of its part included.

    A tied head includes its table: the caller subtracts it once for a device that also has `embed`.
    """
    return sum(
        quantised_bytes(part, piece.bits)
        if piece.bits and part.is_matrix
        else round(part.num_elements * model.weight_bits / 8)
        if model.weight_bits and part.is_matrix
        else model.element_bytes * part.num_elements
        for part in tensor_parts(model, piece)
    )


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


def num_parameters(model: ModelSpec) -> int:
    """Numbers in the whole model; a tied table counts once."""
    parts = (part for piece in whole_model(model) for part in tensor_parts(model, piece))
    return sum({part.name: part.num_elements for part in parts}.values())


def model_bytes(model: ModelSpec) -> int:
    """Bytes of the whole model on one device."""
    return num_parameters(model) * model.element_bytes
