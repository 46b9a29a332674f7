"""EdgeFormer's owner of a block: project, score the heads, send some to neighbours, attend, join (Algorithm
1).

Messages to a neighbour go under one tag per pass, with a note that says what to do: ATTEND (layer, heads),
REGROUP (layer, number of KV heads it has, these, the ones it gets), END.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PeerFailed
from engine.domain.plan import Plan
from engine.ops.core import FeedForward, Residual
from engine.ops.heads import Attend, Features, Heads, Importance, Join, Project, Recall, kv_of
from engine.ops.tensors import Tensor, concat, narrow, shape_of, take
from engine.program.ctx import Ctx
from engine.program.strategy import Step
from engine.strategies.edgeformer.allocation import (
    PRUNED,
    HeadAllocation,
    Site,
    allocate,
    even_split,
    li_scores,
    normalised,
    prune_to_deadline,
)
from engine.strategies.edgeformer.choices import Learn, Lookup, MappingTables
from engine.strategies.edgeformer.costs import AttentionRows, deadline_s, sites_of
from engine.strategies.edgeformer.layout import HeadsLayout
from engine.strategies.edgeformer.memory import FEATURE_POINTS, HeadRooms
from engine.strategies.shared.ends import tag

END, ATTEND, REGROUP = range(3)


class KeptAllocation(NamedTuple):
    """An allocation that is reused for a sequence's tokens, and the conditions under which it was made."""

    allocation: HeadAllocation
    raw: tuple[float, ...]
    cluster: ClusterSpec
    failed: frozenset[int]


class OwnerState:
    """What a device keeps between forward passes of one plan."""

    def __init__(self, plan: Plan[HeadsLayout], tables: MappingTables):
        self.version, layout = plan.version, plan.layout
        self.params = layout.params
        self.rooms = HeadRooms(layout.own_heads, layout.lent_heads)
        self.workers = layout.workers
        self.tables = tables
        self.kept: dict[tuple[str, int], KeptAllocation] = {}
        self.deadlines_s: dict[AttentionRows, float] = {}
        self.sites: dict[AttentionRows, tuple[Site, ...]] = {}
        self.conditions: tuple[ClusterSpec, frozenset[int]] | None = None
        self.shown: dict[int, object] = {}
        self.prompts: dict[str, Tensor] = {}


class Owner:
    """One pass over the blocks of this device. `cache` is None where every pass starts from scratch."""

    def __init__(self, ctx: Ctx, state: OwnerState, step: Step, cache: str | None):
        self.ctx, self.state, self.step, self.cache = ctx, state, step, cache
        self.model, self.params = ctx.model, state.params
        self.heads: Heads = tuple(range(ctx.model.num_heads))
        self.kv_heads: Heads = tuple(range(ctx.model.num_kv_heads))

    async def block(self, layer: int, x: Tensor) -> Tensor:
        """Hidden rows [B, T, D] → those after the block."""
        ctx, num_heads = self.ctx, len(self.heads)
        first_row = self.step.start if self.cache else 0
        packed = await ctx.compute(Project(layer, 0, num_heads, first_row), x)
        q, kv = narrow(packed, 1, 0, num_heads), narrow(packed, 1, num_heads, shape_of(packed)[1])
        batch, new = shape_of(x)[:2]
        rows = AttentionRows(batch, new, first_row + new)
        if self.cache and self.step.phase == "decode":
            allocation = await self._reuse_allocation(layer, rows)
        else:
            allocation = await self._assign(layer, packed, q, kv, rows)
        total = await self._attend(layer, allocation, q, kv, rows)
        x = await ctx.compute(Residual(layer, "attention"), x, total)
        total = await ctx.compute(FeedForward(layer, 0, self.model.intermediate_size, True), x)
        return await ctx.compute(Residual(layer, "ffn"), x, total)

    def end(self, x: Tensor) -> None:
        """Send END to all neighbours: this pass has no more work for them."""
        for rank in self._neighbours():
            self.ctx.send(narrow(x, 1, 0, 0), rank, tag(self.step, "heads"), (END,))

    # allocation

    async def _assign(
        self, layer: int, packed: Tensor, q: Tensor, kv: Tensor, rows: AttentionRows
    ) -> HeadAllocation:
        raw, hits = await self._importance(layer, packed, q, kv)
        allocation = self._allocate(raw, rows)
        if self.cache:
            self.state.kept[self.cache, layer] = KeptAllocation(
                allocation, raw, self.ctx.cluster_now, self.ctx.failed
            )
        self._mark_allocation(layer, allocation, raw, rows, hits)
        return allocation

    async def _importance(
        self, layer: int, packed: Tensor, q: Tensor, kv: Tensor
    ) -> tuple[tuple[float, ...], int]:
        """Raw importance of all heads, and how many of them the mapping table knew."""
        ctx, tables, width = self.ctx, self.state.tables, 2 * self.model.head_dim
        name = f"v{self.state.version}.L{layer}.r{self.step.requests[0]}.t{self.step.index}"
        features = await ctx.compute(Features(layer, FEATURE_POINTS), packed)
        lookup = Lookup(tables, layer, width, idle=self.step.phase == "prefill")
        raw = list(ctx.decide(f"hits.{name}", lookup, features))
        missed = tuple(head for head in self.heads if raw[head] is None)
        if missed:
            stored = kv_of(self.model, missed)
            measure = Importance(layer, missed, stored)
            statistics = await ctx.compute(measure, take(q, 1, missed), take(kv, 1, stored))
            learn = Learn(tables, layer, width, missed)
            for head, value in zip(
                missed, ctx.decide(f"importance.{name}", learn, statistics, features), strict=True
            ):
                raw[head] = value
        return tuple(raw), len(self.heads) - len(missed)

    def _allocate(self, raw: Sequence[float], rows: AttentionRows) -> HeadAllocation:
        params, below = self.params, self.params.prune_below
        return allocate(
            normalised(raw),
            self._sites(rows),
            self._deadline_s(rows),
            params.fill,
            params.check,
            params.min_keep,
            self._split({*self._neighbours(), self.ctx.rank}),
            barred=() if below is None else [head for head in self.heads if raw[head] < below],
        )

    def _split(self, there: Collection[int]) -> tuple[int, ...] | None:
        """With static scheduling, the fixed rank of every head, among the ranks `there`; else None."""
        if self.params.scheduling == "dynamic":
            return None
        return even_split(len(self.heads), [rank for rank in self.state.workers if rank in there])

    async def _reuse_allocation(self, layer: int, rows: AttentionRows) -> HeadAllocation:
        """The allocation of the prefill, or a new one if links, speeds or devices have changed since."""
        assert self.cache
        kept = self.state.kept[self.cache, layer]
        now, failed = self.ctx.cluster_now, self.ctx.failed
        if kept.cluster is now and kept.failed == failed:
            return kept.allocation
        sites = self._sites(rows)
        alone = set(kept.allocation.device_of) - {site.rank for site in sites} - {PRUNED}
        if self.params.on_change == "prune" and not alone:
            allocation = prune_to_deadline(
                normalised(kept.raw),
                kept.allocation,
                sites,
                self._deadline_s(rows),
                self.params.importance_weight,
            )
        else:
            allocation = self._allocate(kept.raw, rows)
        if allocation.device_of != kept.allocation.device_of:
            await self._move(layer, kept.allocation, allocation, rows.batch)
            names = [self.ctx.cluster.devices[rank].name for rank in sorted(failed - kept.failed)]
            reason = f"{', '.join(names)} failed" if names else "links or speeds changed"
            self.ctx.mark(
                "reallocated",
                layer=layer,
                owner=self.ctx.rank,
                reason=reason,
                device_of_before=list(kept.allocation.device_of),
                device_of=list(allocation.device_of),
            )
            self._mark_allocation(layer, allocation, kept.raw, rows, len(self.heads))
        self.state.kept[self.cache, layer] = KeptAllocation(allocation, kept.raw, now, failed)
        return allocation

    async def _move(self, layer: int, before: HeadAllocation, after: HeadAllocation, batch: int) -> None:
        """Send neighbours the K and V of the heads that they attend from now on, from the owner's copy."""
        assert self.cache
        for rank in self._neighbours():
            has, shall = (kv_of(self.model, allocation.heads_of(rank)) for allocation in (before, after))
            if has != shall:
                arriving = tuple(head for head in shall if head not in has)
                recall = Recall(layer, arriving, self.kv_heads, batch, self.cache)
                moved = await self.ctx.compute(recall)
                note = (REGROUP, layer, len(has), *has, *shall)
                self.ctx.send(moved, rank, tag(self.step, "heads"), note)

    # conditions

    def _neighbours(self) -> list[int]:
        """Ranks of the other workers that are present."""
        now = self.ctx.cluster_now.workers
        here = [rank for rank in self.state.workers if rank in now and rank not in self.ctx.failed]
        return [rank for rank in here if rank != self.ctx.rank]

    def _sites(self, rows: AttentionRows) -> tuple[Site, ...]:
        """The devices that may attend heads of these rows, with their present costs."""
        now, failed, before = self.ctx.cluster_now, self.ctx.failed, self.state.conditions
        if before is None or before[0] is not now or before[1] != failed:
            self.state.sites.clear()
            self.state.conditions = (now, failed)
        if rows not in self.state.sites:
            self.state.sites[rows] = self._sites_in(now, self._neighbours(), rows)
        return self.state.sites[rows]

    def _sites_in(
        self, cluster: ClusterSpec, neighbours: Sequence[int], rows: AttentionRows
    ) -> tuple[Site, ...]:
        rooms, me = self.state.rooms, self.ctx.rank
        return sites_of(
            cluster, self.model, me, neighbours, rooms.own[me], rooms.lent, rows, self.params.cost_model
        )

    def _deadline_s(self, rows: AttentionRows) -> float:
        """T_max of a block with these rows. A ratio refers to the cluster without disturbances."""
        if rows not in self.state.deadlines_s:
            others = [rank for rank in self.state.workers if rank != self.ctx.rank]
            nominal = self._sites_in(self.ctx.cluster, others, rows)
            self.state.deadlines_s[rows] = deadline_s(
                self.params.t_max_mode,
                self.params.t_max,
                self.model.num_layers,
                nominal,
                len(self.heads),
                self._split(self.state.workers),
            )
        return self.state.deadlines_s[rows]

    def _mark_allocation(
        self, layer: int, allocation: HeadAllocation, raw: Sequence[float], rows: AttentionRows, hits: int
    ) -> None:
        """Mark which device attends which head, unless the last mark of the layer is equal."""
        device_of = list(allocation.device_of)
        scores = li_scores(normalised(raw), allocation, self._sites(rows), self.params.importance_weight)
        shown = [None if score is None else round(score, 4) for score in scores]
        facts = (device_of, shown, hits)
        if self.state.shown.get(layer) == facts:
            return
        self.state.shown[layer] = facts
        t_max_s = None if self.params.t_max_mode == "none" else self._deadline_s(rows)
        self.ctx.mark(
            "heads",
            layer=layer,
            owner=self.ctx.rank,
            device_of=device_of,
            scores=shown,
            hits=hits,
            misses=len(self.heads) - hits,
            t_collab_s=allocation.collab_s,
            t_max_s=t_max_s,
        )
        if not set(device_of) - {PRUNED}:
            self.ctx.mark("all_heads_pruned", layer=layer, owner=self.ctx.rank)

    # attention

    async def _attend(
        self, layer: int, allocation: HeadAllocation, q: Tensor, kv: Tensor, rows: AttentionRows
    ) -> Tensor:
        """The attention output [B, T, D]. Neighbours compute their heads while the owner attends its own."""
        ctx, step = self.ctx, self.step
        sites = {site.rank: site for site in self._sites(rows)}
        shares = [
            (rank, heads) for rank in sites if rank != ctx.rank and (heads := allocation.heads_of(rank))
        ]
        shares.sort(key=lambda share: (-sites[share[0]].busy_s(len(share[1])), share[0]))
        replies = []
        for rank, heads in shares:
            packed = concat((take(q, 1, heads), self._keys_values(kv, kv_of(self.model, heads))), 1)
            ctx.send(packed, rank, tag(step, "heads"), (ATTEND, layer, *heads))
            replies.append((rank, heads, ctx.recv(rank, tag(step, "context", layer))))
        own = allocation.heads_of(ctx.rank)
        stored = self.kv_heads if self.cache else kv_of(self.model, own)
        attend = Attend(layer, own, stored, self.cache)
        contexts = [await ctx.compute(attend, take(q, 1, own), self._keys_values(kv, stored))]
        order = own
        for rank, heads, reply in replies:
            try:
                contexts.append(await reply)
            except PeerFailed:
                ctx.mark("heads_recomputed", layer=layer, owner=ctx.rank, lost=rank, heads=list(heads))
                contexts += await self._recompute_heads(layer, heads, q, kv, rows.batch)
            order += heads
        join = Join(layer, 0, len(self.heads), order, True)
        return await ctx.compute(join, concat(contexts, 1))

    async def _recompute_heads(
        self, layer: int, heads: Heads, q: Tensor, kv: Tensor, batch: int
    ) -> list[Tensor]:
        """Attend the heads of a failed neighbour, as many at a time as fit in memory."""
        contexts = []
        room = max(1, self.state.rooms.own[self.ctx.rank])
        for start in range(0, len(heads), room):
            some = heads[start : start + room]
            stored = kv_of(self.model, some)
            if self.cache:
                recall = Recall(layer, stored, self.kv_heads, batch, self.cache)
                keys_values = await self.ctx.compute(recall)
            else:
                keys_values = self._keys_values(kv, stored)
            contexts.append(
                await self.ctx.compute(Attend(layer, some, stored), take(q, 1, some), keys_values)
            )
        return contexts

    def _keys_values(self, kv: Tensor, stored: Heads) -> Tensor:
        """K and V of some KV heads, out of those of all."""
        return take(kv, 1, (*stored, *(len(self.kv_heads) + head for head in stored)))
