"""The steps by which EdgeFormer decides for all blocks of one prefill, one method per step.

`engine/strategies/edgeformer/owner.py` takes the same steps inside a run. Here each can be called alone, so
that a benchmark can measure what a decision costs without knowing how it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.ops.heads import Features, Importance, Project
from engine.ops.tensors import Tensor, narrow
from engine.strategies.edgeformer.allocation import allocate, li_scores, normalised
from engine.strategies.edgeformer.choices import Found, Learn, Lookup, MappingTables
from engine.strategies.edgeformer.costs import AttentionRows, sites_of
from engine.strategies.edgeformer.params import EdgeFormerParams
from engine.strategies.edgeformer.table_size import CAPACITY, FEATURE_POINTS

T_MAX_S = 1.0
"""Deadline of a block for the allocation that is measured: the cost does not depend on it."""


class PrefillDecisions:
    """Plays the decisions of a prefill. `compute` runs an operation on tensors. Device 0 of `cluster` owns
    all blocks; the others are its neighbours.
    """

    def __init__(
        self, model: ModelSpec, cluster: ClusterSpec, num_tokens: int, compute: Callable[..., Tensor]
    ):
        self.model, self.compute = model, compute
        self.heads, self.kv_heads = tuple(range(model.num_heads)), tuple(range(model.num_kv_heads))
        self.params = EdgeFormerParams()
        self.tables, self.width = MappingTables(self.params, CAPACITY, same_prompt=False), 2 * model.head_dim
        self.packed: list[Tensor] = []
        self.found: list[Tensor] = []
        neighbours = range(1, len(cluster.devices))
        rows, rooms = AttentionRows(1, num_tokens, num_tokens), [model.num_heads] * len(cluster.devices)
        self.sites = sites_of(
            cluster, model, 0, neighbours, model.num_heads, rooms, rows, self.params.cost_model
        )
        self.supposed = normalised([float(head) for head in self.heads])

    def read(self, block_inputs: Sequence[Tensor]) -> None:
        """Project the inputs [B, T, D] of all blocks: the other steps work on the result."""
        project = range(self.model.num_layers)
        self.packed = [
            self.compute(Project(layer, 0, self.model.num_heads), x)
            for layer, x in zip(project, block_inputs, strict=False)
        ]

    def features(self) -> list[Tensor]:
        """What heads are looked up by."""
        self.found = [
            self.compute(Features(layer, FEATURE_POINTS), packed) for layer, packed in enumerate(self.packed)
        ]
        return self.found

    def importance(self) -> list[Tensor]:
        """The exact statistics of all heads, which only unknown heads need."""
        cut = self.model.num_heads + self.model.num_kv_heads
        return [
            self.compute(
                Importance(layer, self.heads, self.kv_heads),
                narrow(packed, 1, 0, self.model.num_heads),
                narrow(packed, 1, self.model.num_heads, cut),
            )
            for layer, packed in enumerate(self.packed)
        ]

    def learn(self) -> None:
        """Enter all heads into the mapping tables."""
        for layer, (statistics, features) in enumerate(zip(self.importance(), self.features(), strict=True)):
            Learn(self.tables, layer, self.width, self.heads)(statistics, features)

    def look_up(self) -> list[Found]:
        """What the mapping tables say of every head, by block."""
        return [
            Lookup(self.tables, layer, self.width, seen=False)(features)
            for layer, features in enumerate(self.found)
        ]

    def allocate(self) -> list[Any]:
        """Allocate heads to devices, with their LiScores, by block."""
        found = []
        for _ in self.packed:
            allocation = allocate(self.supposed, self.sites, T_MAX_S)
            scores = li_scores(self.supposed, allocation, self.sites, self.params.importance_weight)
            found.append((allocation, scores))
        return found
