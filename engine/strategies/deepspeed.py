"""DeepSpeed-Inference's automatic tensor parallelism: every layer in equal shards, one per device.

Aminabadi et al., "DeepSpeed-Inference: Enabling Efficient Inference of Transformer Models at
Unprecedented Scale" (SC 2022). The sharding and the two all-reduces per layer are Megatron-LM's; all
devices get the same share, whatever their speed and memory. A model whose heads cannot be divided equally is
refused. The paper's fused GPU kernels are not modelled: an operation takes as long as in other strategies.
"""

from __future__ import annotations

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
from engine.strategies.shared.tensor_parallel import (
    TensorParallel,
    TensorParallelLayout,
    bounds_plan,
    split_plan,
)


class DeepSpeedParams(PlannedParams):
    units = ("heads", "columns")
    planner: PlannerChoice = Field(default="paper", description=PLANNER_HELP.format(rule="all devices"))
    all_reduce: AllReduceChoice = Field(default="auto", description=ALL_REDUCE_HELP)


class EqualSearch(AllReduceSearch):
    """The search for the group whose members get equal shares."""

    def starts(self, group: Group) -> list[Shares]:
        others = [rank for rank in self.cluster.workers if rank not in group]
        if self.judge.method.supports(self.cluster.without(others), self.model) is not None:
            return []
        sizes = (self.model.num_heads, self.model.intermediate_size)
        return [Shares(group, tuple((size // len(group),) * len(group) for size in sizes))]

    def exact(self, group: Group) -> list[Shares]:
        return []

    def steps(self) -> tuple[int, ...]:
        return 0, 0


class DeepSpeed(TensorParallel[DeepSpeedParams, TensorParallelLayout]):
    name = "deepspeed"
    splits_heads = True
    title = "Equal tensor parallel (DeepSpeed)"
    paper = "Aminabadi et al., DeepSpeed-Inference, SC 2022"
    summary = "Tensor parallelism in equal shards, one per device; all-reduces join the partial sums."
    rule = (
        "All devices take part, in the order of their list: another order, or one better device or link, "
        "can be slower."
    )
    Params = DeepSpeedParams
    Layout = TensorParallelLayout

    def supports(self, cluster: ClusterSpec, model: ModelSpec) -> str | None:
        devices, kv_heads = len(cluster.workers), model.num_kv_heads
        units = {"attention heads": model.num_heads, "feed-forward columns": model.intermediate_size}
        uneven = [f"{count} {name}" for name, count in units.items() if count % devices]
        if model.group_size > 1 and kv_heads % devices and devices % kv_heads:
            uneven.append(f"{kv_heads} KV heads")
        if not uneven:
            return super().supports(cluster, model)
        return (
            f"every device gets an equal shard, but {model.name} has {' and '.join(uneven)}, which "
            f"{devices} workers cannot share equally."
        )

    def replan(
        self,
        plan: Plan[TensorParallelLayout],
        cluster: ClusterSpec,
        model: ModelSpec,
        workload: Workload,
        params: DeepSpeedParams,
    ) -> Plan[TensorParallelLayout]:
        """Use as many of the remaining workers as can share equally, by rank."""
        workers = cluster.workers
        equal = next(
            fewer
            for count in range(len(workers), 0, -1)
            if self.supports(fewer := cluster.without(workers[count:]), model) is None
        )
        return self.plan(equal, model, workload, params.without_plan())

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: DeepSpeedParams
    ) -> Plan[TensorParallelLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        if params.planner == "best":
            search = EqualSearch(self, cluster, model, demand, params.all_reduce)
            if params.plan is not None:
                return search.plan_in(bounds_by_hand(self.name, cluster, model, params.plan))
            found = search.best_plan()
            if found is not None:
                return found
        elif params.plan is not None:
            bounds = bounds_by_hand(self.name, cluster, model, params.plan)
            return bounds_plan(self.name, cluster, model, demand, bounds, params.all_reduce)
        devices = len(cluster.workers)
        heads = [model.num_heads // devices] * devices
        columns = [model.intermediate_size // devices] * devices
        return split_plan(self.name, cluster, model, demand, heads, columns, params.all_reduce)

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[TensorParallelLayout]) -> PlanByHand:
        return of_shares(cluster, plan.layout)
