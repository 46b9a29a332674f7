"""LIME: an interleaved pipeline whose devices stream layers from disk while the others work.

Sun et al., "LIME: Accelerating Collaborative Lossless LLM Inference on Memory-Constrained Edge Devices"
(arXiv 2512.21835), section IV. A model is divided into segments; hidden states pass around the ring of
devices once per segment. A device streams the first layers of each of its stages: the segments share the
memory of these layers, and as soon as one segment has used it, the next segment's layers are read from disk.
Growing KV caches get memory by streaming more blocks, and by storing rows on a device with free memory.

The source is the first device of the ring, or outside of it if it is a terminal or too small for a layer.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.method_report import PlanAt
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx
from engine.program.strategy import Done, Overlapping, Step
from engine.strategies.edgeshard.strategy import EdgeShard, EdgeShardParams
from engine.strategies.lime.by_hand import of_segments
from engine.strategies.lime.layout import SegmentsLayout
from engine.strategies.lime.params import LimeParams
from engine.strategies.lime.parking import keep_rows
from engine.strategies.lime.plan import plan_of
from engine.strategies.lime.report import LimeReport, lime_report
from engine.strategies.lime.run import Member, feed
from engine.strategies.planner.known_length import best_of_lengths
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.stages import Stage

LENGTHS = 4
"""Lengths of answers for which plans are made where the true one is known, and weights stream."""


class Lime(Overlapping[LimeParams, SegmentsLayout]):
    name = "lime"
    title = "Interleaved pipeline with offloading (LIME)"
    paper = "Sun et al., LIME, arXiv 2512.21835"
    is_baseline = False
    summary = "Layers that do not fit come from disk while other devices compute; memory adapts to KV caches."
    batches_bursts = False
    rule = (
        "The ring has the devices in the order of their list, for one request at a time: another order, or "
        "more memory, can be slower."
    )
    Params = LimeParams
    Layout = SegmentsLayout
    Report = LimeReport

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: LimeParams
    ) -> Plan[SegmentsLayout]:
        """Cut the model into segments of slots, some of them offloaded. Raises `PlanError` if not even one
        layer per slot fits.
        """

        def plan_for(workload: Workload) -> Plan[SegmentsLayout]:
            demand = demand_of(model, workload, self.batches_bursts)
            joint = params.mode == "joint" and params.plan is None
            pipeline = _pipeline(cluster, model, workload, params) if joint else ()
            return plan_of(self.name, cluster, model, demand, params, pipeline)

        plan = plan_for(workload)
        if params.plan is not None or not any(plan.layout.slots.values()):
            return plan
        return best_of_lengths(self, cluster, model, workload, plan, plan_for, LENGTHS)

    def together(self, plan: Plan[SegmentsLayout]) -> int | None:
        return plan.layout.micro_batch

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[SegmentsLayout]) -> PlanByHand:
        return of_segments(cluster, plan.layout)

    def summarise(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        plans: Sequence[PlanAt],
        trace: Sequence[Span | Mark],
    ) -> LimeReport:
        return lime_report(cluster, plans, trace)

    def partners(self, cluster: ClusterSpec, plan: Plan[SegmentsLayout]) -> frozenset[tuple[int, int]]:
        """When links change, a device may store rows on another device although the prediction did not."""
        transfers = plan.layout.transfers
        return frozenset(
            pair for one in transfers for pair in ((one.source, one.target), (one.target, one.source))
        )

    def continuous(self, plan: Plan[SegmentsLayout]) -> bool:
        return True

    def answers_at_once(self, plan: Plan[SegmentsLayout]) -> bool:
        return True  # the weights that made room for KV caches come back at the end of a call

    def why_not_ragged(self, plan: Plan[SegmentsLayout]) -> str | None:
        return "lime overlaps requests by itself and moves rows of caches by positions that a batch shares."

    async def forward_all(
        self,
        ctx: Ctx,
        plan: Plan[SegmentsLayout],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ) -> None:
        """Run all tokens of some requests; afterwards the weights in memory are those from before."""
        layout = plan.layout
        keepers = [
            ctx.spawn(keep_rows(ctx, one, layout.stages_of(one.source), steps))
            for one in layout.transfers
            if one.target == ctx.rank
        ]
        if ctx.rank not in layout.ranks:
            if ctx.rank == ctx.cluster.source_rank:
                await feed(ctx, layout, steps, tokens, done)
            return
        member = Member(ctx, layout, steps, tokens, done)
        await member.run()
        for keeper in keepers:
            await keeper
        await member.restore()


def _pipeline(
    cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: LimeParams
) -> tuple[Stage, ...]:
    """EdgeShard's plan, which is one with one segment and devices in any order; no stages if none fits."""
    try:
        return (
            EdgeShard().plan(cluster, model, workload, EdgeShardParams(planner=params.planner)).layout.stages
        )
    except PlanError:
        return ()
