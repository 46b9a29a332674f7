"""TPI-LLM: tensor parallelism whose weights are loaded through a sliding window during the all-reduces.

Li et al., "TPI-LLM: Serving 70B-scale LLMs Efficiently on Low-resource Edge Devices" (arXiv:2410.00531).
The source, its master, embeds and samples; shares follow given ratios; a star all-reduce saves link
latency. Where its text and its published code differ (columns), a parameter chooses.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field
from typing_extensions import TypeVar

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.workload import Workload
from engine.ops.tensors import Tensor
from engine.program.collectives import AllReduce
from engine.program.ctx import Ctx
from engine.program.strategy import DivisibleParams, Done, Step
from engine.strategies.shared.by_hand import bounds_by_hand, of_shares
from engine.strategies.shared.demand import Demand, demand_of
from engine.strategies.shared.kv_pressure import KV_PRESSURE_HELP, KVPressure, plan_under
from engine.strategies.shared.shares import bounds_of, layer_s
from engine.strategies.shared.stages import source_first
from engine.strategies.shared.tensor_parallel import Bounds, TensorParallel, split_pass
from engine.strategies.tpi_llm.plan import (
    SlidingWindowLayout,
    ratios_of,
    split_from_last,
    streams_always,
    with_streams,
)
from engine.strategies.tpi_llm.window import window_of


class TPIParams(DivisibleParams):
    units = ("heads", "columns")
    ratio: str = Field(
        default="",
        description="Share of each worker, the source's first, like 0.5, 0.25, 0.25; empty: by speed. After "
        "a failure the others keep their proportions.",
    )
    ffn_split: Literal["ratio", "equal"] = Field(
        default="ratio", description="Feed-forward columns by ratio as in the paper, or equal as in its code."
    )
    all_reduce: AllReduce = Field(
        default="star",
        description="How partial sums are added up: star has the fewest hops, ring the fewest bytes.",
    )
    window: int = Field(
        default=2, ge=1, description="Blocks (attention or feed-forward parts) in memory at a time."
    )


class TPILLMParams(TPIParams):
    retain_every: int = Field(
        default=0, ge=0, description="Keep one feed-forward part in this many in memory; 0: none."
    )
    kv_pressure: KVPressure = Field(default="oom", description=KV_PRESSURE_HELP)


TPIParamsT = TypeVar("TPIParamsT", bound=TPIParams, default=Any)


class SlidingWindow(TensorParallel[TPIParamsT, SlidingWindowLayout]):
    """Runs `window` and `streams` of a plan's layout. They differ in which blocks stream from when."""

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: TPIParamsT
    ) -> Plan[SlidingWindowLayout]:
        ratios: Mapping[int, float] = {}
        if params.ratio and params.plan is None:
            group = source_first(cluster)
            ratios = dict(zip(group, ratios_of(params.ratio, len(group)), strict=True))
        return self.plan_by(ratios, cluster, model, workload, params)

    @abstractmethod
    def plan_by(
        self,
        ratios: Mapping[int, float],
        cluster: ClusterSpec,
        model: ModelSpec,
        workload: Workload,
        params: TPIParamsT,
    ) -> Plan[SlidingWindowLayout]:
        """The plan of workers with these shares, by rank; by speed if none are given."""

    def replan(
        self,
        plan: Plan[SlidingWindowLayout],
        cluster: ClusterSpec,
        model: ModelSpec,
        workload: Workload,
        params: TPIParamsT,
    ) -> Plan[SlidingWindowLayout]:
        """Shares that were given stay in proportion among those that are left; a device that joins and was
        given none gets none.
        """
        return self.plan_by(plan.layout.ratios, cluster, model, workload, params.without_plan())

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[SlidingWindowLayout]) -> PlanByHand:
        return of_shares(cluster, plan.layout)

    def continuous(self, plan: Plan[SlidingWindowLayout]) -> bool:
        """All steps of a request at once: weights for the next token load before this one is sampled."""
        return True

    def why_not_ragged(self, plan: Plan[SlidingWindowLayout]) -> str | None:
        return f"{self.name} streams weights by how many rows all sequences of a step have in their caches."

    async def forward_all(
        self,
        ctx: Ctx,
        plan: Plan[SlidingWindowLayout],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ) -> None:
        window = window_of(ctx, plan.layout, steps) if ctx.rank in plan.layout.group else None
        for number, step in enumerate(steps):
            ctx.at(step.requests[0], step.index)
            if window is not None:
                window.begin(step.start + step.rows)
            compute = window.compute if window is not None else ctx.compute
            result = await split_pass(ctx, plan, step, tokens[number], compute)
            if result is not None:
                done(step, result)
        if window is not None:
            await window.settle()


def chosen_bounds(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    params: TPIParams,
    given: Mapping[int, float],
) -> Bounds:
    """Heads and columns of each worker, the source being the first of them if it is one: as made by hand, or
    whole KV groups, in the proportions that are `given` by rank or else by speed.
    """
    group = source_first(cluster)
    if params.plan is not None:
        return bounds_by_hand(name, cluster, model, params.plan, group)
    if given:
        group = tuple(rank for rank in group if rank in given)
    if not group:
        raise PlanError(f"{name}: no device is left that has a share in ratio {params.ratio!r}.")
    ratios = [given.get(rank) or 1 / layer_s(cluster.devices[rank], model, demand) for rank in group]
    heads = [model.group_size * groups for groups in split_from_last(model.num_kv_heads, ratios)]
    equal = params.ffn_split == "equal"
    columns = split_from_last(model.intermediate_size, [1.0] * len(group) if equal else ratios)
    return Bounds(group, bounds_of(heads), bounds_of(columns))


class TPILLM(SlidingWindow[TPILLMParams]):
    name = "tpi_llm"
    splits_heads = True
    title = "Streamed tensor parallel (TPI-LLM)"
    paper = "Li et al., TPI-LLM, arXiv:2410.00531, 2024"
    summary = "Tensor parallelism with a few blocks in memory: the next ones load during the all-reduces."
    rule = (
        "All devices take part, in the order of their list: another order, or one better device or link, "
        "can be slower."
    )
    Params = TPILLMParams
    Layout = SlidingWindowLayout

    def plan_by(
        self,
        ratios: Mapping[int, float],
        cluster: ClusterSpec,
        model: ModelSpec,
        workload: Workload,
        params: TPILLMParams,
    ) -> Plan[SlidingWindowLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        bounds = chosen_bounds(self.name, cluster, model, demand, params, ratios)

        def plan_for(demand: Demand) -> Plan[SlidingWindowLayout]:
            return with_streams(
                self.name,
                cluster,
                model,
                demand,
                bounds,
                params.window,
                params.all_reduce,
                lambda share: streams_always(share, params.window, params.retain_every),
                ratios,
            )

        return plan_under(params.kv_pressure, model, demand, plan_for, lambda _, demand: plan_for(demand))
