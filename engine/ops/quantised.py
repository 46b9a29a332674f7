"""A layer with 8-bit or 4-bit matrices: each is converted back before it is multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import ClassVar

from engine.domain.model import ModelSpec
from engine.domain.plan import Bits, Slice
from engine.ops.core import Block
from engine.ops.kernels import elementwise
from engine.ops.layers import Layers
from engine.ops.layout import tensor_parts
from engine.ops.mixture import chosen_experts
from engine.ops.operation import Cost, Operation, Share, whole_share
from engine.ops.ragged import CacheName
from engine.ops.sizes import STORED_BITS
from engine.ops.tensors import Meta


@dataclass(frozen=True, slots=True)
class QuantisedBlock(Operation):
    """A whole layer on quantised matrices, `speed` times as fast as its kernels would be on the device.

    Matrices that a device does not read as they are stored (`Kernel`) are restored: one pass per matrix, and
    the largest matrix is there in full while it is used.
    """

    layer: int
    bits: Bits
    cache: CacheName | None = None
    speed: float = 1.0
    name: ClassVar[str] = "block"
    takes: ClassVar[str] = "B T D"

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return quantised_slices(self.layer, self.bits)

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        bits = STORED_BITS[self.bits]
        block = Block(self.layer, self.cache).cost(_in_bits(model, bits), inputs, cached)
        parts = [part for piece in self.slices(model) for part in tensor_parts(model, piece)]
        read = chosen_experts(model, prod(inputs[0].shape[:-1])) if model.num_experts else 0
        matrices = [part for part in parts if part.is_matrix and not _is_beyond(part.key, read)]
        size = model.element_bytes
        kernels = (
            *(
                elementwise(1, matrix.num_elements, size, name="dequantise", weight_bits=bits)
                for matrix in matrices
            ),
            *block.kernels,
        )
        scratch = block.scratch_bytes + size * max(matrix.num_elements for matrix in matrices)
        return block._replace(kernels=kernels, scratch_bytes=scratch, speed=self.speed)

    def share(self, model: ModelSpec, inputs: Sequence[Meta]) -> Share:
        return whole_share(model, prod(inputs[0].shape[:2]))


def _is_beyond(key: str, num_experts: int) -> bool:
    """Whether a tensor is of an expert after the first `num_experts`, which stand for those that are read."""
    kind, _, rest = key.partition(".")
    return kind == "experts" and int(rest.partition(".")[0]) >= num_experts


@lru_cache(maxsize=64)
def _in_bits(model: ModelSpec, bits: float) -> ModelSpec:
    return model.model_copy(update={"weight_bits": bits})


@lru_cache(maxsize=1024)
def quantised_layers(num_layers: int, bits: Bits, cache: CacheName | None, speed: float) -> Layers:
    """The first `num_layers` layers as `QuantisedBlock` in `bits` bits, `speed` times as fast; the same
    object for the same arguments.
    """
    return Layers(tuple(QuantisedBlock(layer, bits, cache, speed) for layer in range(num_layers)))


def quantised_slices(layer: int, bits: Bits) -> tuple[Slice, Slice]:
    """The slices of both parts of a layer, in `bits` bits."""
    return Slice(layer=layer, part="attention", bits=bits), Slice(layer=layer, part="ffn", bits=bits)
