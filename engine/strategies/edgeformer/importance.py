"""Find out which heads of a block are the least important: by the mapping table, else by measuring them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from engine.ops.heads import Features, Heads, Importance, Mix, Recall, Statistics, Weigh, kv_of
from engine.ops.tensors import Meta, Tensor, shape_of, take
from engine.program.ctx import Ctx
from engine.program.strategy import Step
from engine.strategies.edgeformer.choices import Learn, Lookup, Measured
from engine.strategies.edgeformer.scores import Scores
from engine.strategies.edgeformer.state import OwnerState
from engine.strategies.edgeformer.table_size import FEATURE_POINTS, entry_bytes
from engine.strategies.shared.demand import SizedOp
from engine.strategies.shared.shares import op_s


class Projected(NamedTuple):
    """What `Project` gave of a block: everything packed [B, H+2K, T, E], queries, keys and values."""

    packed: Tensor
    queries: Tensor
    keys_values: Tensor


class BlockImportance:
    """The importance of the heads of one block in one pass. `weights` are the attention weights A of measured
    heads, as far as they were kept.
    """

    def __init__(self, ctx: Ctx, state: OwnerState, step: Step, layer: int, x: Projected):
        self.ctx, self.state, self.layer, self.x = ctx, state, layer, x
        self.seen = step.index > 0
        self.width = 2 * ctx.model.head_dim
        self.name = f"v{state.version}.L{layer}.r{step.requests[0]}.t{step.index}"
        self.weights: list[tuple[Heads, Tensor]] = []
        self.raw: list[float] = []
        self.known: set[int] = set()
        self.spent_s = 0.0

    async def scores(self, pruned: Callable[[Sequence[float]], Collection[int]], saving_s: float) -> Scores:
        """Scores by which the heads are known that would be `pruned` by them.

        A head that the table knows within τ has the importance found there. Of the others only those are
        measured that would be pruned: until all of these are known, or, with `on_miss=by_cost`, as long as
        measuring takes less than the `saving_s` of leaving them out. A head that is not measured has the
        importance of its nearest entry. Where the table is empty, any head may be pruned: all are measured.
        """
        ctx, tables, params = self.ctx, self.state.tables, self.state.params
        features = await ctx.compute(Features(self.layer, FEATURE_POINTS), self.x.packed)
        lookup = Lookup(tables, self.layer, self.width, self.seen)
        found = ctx.decide(f"hits.{self.name}", lookup, features)
        heads = range(ctx.model.num_heads)
        self.raw = list(found["raw"])
        if not self.raw:
            self.raw = [0.0] * len(heads)
            await self._measure(tuple(heads), features)
            return Scores(tuple(self.raw), 0, len(heads), len(heads))
        self.known = {head for head in heads if found["hit"][head]}
        hits, measured = len(self.known), 0
        while params.on_miss != "nearest":
            unknown = tuple(sorted(set(pruned(self.raw)) - self.known))
            if not unknown:
                break
            self.spent_s += self._measuring_s(unknown)
            if params.on_miss == "by_cost" and self.spent_s > saving_s:
                break
            await self._measure(unknown, features)
            measured += len(unknown)
        return Scores(tuple(self.raw), hits, len(heads) - hits, measured)

    async def _measure(self, heads: Heads, features: Tensor) -> None:
        """Compute the importance of `heads` exactly, and enter them into the table."""
        statistics = await self._statistics(heads)
        learn = Learn(self.state.tables, self.layer, self.width, heads)
        name = f"importance.{self.name}.{len(self.known)}"
        values = self.ctx.decide(name, learn, statistics, features)
        for head, value in zip(heads, values, strict=True):
            self.raw[head] = value
        self.known.update(heads)
        self.state.tables.count(self.layer, len(heads))
        reserve_table(self.ctx, self.state, self.layer)

    async def _statistics(self, heads: Heads) -> Tensor:
        """Variance and entropy [h, 2]. The attention weights are kept if there is room for all of them."""
        stored = kv_of(self.ctx.model, heads)
        queries, keys = take(self.x.queries, 1, heads), take(self.x.keys_values, 1, stored)
        if len(heads) > self.state.weighed_heads[self.ctx.rank]:
            return await self.ctx.compute(Importance(self.layer, heads, stored), queries, keys)
        weights = await self.ctx.compute(Weigh(self.layer, heads, stored), queries, keys)
        self.weights.append((heads, weights))
        return await self.ctx.compute(Statistics(self.layer), weights)

    def deciding_s(self, number: int, passes: int) -> float:
        """Seconds that finding `number` heads to prune is expected to take in this pass and the later ones of
        `passes`: features of all heads, and measuring those of the `number` that the table does not know, in
        an empty table all.
        """
        tables, heads = self.state.tables, range(self.ctx.model.num_heads)
        hits = 1.0 if self.seen or tables.same_prompt else self.state.params.expected_hits
        some_s = (1 - hits) * self._measuring_s(tuple(heads[:number])) if number else 0.0
        first_s = some_s if tables.num_entries[self.layer] else self._measuring_s(tuple(heads))
        return passes * self.features_s() + first_s + (passes - 1) * some_s

    def features_s(self) -> float:
        """Seconds that the features of all heads take on this device."""
        ctx = self.ctx
        packed = Meta(shape_of(self.x.packed), ctx.model.dtype)
        one = SizedOp(Features(self.layer, FEATURE_POINTS), (packed,))
        return op_s(ctx.cluster_now.devices[ctx.rank], ctx.model, one)

    def _measuring_s(self, heads: Heads) -> float:
        """Seconds that measuring `heads` takes on this device."""
        ctx, stored = self.ctx, kv_of(self.ctx.model, heads)
        batch, _, *rest = shape_of(self.x.queries)
        queries, keys = (Meta((batch, len(some), *rest), ctx.model.dtype) for some in (heads, stored))
        one = SizedOp(Importance(self.layer, heads, stored), (queries, keys))
        return op_s(ctx.cluster_now.devices[ctx.rank], ctx.model, one)

    async def mixed(self, heads: Heads) -> tuple[Heads, list[Tensor]]:
        """The `heads` whose attention weights were kept, and their contexts [B, h, T, E]."""
        order: Heads = ()
        contexts = []
        for measured, weights in self.weights:
            some = tuple(head for head in measured if head in heads)
            if some:
                stored = kv_of(self.ctx.model, some)
                num_keys = self.ctx.model.num_kv_heads
                values = take(self.x.keys_values, 1, [num_keys + head for head in stored])
                rows = take(weights, 1, [measured.index(head) for head in some])
                contexts.append(await self.ctx.compute(Mix(self.layer, some, stored), rows, values))
                order += some
        return order, contexts


def reserve_table(ctx: Ctx, state: OwnerState, layer: int) -> None:
    """Account for the memory of a layer's mapping table."""
    size_bytes = entry_bytes(ctx.model) * state.tables.num_entries[layer]
    ctx.managed_memory.reserve(f"mapping table of layer {layer}", size_bytes)


async def scores_of_token(
    ctx: Ctx, state: OwnerState, step: Step, layer: int, queries: Tensor, cache: str
) -> Scores:
    """The importance of all heads by the attention of the token [B, H, 1, E] over the cached rows.

    For heads that nobody had to compare in the prefill: its queries are gone when a change comes later.
    """
    model = ctx.model
    heads, stored = tuple(range(model.num_heads)), tuple(range(model.num_kv_heads))
    recalled = await ctx.compute(Recall(layer, stored, stored, shape_of(queries)[0], cache))
    keys = take(recalled, 1, stored)
    statistics = await ctx.compute(Importance(layer, heads, stored), queries, keys)
    name = f"importance.v{state.version}.L{layer}.r{step.requests[0]}.t{step.index}"
    raw: Sequence[float] = ctx.decide(name, Measured(state.params.importance), statistics)
    return Scores(tuple(raw), 0, len(heads), len(heads))
