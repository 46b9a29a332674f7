"""Operations that copy rows of a KV cache to a tensor and back, or drop them, to move them between devices.

Rows count from the first one that this device has of the cache: a device that only stores rows for another
one starts at 0, whatever their positions in the sequence. Tensors are [2, B, K, rows, E]: keys and values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.ops.kernels import elementwise
from engine.ops.operation import Cost, Operation
from engine.ops.tensors import Meta


@dataclass(frozen=True, slots=True)
class TakeRows(Operation):
    """A copy of rows [start, stop) of `layer`'s cache with `batch` sequences, all its KV heads."""

    layer: int
    start: int
    stop: int
    batch: int
    cache: str
    name: ClassVar[str] = "take_rows"

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        check_rows(self, cached)
        shape = (2, self.batch, model.num_kv_heads, self.stop - self.start, model.head_dim)
        rows = 2 * self.batch * model.num_kv_heads * (self.stop - self.start)
        return Cost((elementwise(rows, model.head_dim, model.element_bytes),), Meta(shape, model.dtype))


@dataclass(frozen=True, slots=True)
class PutRows(Operation):
    """Rows [2, B, K, rows, E] → the end of `layer`'s cache; the result is empty."""

    layer: int
    cache: str
    name: ClassVar[str] = "put_rows"
    takes: ClassVar[str] = "2 B K rows E"

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        (rows,) = inputs
        pairs, batch, heads, count, wide = rows.shape
        kernel = elementwise(pairs * batch * heads * count, wide, model.element_bytes)
        added = pairs * batch * heads * count * wide * model.element_bytes
        return Cost((kernel,), Meta((0,), model.dtype), 0, added, count)


@dataclass(frozen=True, slots=True)
class DropRows(Operation):
    """Remove rows [start, stop), the last ones of `layer`'s cache; the result is empty."""

    layer: int
    start: int
    stop: int
    batch: int
    cache: str
    name: ClassVar[str] = "drop_rows"

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        check_rows(self, cached)
        if self.stop != cached:
            raise PlanError(
                f"drop_rows of layer {self.layer}: the KV cache {self.cache} has {cached} rows, expected "
                f"{self.stop}: only the newest rows can be dropped."
            )
        rows = self.stop - self.start
        dropped = 2 * self.batch * model.num_kv_heads * rows * model.head_dim * model.element_bytes
        return Cost((), Meta((0,), model.dtype), 0, -dropped, -rows)


def check_rows(op: TakeRows | DropRows, cached: int) -> None:
    """Check that the cache has the rows of `op`; raises `PlanError`."""
    if not 0 <= op.start <= op.stop <= cached:
        raise PlanError(
            f"{op.name} of layer {op.layer}: the KV cache {op.cache} has {cached} rows, expected at least "
            f"{op.start}:{op.stop}."
        )
