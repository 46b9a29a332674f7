"""EdgeFormer's data-dependent choices: which heads are in the mapping table, and the importance of the
others.

The simulated world has no data. Unless a real run is replayed, it assumes heads of equal importance, which
the table misses in a block's first pass and hits in later ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.ops.tensors import Tensor, shape_of
from engine.strategies.edgeformer.params import EdgeFormerParams, Scoring

if TYPE_CHECKING:
    from engine.strategies.edgeformer.table import MappingTable


class MappingTables:
    """The mapping tables of one device's blocks, by layer."""

    def __init__(self, params: EdgeFormerParams):
        self.params = params
        self.tables: dict[int, MappingTable] = {}
        self.supposed: set[int] = set()

    def table(self, layer: int, width: int) -> MappingTable:
        """Made at its first use; `width` is the number of f_sep's components."""
        from engine.strategies.edgeformer.table import MappingTable

        if layer not in self.tables:
            params = self.params
            self.tables[layer] = MappingTable(width, params.zeta, params.tau, params.sep_norm == "unit")
        return self.tables[layer]


class Lookup:
    """Features [H, width + points] → raw importance of every head, None where the table has none near.

    `idle` says that a new request begins: then a table with many new entries recomputes its clusters.
    """

    def __init__(self, tables: MappingTables, layer: int, width: int, idle: bool):
        self.tables, self.layer, self.width, self.idle = tables, layer, width, idle

    def __call__(self, features: Tensor) -> list[float | None]:
        table = self.tables.table(self.layer, self.width)
        if self.idle and table.wants_order:
            table.recluster()
        return table.lookup(features.numpy())

    def prior(self, features: Tensor) -> list[float | None]:
        known = self.layer in self.tables.supposed and self.tables.params.tau >= 0
        return [1.0 if known else None] * shape_of(features)[0]


class Learn:
    """Exact statistics [h, 2] of the missed `heads`, features of all → raw importance of the missed."""

    def __init__(self, tables: MappingTables, layer: int, width: int, heads: tuple[int, ...]):
        self.tables, self.layer, self.width, self.heads = tables, layer, width, heads

    def __call__(self, statistics: Tensor, features: Tensor) -> list[float]:
        scoring = self.tables.params.importance
        raw = [raw_importance(variance, entropy, scoring) for variance, entropy in statistics.tolist()]
        self.tables.table(self.layer, self.width).learn(features.numpy()[list(self.heads)], raw)
        return raw

    def prior(self, statistics: Tensor, features: Tensor) -> list[float]:
        self.tables.supposed.add(self.layer)
        return [1.0] * len(self.heads)


def raw_importance(variance: float, entropy: float, scoring: Scoring) -> float:
    """Eq. 13 is variance plus entropy ("paper"). That ranks diffuse heads highest, against the paper's own
    rationale that a head of low variance may go: entropy reaches ln n, variance at most 1/n.
    """
    if scoring == "var":
        return variance
    return variance + entropy if scoring == "paper" else variance - entropy
