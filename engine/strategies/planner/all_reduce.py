"""The search of methods that add up partial sums by an all-reduce, and the algorithms that it chooses."""

from __future__ import annotations

from functools import cache

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.planning.judge import Judge
from engine.planning.search import Shares
from engine.program.collectives import AllReduce
from engine.program.strategy import Strategy
from engine.strategies.planner.estimate import SplitEstimate
from engine.strategies.planner.groups import Group
from engine.strategies.planner.split import SplitSearch, bounds_in, shares_in
from engine.strategies.shared.all_reduce_time import AllReduceChoice
from engine.strategies.shared.demand import Demand
from engine.strategies.shared.embedding import EmbeddingChoice
from engine.strategies.shared.tensor_parallel import Bounds, TensorParallelLayout, bounds_plan

MOST_PLAYED = 8
"""The most members with whom both algorithms are played; of more, an estimate chooses."""
WAYS: tuple[AllReduce, ...] = ("ring", "direct")


class AllReduceSearch(SplitSearch[TensorParallelLayout]):
    """The search for one run, whose head is cut too if it `splits_head`; of a group, the algorithms are those
    that are best with its first shares.
    """

    def __init__(
        self,
        method: Strategy,
        cluster: ClusterSpec,
        model: ModelSpec,
        demand: Demand,
        how: AllReduceChoice,
        splits_head: bool = False,
        embedding: EmbeddingChoice = "source",
    ):
        judge = Judge(method, cluster, model, demand.rows, demand.new_tokens, demand.batch)
        super().__init__(SplitEstimate(cluster, model, demand, how), judge)
        self.how, self.ends = how, (splits_head, embedding)
        self.name = method.name
        self.chosen = cache(self._chosen)

    def plan_in(self, bounds: Bounds) -> Plan[TensorParallelLayout]:
        """The plan with these shares; raises `PlanError` if memory is short."""
        return self.plan_of(self.model, shares_in(bounds))

    def plan_of(self, model: ModelSpec, shares: Shares) -> Plan[TensorParallelLayout]:
        return self._plan(model, shares, self.chosen(shares.group))

    def _plan(
        self, model: ModelSpec, shares: Shares, how: AllReduceChoice | tuple[AllReduce, AllReduce]
    ) -> Plan[TensorParallelLayout]:
        return bounds_plan(self.name, self.cluster, model, self.demand, bounds_in(shares), how, *self.ends)

    def _chosen(self, group: Group) -> AllReduceChoice | tuple[AllReduce, AllReduce]:
        """The algorithms for prompts and for tokens that are fastest with the shares from which a search in
        this group begins.
        """
        starts = self.starts(group)
        if self.how != "auto" or not 1 < len(group) <= MOST_PLAYED or not starts:
            return self.how
        played = {how: self._times(starts[0], how) for how in WAYS}
        (ring_s, ring_token_s), (direct_s, direct_token_s) = played["ring"], played["direct"]
        prompt: AllReduce = "direct" if direct_s < ring_s else "ring"
        return prompt, "direct" if direct_token_s < ring_token_s else "ring"

    def _times(self, shares: Shares, how: AllReduce) -> tuple[float, float]:
        return self.judge.times(lambda model: self._plan(model, shares, how))
