"""Keep the oldest rows of the KV cache on the device's disk and read them back for every step.

Strategies without memory management of their own use this with `kv_pressure=offload_kv`. While a layer runs,
the next layer's rows are read from disk; its own rows are dropped from memory while the following operations
run. At most two layers have all their rows in memory at the same time, and every operation works on the same
tensors as with unlimited memory. A row is written to disk once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from engine.domain.plan import Plan
from engine.ops.operation import Op
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx, Handle
from engine.program.strategy import Step
from engine.strategies.shared.kv_layout import KVLayout

Compute = Callable[..., Awaitable[Any]]


class DiskRows:
    """The KV caches of `layers` in one step on this device; `compute` runs an operation."""

    def __init__(
        self, ctx: Ctx, plan: Plan[KVLayout], step: Step, layers: range, compute: Compute | None = None
    ):
        self.ctx, self.step, self.layers = ctx, step, layers
        self._compute = compute or ctx.compute
        rows = step.start + step.rows
        kept = rows if plan.layout.kv_memory_rows is None else plan.layout.kv_memory_rows
        self.away = max(0, step.start - kept)
        self.leaving = max(0, rows - kept) if layers else 0
        self.fetching: dict[int, Handle] = {}
        self.storing: tuple[int, Handle] | None = None

    @property
    def active(self) -> bool:
        """Whether this step moves rows to disk."""
        return self.leaving > 0

    def begin(self) -> None:
        """Start reading the first layer's rows. The device may wait for its input meanwhile."""
        self._fetch(self.layers.start)

    async def compute(self, op: Op, *inputs: Tensor) -> Tensor:
        """Run `op` on `inputs` of the shapes that it takes, once all rows of its KV cache are in memory."""
        if not self.active or not isinstance(op.cache, str):
            return await self._compute(op, *inputs)
        await self.settle()
        if op.layer in self.fetching:
            await self.fetching.pop(op.layer)
        self._fetch(op.layer + 1)
        result = await self._compute(op, *inputs)
        self.storing = op.layer, self.ctx.managed_memory.store_rows(op.cache, op.layer, self.leaving)
        return result

    async def settle(self) -> None:
        """Wait until the rows of the layer that ran last are on disk, then drop them from memory."""
        if self.storing is not None:
            layer, stored = self.storing
            self.storing = None
            await stored
            self.ctx.managed_memory.drop_rows(self.step.cache, layer)

    def _fetch(self, layer: int) -> None:
        if self.away and layer in self.layers:
            self.fetching[layer] = self.ctx.managed_memory.fetch_rows(self.step.cache, layer)


def disk_rows(
    ctx: Ctx, plan: Plan[KVLayout], step: Step, heads: tuple[int, int], compute: Compute | None = None
) -> DiskRows:
    """`DiskRows` of a device with query heads [start, stop) of every layer, none without heads. `compute`
    runs an operation, `ctx.compute` if it is None.
    """
    start, stop = heads
    return DiskRows(ctx, plan, step, range(ctx.model.num_layers if start < stop else 0), compute)
