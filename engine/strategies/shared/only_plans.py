"""Methods that are only a plan: which layers each device gets, or which heads and columns. They inherit the
rest.

A source with layers has the first of them: it computes them before it waits for the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.workload import Workload
from engine.program.strategy import Params, ParamsT
from engine.strategies.shared.demand import SizedOp, block_ops, check_memory, demand_of, end_ops
from engine.strategies.shared.pipeline import Pipeline, PipelineLayout, ends_placement, stages_placement
from engine.strategies.shared.stages import consecutive, most_layers
from engine.strategies.shared.tensor_parallel import TensorParallel, TensorParallelLayout, split_plan


class PlacesLayers(Pipeline[ParamsT, PipelineLayout]):
    """A method that only says which layers each device has: its `plan` returns `self.placed(…)`."""

    Params = Params  # type: ignore[assignment]
    Layout = PipelineLayout

    def most_layers(self, cluster: ClusterSpec, model: ModelSpec, workload: Workload) -> dict[int, int]:
        """How many layers every worker has memory for, by rank, beside what the source has besides layers."""
        demand = demand_of(model, workload, self.batches_bursts)
        return most_layers(cluster, model, demand, ends_placement(self.name, cluster, model))

    def placed(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        workload: Workload,
        layers: Sequence[tuple[int, int]],
    ) -> Plan[PipelineLayout]:
        """The plan with `layers`: pairs of a device (rank) and how many of the next layers it has, in their
        order.

        Raises `PlanError` unless these are all layers, on different workers that have the memory for them.
        """
        for rank, _ in layers:
            if rank not in cluster.workers:
                raise PlanError(
                    f"{self.name}: device {rank} is no worker: place layers on {cluster.workers}."
                )
        source, demand = cluster.source_rank, demand_of(model, workload, self.batches_bursts)
        stages = consecutive([rank for rank, _ in layers], [number for _, number in layers])
        placement = stages_placement(ends_placement(self.name, cluster, model), stages, model.num_layers)
        if source in [stage.device for stage in stages[1:]]:
            raise PlanError(
                f"{self.name}: the source {cluster.source} has layers that are not the first: place it first."
            )
        ops: dict[int, Sequence[SizedOp]] = {stage.device: block_ops(model, demand) for stage in stages}
        ops[source] = (*end_ops(model, demand), *ops.get(source, ()))
        layer_kv_bytes = demand.kv_bytes(model, model.num_kv_heads)
        kv_bytes = {stage.device: stage.num_layers * layer_kv_bytes for stage in stages}
        check_memory(cluster, model, placement, kv_bytes, ops, "give it more memory, or fewer layers")
        return placement.with_layout(PipelineLayout(stages=stages, micro_batch=demand.batch))


class DividesLayers(TensorParallel[ParamsT, TensorParallelLayout]):
    """A method that only says which share of every layer each device has: its `plan` returns
    `self.divided(…)`.
    """

    Params = Params  # type: ignore[assignment]
    Layout = TensorParallelLayout

    def divided(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        workload: Workload,
        heads: Sequence[int],
        columns: Sequence[int],
    ) -> Plan[TensorParallelLayout]:
        """The plan in which every worker, in the order of `cluster.workers`, has so many attention heads and
        feed-forward columns of every layer.

        Raises `PlanError` unless these are all, one number for each worker, and the workers have the memory.
        """
        for name, given, whole in (
            ("heads", heads, model.num_heads),
            ("columns", columns, model.intermediate_size),
        ):
            if len(given) != len(cluster.workers) or sum(given) != whole or min(given) < 0:
                raise PlanError(
                    f"{self.name}: {name} are divided as {list(given)}: expected one number for each of "
                    f"{len(cluster.workers)} workers, {whole} together."
                )
        demand = demand_of(model, workload, self.batches_bursts)
        return split_plan(self.name, cluster, model, demand, heads, columns, "auto")
