"""Tensor parallelism: every device computes some heads and some feed-forward columns of every layer.

Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism"
(2019): Q, K, V and the first FFN matrix column-parallel, the output matrices row-parallel, two
all-reduces of the hidden state per layer. Shares may be uneven; each device keeps at least the norms.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.workload import Workload
from engine.planning.search import Shares
from engine.strategies.planner.all_reduce import AllReduceSearch
from engine.strategies.planner.choice import PLANNER_HELP, PlannedParams, PlannerChoice
from engine.strategies.planner.groups import Group
from engine.strategies.shared.all_reduce_time import ALL_REDUCE_HELP, AllReduceChoice
from engine.strategies.shared.by_hand import bounds_by_hand, of_shares
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.embedding import EMBEDDING_HELP, EmbeddingChoice
from engine.strategies.shared.shares import head_shares, largest_remainder, layer_s
from engine.strategies.shared.tensor_parallel import (
    TensorParallel,
    TensorParallelLayout,
    bounds_plan,
    split_plan,
)


class MegatronParams(PlannedParams):
    units = ("heads", "columns")
    rule = ("shares",)
    planner: PlannerChoice = Field(
        default="best",
        description=PLANNER_HELP.format(
            rule="all devices, with the shares that `shares` says; the default if `shares` is given"
        ),
    )
    shares: Literal["equal", "proportional"] = Field(
        default="equal",
        description="With planner=paper, heads and columns per device: equal, or in proportion to its speed.",
    )
    all_reduce: AllReduceChoice = Field(
        default="auto",
        description=ALL_REDUCE_HELP,
    )
    head: Literal["source", "columns"] = Field(
        default="source",
        description="Where logits are computed: on the source, or cut by the vocabulary among all devices, "
        "which send their best token alone.",
    )
    embedding: EmbeddingChoice = Field(default="source", description=EMBEDDING_HELP)


class MegatronSearch(AllReduceSearch):
    """The search of Megatron, whose rule has equal shares."""

    def rule(self, group: Group) -> list[Shares]:
        equal = [1.0] * len(group)
        shares = head_shares(self.model, equal), largest_remainder(self.model.intermediate_size, equal)
        return [Shares(group, shares)]


class Megatron(TensorParallel[MegatronParams, TensorParallelLayout]):
    name = "megatron"
    splits_heads = True
    title = "Tensor parallel (Megatron)"
    paper = "Shoeybi et al., Megatron-LM, 2019"
    summary = "Every layer is split by heads and columns; two all-reduces per layer join the partial sums."
    rule = (
        "All devices take part, in the order of their list: another order, or one better device or link, "
        "can be slower."
    )
    Params = MegatronParams
    Layout = TensorParallelLayout

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: MegatronParams
    ) -> Plan[TensorParallelLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        ends = params.head == "columns", params.embedding
        if params.planner == "best":
            search = MegatronSearch(self, cluster, model, demand, params.all_reduce, *ends)
            if params.plan is not None:
                return search.plan_in(bounds_by_hand(self.name, cluster, model, params.plan))
            found = search.best_plan()
            if found is not None:
                return found
        elif params.plan is not None:
            bounds = bounds_by_hand(self.name, cluster, model, params.plan)
            return bounds_plan(self.name, cluster, model, demand, bounds, params.all_reduce, *ends)
        weights = [
            1.0 if params.shares == "equal" else 1 / layer_s(cluster.devices[rank], model, demand)
            for rank in cluster.workers
        ]
        columns = largest_remainder(model.intermediate_size, weights)
        shares = head_shares(model, weights), columns
        return split_plan(self.name, cluster, model, demand, *shares, params.all_reduce, *ends)

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[TensorParallelLayout]) -> PlanByHand:
        return of_shares(cluster, plan.layout)
