"""Consecutive whole layers as one value, which a device computes one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from engine.ops.core import Block
from engine.ops.operation import Op
from engine.ops.ragged import CacheName, Ragged


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """Operations that each take the hidden states of the one before and give some of the same shape.

    Two are equal if they are the same object, so that looking one up does not compare its operations.
    """

    ops: tuple[Op, ...]
    caches: tuple[tuple[str, int], ...] = field(init=False)
    """(KV cache, layer) of the operations that have one; none of ragged batches."""
    is_ragged: bool = field(init=False)
    """Whether their rows are of several sequences, each with a KV cache of its own."""

    def __post_init__(self) -> None:
        caches = tuple((op.cache, op.layer) for op in self.ops if isinstance(op.cache, str))
        object.__setattr__(self, "caches", caches)
        object.__setattr__(self, "is_ragged", any(isinstance(op.cache, Ragged) for op in self.ops))

    def has_layer(self, layer: int) -> bool:
        """Whether `layer` is among them."""
        return self.ops[0].layer <= layer <= self.ops[-1].layer


@lru_cache(maxsize=4096)
def layers(start: int, stop: int, cache: CacheName | None) -> Layers:
    """The whole layers [start, stop); the same object for the same arguments."""
    return Layers(tuple(Block(layer, cache) for layer in range(start, stop)))
