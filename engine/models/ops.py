"""Operations of a transformer as data: what a device computes, what it costs, what it needs resident.

An op is a frozen value. `cost` needs only shapes; `engine/models/torch_ops.py` has the arithmetic. An
op that names a `cache` appends the keys and values of its T new rows to the device's KV cache of that
name and layer, and attends over all S rows in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from engine.cost import Kernel
from engine.models.spec import ModelSpec
from engine.plan import Slice
from engine.tensors import Meta


class Cost(NamedTuple):
    """Kernels to run, shape of the result, bytes of temporary tensors, bytes added to the KV cache."""

    kernels: tuple[Kernel, ...]
    output: Meta
    scratch_bytes: int = 0
    kv_bytes: int = 0


class Op(Protocol):
    """`layer` is -1 outside the layers. `cache` is the KV cache's name or None."""

    layer: int
    cache: str | None

    @property
    def name(self) -> str: ...

    def slices(self, model: ModelSpec) -> Sequence[Slice]:
        """Weights that must be resident on the device."""

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        """`cached` is the number of rows already in this op's KV cache (0 without one)."""
