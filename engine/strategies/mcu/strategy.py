"""Tensor parallelism with minimal off-chip traffic for microcontrollers.

Bochem, Jung, Prasad, Conti, Benini, "Distributed Inference with Minimal Off-Chip Traffic for Transformers on
Low-Power MCUs" (DATE 2025). Heads and columns are split over the chips so that no weight exists twice. Per
block two partial sums are reduced up a tree of groups of four to the root, which adds the skip connection and
normalises; its result is broadcast down the same tree: 4(N-1) messages of [T, D] and two synchronisations.
The broadcast that ends a block begins the next one; the first broadcast is of the embedded input.

Pre-norm models: only the root has the residual stream; chips receive the normalised input of their part. Not
in the paper: the source embeds and computes the logits, and if it is no chip, the root sends it the last
hidden state; with more chips than KV heads some chips have columns only, unless `allow_kv_dup` is set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from engine.domain.by_hand import DeviceShare, PlanByHand, Unit
from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import PlanAt
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan, Slice
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.ops.core import Add, Attention, FeedForward, Norm, Residual
from engine.ops.operation import LayerPart, Op
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx, Handle
from engine.program.strategy import DivisibleParams, Done, Step, Strategy
from engine.strategies.mcu.plan import ChipShare, TreeLayout, make_plan, shares_by_hand, shares_of
from engine.strategies.mcu.report import McuReport
from engine.strategies.mcu.tree import broadcast_from_root, reduce_to_root, tree_neighbours
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.ends import cache_of, embed, finish, tag, wanted_rows


class McuParams(DivisibleParams):
    units = ("heads", "columns")
    group_size: int = Field(default=4, ge=2, description="Chips of a group, one of which leads it.")
    allow_kv_dup: bool = Field(
        default=False,
        description="With fewer KV heads than chips: copy KV heads, instead of chips without heads.",
    )


class Mcu(Strategy[McuParams, TreeLayout]):
    name = "mcu"
    splits_heads = True
    computes_int8 = True
    title = "Tensor parallel on microcontrollers"
    paper = "Bochem et al., DATE 2025"
    is_baseline = False
    summary = (
        "Heads and columns split without copies, partial sums up and down a tree of groups of four; weights "
        "stay on chip where they fit, else the next block's are fetched meanwhile."
    )
    rule = (
        "All devices take part, in the order of their list: another order, or one better device or link, "
        "can be slower."
    )
    Params = McuParams
    Layout = TreeLayout
    Report = McuReport

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: McuParams
    ) -> Plan[TreeLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        if params.plan is not None:
            shares = shares_by_hand(self.name, cluster, model, params.plan, params.allow_kv_dup)
        else:
            shares = shares_of(cluster, model, params.allow_kv_dup)
        return make_plan(self.name, cluster, model, demand, params.group_size, shares)

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[TreeLayout]) -> PlanByHand:
        layout = plan.layout
        chips = zip(layout.group, layout.heads, layout.columns, strict=True)
        return PlanByHand(
            devices=tuple(
                DeviceShare(
                    device=cluster.devices[rank].name,
                    heads=heads[1] - heads[0],
                    columns=columns[1] - columns[0],
                )
                for rank, heads, columns in chips
            )
        )

    def hand_steps(self, model: ModelSpec, params: McuParams) -> Mapping[Unit, int]:
        heads: dict[Unit, int] = {"heads": 1 if params.allow_kv_dup else model.group_size}
        return heads | {"columns": model.int8_group} if model.activation_bits else heads

    def summarise(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        plans: Sequence[PlanAt],
        trace: Sequence[Span | Mark],
    ) -> McuReport:
        return McuReport.of(cluster, model, plans)

    def why_not_ragged(self, plan: Plan[TreeLayout]) -> str | None:
        return "mcu has a KV cache for each tile of heads, which is named after a batch at one position."

    async def forward(
        self, ctx: Ctx, plan: Plan[TreeLayout], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        chip = Chip(ctx, plan.layout)
        result = await chip.forward(step, tokens)
        await chip.fetched()
        return result

    async def forward_all(
        self,
        ctx: Ctx,
        plan: Plan[TreeLayout],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ) -> None:
        """Hands a result over before the first block's weights are loaded for the next step."""
        for step, ids in zip(steps, tokens, strict=True):
            ctx.at(step.requests[0], step.index)
            chip = Chip(ctx, plan.layout)
            result = await chip.forward(step, ids)
            if result is not None:
                done(step, result)
            await chip.fetched()


class Chip:
    """One step on one device, which may be a source that is no chip."""

    def __init__(self, ctx: Ctx, layout: TreeLayout):
        self.ctx, self.layout = ctx, layout
        self.group = layout.group
        self.root, self.source = self.group[0], ctx.cluster.source_rank
        self.neighbours = tree_neighbours(layout.tree, ctx.rank)
        self.share = layout.share_of(ctx.rank) if ctx.rank in self.group else None
        self.pending: list[Handle] = []

    async def forward(self, step: Step, tokens: Tensor | None) -> Tensor | None:
        ctx = self.ctx
        x = await embed(ctx, step, tokens) if ctx.rank == self.source else None
        if self.source != self.root:
            if ctx.rank == self.source:
                ctx.send(x, self.root, tag(step, "input"))
            elif ctx.rank == self.root:
                x = await ctx.recv(self.source, tag(step, "input"))
        if self.share is not None:
            for layer in range(ctx.model.num_layers):
                x = await self.block(layer, self.share, step, x)
        if self.source != self.root:
            if ctx.rank == self.root:
                ctx.send(wanted_rows(step, x), self.source, tag(step, "output"))
            elif ctx.rank == self.source:
                x = await ctx.recv(self.root, tag(step, "output"))
        return await finish(ctx, step, x) if ctx.rank == self.source else None

    async def fetched(self) -> None:
        """Wait for the weights that are being loaded."""
        for handle in self.pending:
            await handle
        self.pending = []

    async def block(self, layer: int, share: ChipShare, step: Step, x: Tensor | None) -> Tensor | None:
        """The residual stream (after the norm in post-norm models) at the root, None elsewhere."""
        await self.fetched()
        ctx, prefetches = self.ctx, share.regime == "double-buffered"
        if prefetches:
            following = share.pieces((layer + 1) % ctx.model.num_layers)
            self.pending = [ctx.load(piece) for piece in following]
        x = await self._part(layer, "attention", share, step, x)
        x = await self._part(layer, "ffn", share, step, x)
        if prefetches:
            for piece in share.pieces(layer):
                ctx.evict(piece)
        return x

    async def _part(
        self, layer: int, part: LayerPart, share: ChipShare, step: Step, x: Tensor | None
    ) -> Tensor | None:
        """Compute a part by broadcast, partial sums and reduction: one synchronisation. The skip is added
        once, on the root.
        """
        ctx, model = self.ctx, self.ctx.model
        is_root = ctx.rank == self.root
        own = x
        if is_root and model.norms_inputs:
            own = await ctx.compute(Norm(layer, part), x)
        own = await broadcast_from_root(ctx, own, self.neighbours, tag(step, f"{part}-in", layer))
        partial = await self._partial(layer, part, share, step, own)
        senders = self.layout.senders.attention if part == "attention" else self.layout.senders.ffn
        total = await reduce_to_root(ctx, partial, self.neighbours, senders, tag(step, part, layer))
        if not is_root:
            return None
        if model.has_output_bias if part == "attention" else model.adds_ffn_bias:
            total = await ctx.compute(Add(), total, await ctx.compute(_bias(layer, part), total))
        return await ctx.compute(Residual(layer, part), x, total)

    async def _partial(
        self, layer: int, part: LayerPart, share: ChipShare, step: Step, x: Tensor
    ) -> Tensor | None:
        """The partial sum over this chip's heads or columns; None if it has none."""
        ctx, streams = self.ctx, share.regime == "streamed"
        partial = None
        for piece in share.attention(layer) if part == "attention" else share.ffn(layer):
            if streams:
                await ctx.load(piece)
            op = (
                Attention(layer, piece.start, piece.stop, False, _tile_cache(step, share, piece), True)
                if part == "attention"
                else FeedForward(layer, piece.start, piece.stop, False, True)
            )
            summand = await ctx.compute(op, x)
            partial = summand if partial is None else await ctx.compute(Add(), partial, summand)
            if streams:
                ctx.evict(piece)
        return partial


def _tile_cache(step: Step, share: ChipShare, piece: Slice) -> str | None:
    """The KV cache of a tile of heads. The first tile's has the step's name, the others are parts of it."""
    name = cache_of(step)
    return name if name is None or piece.start == share.heads[0] else f"{name}/{piece.start}"


def _bias(layer: int, part: LayerPart) -> Op:
    """The output bias alone: the partial sum of no heads or columns."""
    if part == "attention":
        return Attention(layer, 0, 0, True, None, True)
    return FeedForward(layer, 0, 0, True, True)
