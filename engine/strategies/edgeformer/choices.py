"""EdgeFormer's data-dependent choices: what the mapping table says of a block's heads, and the importance of
heads that were measured.

The simulated world has no data. Unless a real run is replayed, it assumes heads of equal importance. A table
that is still empty knows none of them; later it knows all where every request has the same prompt, else
`expected_hits` of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, TypedDict

from engine.ops.tensors import Tensor, shape_of
from engine.strategies.edgeformer.params import EdgeFormerParams, Scoring

if TYPE_CHECKING:
    from engine.strategies.edgeformer.table import MappingTable


class Found(TypedDict):
    """Importance of every head's nearest entry, and whether it is within τ. Both are empty for an empty
    table.
    """

    raw: list[float]
    hit: list[bool]


class MappingTables:
    """The mapping tables of one device's blocks, by layer, of at most `capacity` entries each."""

    def __init__(self, params: EdgeFormerParams, capacity: int, same_prompt: bool):
        self.params, self.capacity, self.same_prompt = params, capacity, same_prompt
        self.tables: dict[int, MappingTable] = {}
        self.num_entries: Counter[int] = Counter()

    def table(self, layer: int, width: int) -> MappingTable:
        """The table of `layer`, made at its first use; `width` is the number of f_sep's components."""
        from engine.strategies.edgeformer.table import MappingTable

        if layer not in self.tables:
            params = self.params
            self.tables[layer] = MappingTable(
                width, params.zeta, params.tau, params.sep_norm == "unit", self.capacity
            )
        return self.tables[layer]

    def adopt(self, capacity: int, layers: Collection[int]) -> None:
        """Continue under a new plan: with the tables of `layers`, and `capacity` entries in each."""
        self.capacity = capacity
        for layer in self.num_entries.keys() - set(layers):
            del self.num_entries[layer]
            self.tables.pop(layer, None)
        for layer in self.num_entries:
            self.count(layer, 0)
        for table in self.tables.values():
            table.shrink(capacity)

    def count(self, layer: int, learnt: int) -> None:
        """Count heads of `layer` that were entered, in the real world or in a prediction."""
        self.num_entries[layer] = min(self.capacity, self.num_entries[layer] + learnt)


class Lookup:
    """Features [H, width + points] → what the table says. `seen` says that the same rows but the last ones
    were looked up before.
    """

    def __init__(self, tables: MappingTables, layer: int, width: int, seen: bool):
        self.tables, self.layer, self.width, self.seen = tables, layer, width, seen

    def __call__(self, features: Tensor) -> Found:
        raw, hit = self.tables.table(self.layer, self.width).lookup(features.numpy())
        return Found(raw=raw, hit=hit)

    def prior(self, features: Tensor) -> Found:
        tables, heads = self.tables, shape_of(features)[0]
        if not tables.num_entries[self.layer] or tables.params.tau < 0:
            return Found(raw=[], hit=[])
        share = 1.0 if self.seen or tables.same_prompt else tables.params.expected_hits
        known = round(share * heads)
        return Found(raw=[1.0] * heads, hit=[head < known for head in range(heads)])


class Learn:
    """Exact statistics [h, 2] of the measured `heads`, features of all → raw importance of the measured."""

    def __init__(self, tables: MappingTables, layer: int, width: int, heads: tuple[int, ...]):
        self.tables, self.layer, self.width, self.heads = tables, layer, width, heads

    def __call__(self, statistics: Tensor, features: Tensor) -> list[float]:
        raw = importance_of(statistics, self.tables.params.importance)
        self.tables.table(self.layer, self.width).learn(features.numpy()[list(self.heads)], raw)
        return raw

    def prior(self, statistics: Tensor, features: Tensor) -> list[float]:
        return [1.0] * len(self.heads)


class Measured:
    """Exact statistics [h, 2] → raw importance, of heads that no table remembers."""

    def __init__(self, scoring: Scoring):
        self.scoring = scoring

    def __call__(self, statistics: Tensor) -> list[float]:
        return importance_of(statistics, self.scoring)

    def prior(self, statistics: Tensor) -> list[float]:
        return [1.0] * shape_of(statistics)[0]


class Recluster:
    """Recompute the clusters of the table with the most new entries, if it has many → their layers.

    A prediction leaves it out: nobody waits for it, and it changes none of the simulated answers.
    """

    def __init__(self, tables: MappingTables):
        self.tables = tables

    def __call__(self) -> list[int]:
        tables = self.tables.tables
        wanting = [layer for layer, table in tables.items() if table.wants_order]
        chosen = sorted(wanting, key=lambda layer: (-tables[layer].num_added, layer))[:1]
        for layer in chosen:
            tables[layer].recluster()
        return chosen

    def prior(self) -> list[int]:
        return []


def importance_of(statistics: Tensor, scoring: Scoring) -> list[float]:
    """Raw importance of heads with these [variance, entropy]."""
    return [raw_importance(variance, entropy, scoring) for variance, entropy in statistics.tolist()]


def raw_importance(variance: float, entropy: float, scoring: Scoring) -> float:
    """The raw importance of heads. Eq. 13 is variance plus entropy ("paper"). That ranks diffuse heads
    highest, against the paper's own rationale that a head of low variance may go: entropy reaches ln n,
    variance at most 1/n.
    """
    if scoring == "var":
        return variance
    return variance + entropy if scoring == "paper" else variance - entropy
