"""Assign the heads of a block to devices: Algorithm 1, and again when links, speeds or devices change.

How many heads the deadline leaves depends on the conditions alone, not on the heads. So they are counted
first: only where some must go is their importance looked up or measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from math import inf
from typing import NamedTuple

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
    pruned_by_score,
)
from engine.strategies.edgeformer.conditions import block_deadline_s, neighbours_of, sites_now, split_of
from engine.strategies.edgeformer.costs import AttentionRows
from engine.strategies.edgeformer.importance import BlockImportance, scores_of_token
from engine.strategies.edgeformer.lending import GAIN, attention_s
from engine.strategies.edgeformer.scores import UNKNOWN, Scores
from engine.strategies.edgeformer.state import KeptAllocation, OwnerState
from engine.strategies.shared.ends import tag

END, ATTEND, REGROUP = range(3)
"""What a message to a neighbour asks for: see `owner.py`."""


class Pruning(NamedTuple):
    """The deadline of one pass over a block; by its estimates, per pass, what meeting it saves of the
    attention and what deciding which heads to prune takes; and what measuring heads may take.
    """

    t_max_s: float
    saving_s: float
    deciding_s: float
    budget_s: float


class HeadAssignment:
    """The decisions of one pass over this device's blocks."""

    def __init__(self, ctx: Ctx, state: OwnerState, step: Step, cache: str | None):
        self.ctx, self.state, self.step, self.cache = ctx, state, step, cache
        self.params, self.num_heads = state.params, ctx.model.num_heads

    async def assign(self, layer: int, rows: AttentionRows, measures: BlockImportance) -> HeadAllocation:
        """A device for every head, or none."""
        pruning = self._pruning(layer, rows, measures)
        t_max_s, scores = pruning.t_max_s, UNKNOWN
        allocation = self._without_scores(rows, t_max_s)
        if allocation is None:
            scores = await measures.scores(lambda raw: self._to_prune(raw, rows, t_max_s), pruning.budget_s)
            allocation = self._allocate(scores.raw or (), rows, t_max_s)
        self._keep(layer, allocation, scores)
        self._mark(layer, allocation, scores, rows, pruning)
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
        t_max_s = block_deadline_s(ctx, self.state, rows)
        found = self._pruned(before, scores, rows) if only_prune else self._without_scores(rows, t_max_s)
        if found is None:
            if scores.raw is None:
                scores = await scores_of_token(ctx, self.state, self.step, layer, queries, self.cache)
            found = (
                self._pruned(before, scores, rows)
                if only_prune
                else self._allocate(scores.raw or (), rows, t_max_s)
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

    def _without_scores(self, rows: AttentionRows, t_max_s: float) -> HeadAllocation | None:
        """The allocation, in order of the heads' numbers, if it is the same for any importance: if all heads
        are kept or none. None if it depends on which heads go.
        """
        params = self.params
        counted = params.check == "makespan" or params.scheduling == "dynamic" or params.t_max_mode == "none"
        if params.prune_below is not None or not counted:
            return None
        found = self._allocate([1.0] * self.num_heads, rows, t_max_s)
        return found if found.num_kept in (0, self.num_heads) else None

    def _pruning(self, layer: int, rows: AttentionRows, measures: BlockImportance) -> Pruning:
        """The deadline that this pass keeps, and what that saves and costs: none where deciding would take
        longer than it saves. Heads without room anywhere are left out in any case, and nothing is lost by
        deciding which.
        """
        ctx, state, params = self.ctx, self.state, self.params
        t_max_s = block_deadline_s(ctx, state, rows)
        ones = [1.0] * self.num_heads
        whole, some = (self._allocate(ones, rows, limit_s) for limit_s in (inf, t_max_s))
        number = whole.num_kept - some.num_kept
        if params.prune == "paper" or params.prune_below is not None or not number:
            return Pruning(t_max_s, 0.0, 0.0, whole.collab_s - some.collab_s)
        counts = [Counter(found.device_of) for found in (whole, some)]
        for count in counts:
            del count[PRUNED]
        whole_s, some_s = (attention_s(ctx.cluster_now, ctx.model, ctx.rank, count, rows) for count in counts)
        state.passed[layer] += 1
        passes = max(1, state.passes - state.passed[layer] + 1)
        decides = whole.num_kept == self.num_heads
        deciding_s = measures.deciding_s(number, passes) / passes if decides else 0.0
        saving_s = whole_s - some_s - GAIN * whole_s
        pays = saving_s > deciding_s
        spent_s = measures.features_s() if decides else 0.0
        return Pruning(t_max_s if pays else inf, whole_s - some_s, deciding_s, saving_s - spent_s)

    def _to_prune(self, raw: Sequence[float], rows: AttentionRows, t_max_s: float) -> Collection[int]:
        """The heads that are pruned if `raw` is their importance; all where each could be."""
        if self.params.scheduling == "static" or self.params.prune_below is not None:
            return range(self.num_heads)
        return self._allocate(raw, rows, t_max_s).pruned

    def _allocate(self, raw: Sequence[float], rows: AttentionRows, t_max_s: float) -> HeadAllocation:
        ctx, params, below = self.ctx, self.params, self.params.prune_below
        sites, importance = sites_now(ctx, self.state, rows), normalised(raw)
        split = split_of(ctx, self.state, {*neighbours_of(ctx, self.state), ctx.rank})
        if split is None and below is None and params.check == "makespan":
            return pruned_by_score(
                importance, sites, t_max_s, params.importance_weight, params.fill, params.min_keep
            )
        barred = () if below is None else [head for head, value in enumerate(raw) if value < below]
        return allocate(
            importance, sites, t_max_s, params.fill, params.check, params.min_keep, split, barred=barred
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

    def _mark(
        self,
        layer: int,
        allocation: HeadAllocation,
        scores: Scores,
        rows: AttentionRows,
        pruning: Pruning | None = None,
    ) -> None:
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
            saving_s=pruning.saving_s if pruning else 0.0,
            deciding_s=pruning.deciding_s if pruning else 0.0,
        )
        if not allocation.num_kept:
            ctx.mark("all_heads_pruned", layer=layer, owner=ctx.rank)
