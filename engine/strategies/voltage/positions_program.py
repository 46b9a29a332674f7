"""Run positions: every device holds all layers and computes its own rows; one all-gather per layer.

Voltage plans so, and `DividesRows`, a method of which only the shares are written. For generation there are
two ways: one device, the decode owner, fills a KV cache in the prefill and decodes alone; or every token is
one more forward pass over all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from engine.domain.by_hand import DeviceShare, PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.method_report import MethodReport, PlanAt
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.ops.layers import layers
from engine.ops.tensors import Tensor, concat
from engine.program.collectives import broadcast
from engine.program.ctx import Ctx
from engine.program.strategy import Done, Params, ParamsT, Step, Strategy
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.ends import cache_of, embed, finish, tag
from engine.strategies.voltage.forward import forward_pass
from engine.strategies.voltage.layout import PositionsLayout
from engine.strategies.voltage.plan import VoltageParams, plan_with, rule
from engine.strategies.voltage.report import PositionsReport, positions_report


class Positions(Strategy[ParamsT, PositionsLayout]):
    """Runs the shares of a plan's layout."""

    Layout = PositionsLayout
    Report = PositionsReport

    def partners(self, cluster: ClusterSpec, plan: Plan[PositionsLayout]) -> frozenset[tuple[int, int]]:
        """All pairs of devices that may send: one without positions may get some later, by a new partition,
        or as the sequence grows.
        """
        shards = plan.layout.shards
        if not plan.layout.repartition and all(shard.size for shard in shards):
            return frozenset()
        ranks = {shard.device for shard in shards} | {cluster.source_rank}
        return frozenset(permutations(ranks, 2))

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[PositionsLayout]) -> PlanByHand:
        shares = zip(plan.layout.devices, plan.layout.ratios, strict=True)
        owner = plan.layout.owner
        return PlanByHand(
            decoder=None if owner is None else cluster.devices[owner].name,
            devices=tuple(
                DeviceShare(device=cluster.devices[rank].name, rows=ratio) for rank, ratio in shares
            ),
        )

    def summarise(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        plans: Sequence[PlanAt],
        trace: Sequence[Span | Mark],
    ) -> MethodReport:
        return positions_report(cluster, model, plans, trace)

    def continuous(self, plan: Plan[PositionsLayout]) -> bool:
        """Whether tokens overlap: with `decode="recompute"`, because the source keeps the embedded rows from
        token to token.
        """
        return plan.layout.decode == "recompute"

    def answers_at_once(self, plan: Plan[PositionsLayout]) -> bool:
        return self.continuous(plan)

    def why_not_ragged(self, plan: Plan[PositionsLayout]) -> str | None:
        return "voltage divides a prompt among the devices by positions, which all sequences of a step share."

    async def forward(
        self, ctx: Ctx, plan: Plan[PositionsLayout], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        source = ctx.cluster.source_rank
        x = await embed(ctx, step, tokens) if ctx.rank == source else None
        run = forward_pass if step.phase == "prefill" else _decode
        x = await run(ctx, plan, step, x)
        return await finish(ctx, step, x) if ctx.rank == source else None

    async def forward_all(
        self,
        ctx: Ctx,
        plan: Plan[PositionsLayout],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ) -> None:
        if not self.continuous(plan):
            await super().forward_all(ctx, plan, steps, tokens, done)
            return
        x = None
        for step, ids in zip(steps, tokens, strict=True):
            ctx.at(step.requests[0], step.index)
            if ctx.rank == ctx.cluster.source_rank:
                new = await embed(ctx, step, ids)
                x = new if x is None or step.uncached else concat([x, new], 1)
            result = await forward_pass(ctx, plan, step, x)
            if ctx.rank == ctx.cluster.source_rank:
                done(step, await finish(ctx, step, result))


class DividesRows(Positions[ParamsT]):
    """A method that only says which share of the rows each device has: `plan` returns `self.divided(…)`."""

    Params = Params  # type: ignore[assignment]

    def divided(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, rows: Sequence[float]
    ) -> Plan[PositionsLayout]:
        """The plan in which every worker, in the order of `cluster.workers`, has rows in proportion to
        `rows`.

        Raises `PlanError` unless there is one number for each worker, and each has memory for all layers.
        """
        if len(rows) != len(cluster.workers):
            raise PlanError(
                f"{self.name}: rows are divided as {list(rows)}: expected one number for each of "
                f"{len(cluster.workers)} workers."
            )
        shares = zip(cluster.workers, rows, strict=True)
        by_hand = PlanByHand(
            devices=tuple(
                DeviceShare(device=cluster.devices[rank].name, rows=share) for rank, share in shares
            )
        )
        demand = demand_of(model, workload, self.batches_bursts)
        params = VoltageParams(plan=by_hand)
        return plan_with(self.name, cluster, model, demand, params, rule(cluster, model, demand, params))


async def _decode(ctx: Ctx, plan: Plan[PositionsLayout], step: Step, x: Tensor | None) -> Tensor | None:
    """One decode step, which only the owner computes: a single row cannot be divided."""
    owner, source = plan.layout.owner, ctx.cluster.source_rank
    if owner is None:
        raise PlanError(
            f"{plan.strategy}: a plan without a decode owner has no token to decode: expected recompute."
        )
    if ctx.rank not in (owner, source):
        return None
    x = await broadcast(ctx, x, source, (owner,), tag(step, "input"))
    if ctx.rank == owner:
        x = await ctx.compute_layers(layers(0, ctx.model.num_layers, cache_of(step)), x)
    return await broadcast(ctx, x, owner, (source,), tag(step, "output"))
