"""TPI-LLM with offloading: blocks stay in memory until the growing KV cache needs their memory, then stream.

Sun et al., "LIME" (section V) compares with TPI-LLM with "a larger sliding window instead of
re-computation". A larger window needs more memory, so what grows here is the range of blocks that
stream: the cache is never evicted nor recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.workload import Workload
from engine.strategies.planner.known_length import best_of_lengths
from engine.strategies.shared.demand import demand_of
from engine.strategies.tpi_llm.plan import SlidingWindowLayout, streams_as_needed, with_streams
from engine.strategies.tpi_llm.strategy import SlidingWindow, TPIParams, chosen_bounds

LENGTHS = 8
"""Lengths of answers for which shares are tried where the true one is known."""


class TPILLMOffload(SlidingWindow[TPIParams]):
    name = "tpi_llm_offload"
    splits_heads = True
    title = "Tensor parallel with offloading (TPI-LLM)"
    paper = "Li et al., TPI-LLM, 2024; offloading as in Sun et al., LIME"
    summary = "Blocks stay in memory until the KV cache needs their room; from then on they stream."
    rule = (
        "All devices take part, in the order of their list: another order, or one better device or link, "
        "can be slower."
    )
    Params = TPIParams
    Layout = SlidingWindowLayout

    def plan_by(
        self,
        ratios: Mapping[int, float],
        cluster: ClusterSpec,
        model: ModelSpec,
        workload: Workload,
        params: TPIParams,
    ) -> Plan[SlidingWindowLayout]:
        demand = demand_of(model, workload, self.batches_bursts)

        def plan_for(assumed: Workload) -> Plan[SlidingWindowLayout]:
            shares_for = demand_of(model, assumed, self.batches_bursts)
            return with_streams(
                self.name,
                cluster,
                model,
                demand,
                chosen_bounds(self.name, cluster, model, shares_for, params, ratios),
                params.window,
                params.all_reduce,
                lambda share: streams_as_needed(share, params.window, demand.longest.cached_rows),
                ratios,
            )

        plan = plan_for(workload)
        if params.plan is not None or ratios or not any(plan.layout.streams.values()):
            return plan
        return best_of_lengths(self, cluster, model, workload, plan, plan_for, LENGTHS)
