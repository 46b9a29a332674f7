"""What an owner of blocks keeps between forward passes."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.plan import Plan
from engine.strategies.edgeformer.allocation import HeadAllocation, Site
from engine.strategies.edgeformer.choices import MappingTables
from engine.strategies.edgeformer.costs import AttentionRows
from engine.strategies.edgeformer.layout import HeadsLayout
from engine.strategies.edgeformer.memory import HeadRooms
from engine.strategies.edgeformer.scores import Scores
from engine.strategies.edgeformer.transfers import Transfers


class KeptAllocation(NamedTuple):
    """An allocation that is reused for a sequence's tokens, with the importance by which it was made and the
    conditions at that time.
    """

    allocation: HeadAllocation
    scores: Scores
    cluster: ClusterSpec
    failed: frozenset[int]


class OwnerState:
    """A device's state under one plan."""

    def __init__(self, plan: Plan[HeadsLayout], tables: MappingTables):
        self.version, layout = plan.version, plan.layout
        self.params = layout.params
        self.rooms = HeadRooms(layout.own_heads, layout.lent_heads)
        self.lenders = layout.lenders
        self.weighed_heads = layout.weighed_heads
        self.workers = layout.workers
        self.passes = layout.passes
        self.passed: Counter[int] = Counter()
        self.tables = tables
        self.kept: dict[tuple[str, int], KeptAllocation] = {}
        self.deadlines_s: dict[AttentionRows, float] = {}
        self.sites: dict[AttentionRows, tuple[Site, ...]] = {}
        self.transfers = Transfers()
        self.conditions: tuple[ClusterSpec, frozenset[int]] | None = None
        self.shown: dict[int, object] = {}
        self.idle_periods = 0
