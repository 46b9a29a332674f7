"""Find the group and the shares with which Galaxy answers a request soonest. Pure.

The search is that of all methods that split layers (`planner/split.py`); rows are a third unit. It plays the
paper's plan too, so that its own is never slower.
"""

from __future__ import annotations

from functools import cache

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.planning.judge import Judge
from engine.planning.search import Shares
from engine.program.strategy import Strategy
from engine.strategies.galaxy.plan import (
    Choice,
    GalaxyLayout,
    NoRoom,
    RowShares,
    choose,
    plan_with,
    task_of,
)
from engine.strategies.planner.estimate import SplitEstimate
from engine.strategies.planner.groups import Group
from engine.strategies.planner.split import SplitSearch, bounds_in, shares_in
from engine.strategies.shared.demand import Demand
from engine.strategies.shared.shares import largest_remainder

ROWS_MOVED = 32
"""Rows move in this part of all, at least one."""


class GalaxyEstimate(SplitEstimate):
    """Rough times of one run. Over a prompt the rows go around a ring, with `overlap` beside the products.
    The sums of a token go to the first member, and from there to all.
    """

    def __init__(self, cluster: ClusterSpec, model: ModelSpec, demand: Demand, overlap: bool):
        super().__init__(cluster, model, demand)
        self.overlap, self.star_s = overlap, cache(self._star)

    def layer_s(self, shares: Shares, number: int) -> float:
        group, (*_, rows) = shares
        parts_s, rest_s = self.slowest_s(shares, number), self.part_s(group[0], "residual", 0, number)
        if self.phases[number].rows == 1:
            return sum(parts_s) + 2 * (rest_s + self.star_s(group, number))
        longest = len(group) * max(rows) / sum(rows)
        ring_s = 2 * longest * self.ring_s(group, number)
        rest_s = max(
            self.part_s(rank, "residual", 0, number) * mine / sum(rows)
            for rank, mine in zip(group, rows, strict=True)
        )
        between_s = (max(part_s, ring_s) if self.overlap else part_s + ring_s for part_s in parts_s)
        return sum(between_s) + 2 * rest_s

    def _star(self, group: Group, number: int) -> float:
        pairs = tuple((rank, group[0]) for rank in group[1:])
        both = (pairs, tuple((first, rank) for rank, first in pairs))
        return sum(self.at_once_s(way, self.rows_bytes(number)) for way in both)


class GalaxySearch(SplitSearch[GalaxyLayout]):
    """The search for one run. Heads go in whole KV groups. Rows stay equal or proportional to speed if
    `row_shares` says so.
    """

    def __init__(
        self,
        method: Strategy,
        cluster: ClusterSpec,
        model: ModelSpec,
        demand: Demand,
        overlap: bool,
        row_shares: RowShares,
    ):
        judge = Judge(method, cluster, model, demand.rows, demand.new_tokens, demand.batch)
        super().__init__(GalaxyEstimate(cluster, model, demand, overlap), judge)
        self.name, self.overlap, self.row_shares = method.name, overlap, row_shares

    def rule(self, group: Group) -> list[Shares]:
        task = task_of(self.name, self.cluster, self.model, self.demand, self.overlap, group)
        try:
            choice = choose(task, "exact", self.row_shares)
        except NoRoom:
            return []
        heads, columns = shares_in(choice.bounds).amounts
        return [Shares(group, (heads, columns, largest_remainder(self.demand.rows, choice.row_weights)))]

    def plan_of(self, model: ModelSpec, shares: Shares) -> Plan[GalaxyLayout]:
        task = task_of(self.name, self.cluster, model, self.demand, self.overlap, shares.group)
        choice = Choice(bounds_in(shares), tuple(map(float, shares.amounts[2])), "best", 0.0)
        return plan_with(self.name, task, self.overlap, choice)

    def steps(self) -> tuple[int, ...]:
        are_moved = self.row_shares == "best" and self.demand.rows > 1
        rows = max(1, self.demand.rows // ROWS_MOVED) if are_moved else 0
        return self.model.group_size, super().steps()[1], rows

    def with_rest(self, shares: Shares) -> list[Shares]:
        """`shares` with rows, equal and in proportion to speed."""
        equal, quick = (1.0,) * len(shares.group), tuple(map(self.speed, shares.group))
        ways = {"equal": [equal], "proportional": [quick], "best": [equal, quick]}[self.row_shares]
        divided = (largest_remainder(self.demand.rows, weights) for weights in ways)
        return [shares._replace(amounts=(*shares.amounts, rows)) for rows in dict.fromkeys(divided)]

    def head_unit(self, group: Group) -> int:
        return self.model.group_size
