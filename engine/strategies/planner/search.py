"""Find the group of devices, and what each of it has, with which a request is answered soonest. Pure.

An estimate ranks groups (`groups.py`). The judge plays the best of them, and moves of units from there on
(`engine/planning`). Every method that divides units searches here; what it divides is its own.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from functools import cache
from math import inf
from typing import Any, Generic

from typing_extensions import TypeVar

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Layout, Plan
from engine.planning.judge import Judge
from engine.planning.search import Shares, fastest_shares
from engine.strategies.planner.groups import Group, best_groups
from engine.strategies.planner.order import nearest_first
from engine.strategies.shared.demand import Demand
from engine.strategies.shared.shares import layer_s

LayoutT = TypeVar("LayoutT", bound=Layout, default=Any)

STARTS = 10
"""How many of the groups that are best by estimate may be played."""
REFINED_GROUPS, REFINED_MEMBERS = 3, 8
"""In so many of the best groups, of at most so many members, a search also begins with `refined` shares."""


class GroupSearch(ABC, Generic[LayoutT]):
    """The search for one run. So many devices are played alone as `alone_played` says, however bad that
    looks.
    """

    alone_played = 3

    def __init__(self, judge: Judge, cluster: ClusterSpec, model: ModelSpec, demand: Demand):
        self.judge, self.cluster, self.model, self.demand = judge, cluster, model, demand
        self.speed = cache(self._speed)
        self.estimate_s, self.fits = cache(self._estimate_s), cache(self._fits)

    @abstractmethod
    def plan_of(self, model: ModelSpec, shares: Shares) -> Plan[LayoutT]:
        """The plan with these shares, of a model that may have fewer layers. Raises `PlanError` if memory is
        short.
        """

    @abstractmethod
    def starts(self, group: Group) -> list[Shares]:
        """Shares from which a search in this group begins; none without the memory."""

    def refined(self, group: Group) -> list[Shares]:
        """Further shares from which a search begins in the best groups, such that take long to find."""
        return []

    @abstractmethod
    def steps(self) -> tuple[int, ...]:
        """How many of each unit move at least."""

    @abstractmethod
    def _estimate_s(self, shares: Shares) -> float:
        """Roughly the seconds of the request with these shares."""

    @abstractmethod
    def _fits(self, shares: Shares) -> bool:
        """Whether every member has the memory, and the method allows these shares."""

    def best_plan(self) -> Plan[LayoutT] | None:
        """The plan of the fastest shares that have the memory, of the best groups and of the method's rule;
        None if none has.
        """
        order = nearest_first(self.cluster, self.model, self.demand)
        ranks = sorted(order, key=lambda rank: -self.speed(rank))
        groups = best_groups(ranks, self._group_s, order)
        able = [group for group in groups if self.starts(group)]
        starts = [start for group in able[:STARTS] for start in self.starts(group)]
        for group in able[:REFINED_GROUPS] or [order]:
            if 1 < len(group) <= REFINED_MEMBERS:
                starts += self.refined(group)
        alone = [start for group in able if len(group) == 1 for start in self.starts(group)][
            : self.alone_played
        ]
        steps, sure = self.steps(), [*self.rule(order), *alone]
        for shares in fastest_shares(starts, order, steps, self.estimate_s, self.seconds, self.fits, sure):
            with contextlib.suppress(PlanError):
                return self.plan_of(self.model, shares)
        return None

    def rule(self, group: Group) -> list[Shares]:
        """The shares of the paper's planner, for all workers in this order; none without the memory."""
        return []

    def seconds(self, shares: Shares) -> float:
        """Seconds of the request with these shares, by the judge."""
        return self.judge.seconds(lambda model: self.plan_of(model, shares))

    def _group_s(self, group: Group) -> float:
        return min((self.estimate_s(start) for start in self.starts(group)), default=inf)

    def _speed(self, rank: int) -> float:
        return 1 / layer_s(self.cluster.devices[rank], self.model, self.demand)
