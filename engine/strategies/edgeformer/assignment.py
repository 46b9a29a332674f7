"""Assign the heads of a block to devices: Algorithm 1, and again when links, speeds or devices change.

How many heads the deadline leaves depends on the conditions alone, not on the heads. So they are counted
first: only where some must go is their importance looked up or measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from engine.ops.heads import Recall, kv_of
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx
from engine.program.strategy import Step
from engine.strategies.edgeformer.allocation import (
    PRUNED,
    HeadAllocation,
    allocate,
    li_scores,
    normalised,
    prune_to_deadline,
)
from engine.strategies.edgeformer.conditions import block_deadline_s, neighbours_of, sites_now, split_of
from engine.strategies.edgeformer.costs import AttentionRows
from engine.strategies.edgeformer.importance import BlockImportance, scores_of_token
from engine.strategies.edgeformer.scores import UNKNOWN, Scores
from engine.strategies.edgeformer.state import KeptAllocation, OwnerState
from engine.strategies.shared.ends import tag

END, ATTEND, REGROUP = range(3)
"""What a message to a neighbour asks for: see `owner.py`."""


class HeadAssignment:
    """The decisions of one pass over this device's blocks."""

    def __init__(self, ctx: Ctx, state: OwnerState, step: Step, cache: str | None):
        self.ctx, self.state, self.step, self.cache = ctx, state, step, cache
        self.params, self.num_heads = state.params, ctx.model.num_heads

    async def assign(self, layer: int, rows: AttentionRows, measures: BlockImportance) -> HeadAllocation:
        """A device for every head, or none."""
        allocation = self._without_scores(rows)
        scores = UNKNOWN
        if allocation is None:
            number, saving_s = self._to_prune(rows)
            scores = await measures.least(number, saving_s)
            allocation = self._allocate(scores.raw or (), rows)
        self._keep(layer, allocation, scores)
        self._mark(layer, allocation, scores, rows)
        return allocation

    async def reuse(self, layer: int, rows: AttentionRows, queries: Tensor) -> HeadAllocation:
        """The allocation of the prefill, or a new one if links, speeds or devices have changed since.

        `queries` are those of the new token.
        """
        assert self.cache
        kept = self.state.kept[self.cache, layer]
        ctx, scores, before = self.ctx, kept.scores, kept.allocation
        if kept.cluster is ctx.cluster_now and kept.failed == ctx.failed:
            return before
        sites = sites_now(ctx, self.state, rows)
        alone = set(before.device_of) - {site.rank for site in sites} - {PRUNED}
        only_prune = self.params.on_change == "prune" and not alone
        found = self._pruned(before, scores, rows) if only_prune else self._without_scores(rows)
        if found is None:
            if scores.raw is None:
                scores = await scores_of_token(ctx, self.state, self.step, layer, queries, self.cache)
            found = (
                self._pruned(before, scores, rows) if only_prune else self._allocate(scores.raw or (), rows)
            )
        assert found is not None
        if found.device_of != before.device_of:
            await self._move(layer, before, found, rows.batch)
            names = [ctx.cluster.devices[rank].name for rank in sorted(ctx.failed - kept.failed)]
            ctx.mark(
                "reallocated",
                layer=layer,
                owner=ctx.rank,
                reason=f"{', '.join(names)} failed" if names else "links or speeds changed",
                device_of_before=list(before.device_of),
                device_of=list(found.device_of),
            )
            self._mark(layer, found, scores, rows)
        self._keep(layer, found, scores)
        return found

    def _keep(self, layer: int, allocation: HeadAllocation, scores: Scores) -> None:
        if self.cache:
            self.state.kept[self.cache, layer] = KeptAllocation(
                allocation, scores, self.ctx.cluster_now, self.ctx.failed
            )

    def _without_scores(self, rows: AttentionRows) -> HeadAllocation | None:
        """The allocation, in order of the heads' numbers, if it is the same for any importance: if all heads
        are kept or none. None if it depends on which heads go.
        """
        params = self.params
        counted = params.check == "makespan" or params.scheduling == "dynamic" or params.t_max_mode == "none"
        if params.prune_below is not None or not counted:
            return None
        found = self._allocate([1.0] * self.num_heads, rows)
        return found if found.num_kept in (0, self.num_heads) else None

    def _to_prune(self, rows: AttentionRows) -> tuple[int, float]:
        """How many of the least important heads must be known, and what leaving heads out saves in
        seconds.
        """
        pruned = self._allocate([1.0] * self.num_heads, rows)
        alike = self.params.scheduling == "dynamic" and self.params.prune_below is None
        whole = self._allocate([1.0] * self.num_heads, rows, t_max_s=inf)
        number = self.num_heads - pruned.num_kept if alike else self.num_heads
        return number, whole.collab_s - pruned.collab_s

    def _allocate(
        self, raw: Sequence[float], rows: AttentionRows, t_max_s: float | None = None
    ) -> HeadAllocation:
        ctx, params, below = self.ctx, self.params, self.params.prune_below
        return allocate(
            normalised(raw),
            sites_now(ctx, self.state, rows),
            block_deadline_s(ctx, self.state, rows) if t_max_s is None else t_max_s,
            params.fill,
            params.check,
            params.min_keep,
            split_of(ctx, self.state, {*neighbours_of(ctx, self.state), ctx.rank}),
            barred=() if below is None else [head for head, value in enumerate(raw) if value < below],
        )

    def _pruned(self, before: HeadAllocation, scores: Scores, rows: AttentionRows) -> HeadAllocation | None:
        """Stage 3 under the present conditions; None if it depends on importance that is not known."""
        raw = scores.raw or (1.0,) * self.num_heads
        found = prune_to_deadline(
            normalised(raw),
            before,
            sites_now(self.ctx, self.state, rows),
            block_deadline_s(self.ctx, self.state, rows),
            self.params.importance_weight,
            self.params.min_keep,
        )
        return None if scores.raw is None and found.num_kept not in (0, before.num_kept) else found

    async def _move(self, layer: int, before: HeadAllocation, after: HeadAllocation, batch: int) -> None:
        """Send neighbours the K and V of the heads that they attend from now on, from the owner's copy."""
        assert self.cache
        ctx, kv_heads = self.ctx, tuple(range(self.ctx.model.num_kv_heads))
        for rank in neighbours_of(ctx, self.state):
            has, shall = (kv_of(ctx.model, allocation.heads_of(rank)) for allocation in (before, after))
            if has != shall:
                arriving = tuple(head for head in shall if head not in has)
                moved = await ctx.compute(Recall(layer, arriving, kv_heads, batch, self.cache))
                note = (REGROUP, layer, len(has), *has, *shall)
                ctx.send(moved, rank, tag(self.step, "heads"), note)

    def _mark(self, layer: int, allocation: HeadAllocation, scores: Scores, rows: AttentionRows) -> None:
        """Mark which device attends which head, unless the last mark of the layer is equal."""
        ctx, state, device_of = self.ctx, self.state, list(allocation.device_of)
        shown: list[float | None] = [None] * self.num_heads
        if scores.raw is not None:
            sites, weight = sites_now(ctx, state, rows), self.params.importance_weight
            found = li_scores(normalised(scores.raw), allocation, sites, weight)
            shown = [None if score is None else round(score, 4) for score in found]
        counted = scores[1:]
        facts = (device_of, shown, counted)
        if state.shown.get(layer) == facts:
            return
        state.shown[layer] = facts
        ctx.mark(
            "heads",
            layer=layer,
            owner=ctx.rank,
            device_of=device_of,
            scores=shown,
            hits=scores.hits,
            misses=scores.misses,
            measured=scores.measured,
            t_collab_s=allocation.collab_s,
            t_max_s=None if self.params.t_max_mode == "none" else block_deadline_s(ctx, state, rows),
        )
        if not allocation.num_kept:
            ctx.mark("all_heads_pruned", layer=layer, owner=ctx.rank)
