"""EdgeFormer: a chain of block owners, each lending heads of attention to its neighbours under a deadline.

Yao, Niu, Dai, Ren, "EdgeFormer: Latency-Aware Collaborative Multi-Head Attention". Blocks are contiguous
intervals of layers. Inside a block the owner computes Q, K, V, W_o, norms and feed-forward; only
softmax(QKᵀ)V, which needs no weights, is split by heads over owner and neighbours. Heads are ranked by
importance, and those for which the deadline leaves no time are pruned: the method is lossy, except with
`t_max_mode=none`. The owner keeps K and V of all heads, so the loss of a neighbour costs nothing but time.

Not in the paper, which has no KV cache (`Workload.kv_cache`): with one, heads stay where the prefill put
them while a sequence is generated, unless the network changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import PlanAt
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx
from engine.program.strategy import Step, Strategy
from engine.strategies.edgeformer.allocation import even_split
from engine.strategies.edgeformer.by_hand import helpers_by_hand, of_heads, rooms_by_hand
from engine.strategies.edgeformer.choices import MappingTables, Recluster
from engine.strategies.edgeformer.importance import reserve_table
from engine.strategies.edgeformer.layout import HeadsLayout, OwnedBlocks
from engine.strategies.edgeformer.lending import lenders_by_rank
from engine.strategies.edgeformer.memory import HeadRooms, rooms_for_heads
from engine.strategies.edgeformer.neighbour import attend_for_owner
from engine.strategies.edgeformer.owner import Owner
from engine.strategies.edgeformer.params import EdgeFormerParams
from engine.strategies.edgeformer.plan import place_blocks
from engine.strategies.edgeformer.report import HeadsReport, heads_report
from engine.strategies.edgeformer.state import OwnerState
from engine.strategies.edgeformer.table_size import CAPACITY
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.ends import cache_of, embed, finish, tag, wanted_rows


class EdgeFormer(Strategy[EdgeFormerParams, HeadsLayout]):
    name = "edgeformer"
    title = "Collaborative attention (EdgeFormer)"
    paper = "Yao et al., EdgeFormer"
    is_baseline = False
    summary = (
        "Owners of consecutive layers lend attention heads to neighbours and prune late, unimportant ones."
    )
    lossless = False
    batches_bursts = True
    rule = "Blocks go to owners in the order of their list: another order can be slower."
    Params = EdgeFormerParams
    Layout = HeadsLayout
    Report = HeadsReport

    def supports(self, cluster: ClusterSpec, model: ModelSpec) -> str | None:
        if model.attention_sinks:
            return (
                f"heads of {model.name} have sinks, which are weights, and neighbours attend heads without "
                "weights: choose a pipeline or tensor parallelism."
            )
        return super().supports(cluster, model)

    def lossless_params(self) -> dict[str, Any]:
        return {"t_max_mode": "none"}

    def is_lossy(self, plan: Plan[HeadsLayout]) -> bool:
        return plan.layout.lossy

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: EdgeFormerParams
    ) -> Plan[HeadsLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        caches = demand.generates and workload.kv_cache
        prefills = workload.requests * (1 if caches else max(1, workload.new_tokens))
        placement, blocks = place_blocks(self.name, cluster, model, demand, params.block_alloc, params.plan)
        remembered = min(CAPACITY, prefills * model.num_heads)
        rooms = rooms_for_heads(cluster, model, placement, blocks, demand, caches, remembered)
        if params.plan is not None:
            rooms = rooms_by_hand(self.name, cluster, rooms, params.plan)
        lenders = lenders_by_rank(cluster, model, blocks, rooms, demand, params)
        ranks = lenders.ranks
        if params.plan is not None:
            ranks = helpers_by_hand(self.name, cluster, ranks, params.plan)
        lossy = (
            params.t_max_mode != "none"
            or params.prune_below is not None
            or not _keeps_all(blocks, rooms, cluster.workers, model.num_heads, params)
        )
        return placement.with_layout(
            HeadsLayout(
                blocks=blocks,
                workers=cluster.workers,
                own_heads=rooms.own,
                lent_heads=rooms.lent,
                lenders=ranks,
                weighed_heads=rooms.weighed,
                table_entries=rooms.entries if lossy else (0,) * len(rooms.entries),
                same_prompt=workload.prompt is not None,
                passes=max(1, prefills // demand.batch),
                alone_s=lenders.alone_s,
                lent_s=lenders.lent_s,
                lossy=lossy,
                params=params,
            )
        )

    def partners(self, cluster: ClusterSpec, plan: Plan[HeadsLayout]) -> frozenset[tuple[int, int]]:
        """Every owner and those who may attend its heads, both ways: who gets heads depends on data."""
        pairs = {(owner, rank) for owner, ranks in enumerate(plan.layout.lenders) for rank in ranks}
        return frozenset(pairs | {(b, a) for a, b in pairs})

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[HeadsLayout]) -> PlanByHand:
        return of_heads(cluster, plan.layout)

    def summarise(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        plans: Sequence[PlanAt],
        trace: Sequence[Span | Mark],
    ) -> HeadsReport:
        return heads_report(cluster, model, plans, trace)

    async def between_waves(self, ctx: Ctx, plan: Plan[HeadsLayout]) -> None:
        """Recompute the clusters of one mapping table: nobody waits for it now."""
        state = state_of(ctx, plan)
        if state.tables.num_entries:
            state.idle_periods += 1
            ctx.decide(f"reclustered.v{state.version}.{state.idle_periods}", Recluster(state.tables))

    def why_not_ragged(self, plan: Plan[HeadsLayout]) -> str | None:
        return (
            "edgeformer computes heads apart from their layer, at positions that sequences of a step share."
        )

    async def forward(
        self, ctx: Ctx, plan: Plan[HeadsLayout], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        state, source, blocks = state_of(ctx, plan), ctx.cluster.source_rank, plan.layout.blocks
        cache = cache_of(step)
        lenders = [
            ctx.spawn(attend_for_owner(ctx, step, owner, cache))
            for owner, _, _ in blocks
            if ctx.rank in state.lenders[owner]
        ]
        x: Tensor = None
        if ctx.rank == source:
            x = await embed(ctx, step, tokens)
            if blocks[0][0] != source:
                ctx.send(x, blocks[0][0], tag(step, "hidden"))
        for number, (rank, start, stop) in enumerate(blocks):
            if rank != ctx.rank:
                continue
            before = blocks[number - 1][0] if number else source
            if before != ctx.rank:
                x = await ctx.recv(before, tag(step, "hidden", start - 1))
            owner = Owner(ctx, state, step, cache)
            for layer in range(start, stop):
                x = await owner.block(layer, x)
            if number + 1 < len(blocks):
                ctx.send(x, blocks[number + 1][0], tag(step, "hidden", stop - 1))
            elif rank != source:
                ctx.send(wanted_rows(step, x), source, tag(step, "hidden", stop - 1))
            owner.end(x)
        result = None
        if ctx.rank == source:
            last = blocks[-1][0]
            if last != source:
                x = await ctx.recv(last, tag(step, "hidden", ctx.model.num_layers - 1))
            result = await finish(ctx, step, x)
        for lender in lenders:
            await lender
        return result


def state_of(ctx: Ctx, plan: Plan[HeadsLayout]) -> OwnerState:
    """The state of this device under `plan`. The state for a new plan takes over the mapping tables."""
    known = ctx.memory.get(EdgeFormer.name)
    state = known if isinstance(known, OwnerState) else None
    if state is None or state.version != plan.version:
        layout, capacity = plan.layout, plan.layout.table_entries[ctx.rank]
        tables = state.tables if state else MappingTables(layout.params, capacity, layout.same_prompt)
        mine = [layer for rank, *bounds in layout.blocks if rank == ctx.rank for layer in range(*bounds)]
        tables.adopt(capacity, mine)
        state = OwnerState(plan, tables)
        ctx.memory[EdgeFormer.name] = state
        for layer in tables.num_entries:
            reserve_table(ctx, state, layer)
    return state


def _keeps_all(
    blocks: Sequence[OwnedBlocks],
    rooms: HeadRooms,
    workers: tuple[int, ...],
    num_heads: int,
    params: EdgeFormerParams,
) -> bool:
    """Whether every head of every block finds room; with a static split, each where it must be."""
    owners = [owner for owner, _, _ in blocks]
    if params.scheduling == "dynamic":
        return all(rooms.hold_all(owner, num_heads) for owner in owners)
    split = even_split(num_heads, workers)
    return all(
        split.count(rank) <= (rooms.own if rank == owner else rooms.lent)[rank]
        for owner in owners
        for rank in workers
    )
