"""How many rows of the KV cache a plan keeps, for strategies that can evict or offload rows.

`kv_pressure.py` computes the numbers when a plan is made. During the run `kv_pressure.py` and `kv_disk.py`
read them.
"""

from __future__ import annotations

from pydantic import Field

from engine.domain.plan import Layout
from engine.domain.values import Count
from engine.program.strategy import Step


class KVLayout(Layout):
    """Base of the layouts of strategies that have the parameter `kv_pressure`."""

    kv_rows: Count | None = Field(
        default=None, description="Rows that a KV cache keeps; older ones are recomputed. None: all rows."
    )
    kv_memory_rows: Count | None = Field(
        default=None, description="Rows that stay in memory; older ones go to disk. None: all rows."
    )

    def evicted_rows(self, step: Step) -> int:
        """How many of the oldest tokens are not in the cache after `step`."""
        rows = step.start + step.rows
        return 0 if self.kv_rows is None else max(0, rows - self.kv_rows)

    def rows_in_step(self, step: Step) -> int:
        """Rows that pass through the layers: the new ones, and the evicted ones that are not among them."""
        return step.rows + min(step.start, self.evicted_rows(step))
