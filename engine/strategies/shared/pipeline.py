"""Run a pipeline: consecutive stages of layers, one per device, through which micro-batches pass in order.

All pipeline strategies share this program. They differ in the layers of each stage, and in when a request may
start its next token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from typing_extensions import TypeVar

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Placement, Plan
from engine.domain.values import Count
from engine.ops.layers import layers
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx, Handle
from engine.program.strategy import Done, Overlapping, ParamsT, Step
from engine.strategies.shared.ends import (
    caches_of,
    end_holdings,
    end_work,
    finish,
    layer_slices,
    tag,
    wanted_rows,
)
from engine.strategies.shared.kv_disk import DiskRows
from engine.strategies.shared.kv_layout import KVLayout
from engine.strategies.shared.kv_pressure import embed_rows, rows_kept_elsewhere, run_block
from engine.strategies.shared.last_head import choose_and_send
from engine.strategies.shared.stages import Stage

Returns = dict[tuple[int, int], Handle]
"""(request, token index) → the program at the source that receives this result."""


class StagesLayout(KVLayout):
    """Base of the layouts that `Pipeline` runs: consecutive stages that cover all layers, one per device.
    `micro_batch` requests of a burst pass together.
    """

    stages: tuple[Stage, ...]
    micro_batch: Count = 1


class PipelineLayout(StagesLayout):
    """The layout of GPipe and Accelerate. `head` is the rank with the output matrix; None: the source."""

    kind: Literal["pipeline"] = "pipeline"
    head: Count | None = None


StagesLayoutT = TypeVar("StagesLayoutT", bound=StagesLayout, default=Any)


def ends_placement(name: str, cluster: ClusterSpec, model: ModelSpec) -> Placement:
    """What the source holds and computes in every strategy: embedding and head, and no layer yet."""
    return Placement(strategy=name, holdings=end_holdings(cluster, model), work=end_work(cluster, model))


def stages_placement(ends: Placement, stages: Sequence[Stage], num_layers: int) -> Placement:
    """The placement of a pipeline: the ends and the layers of all stages.

    Raises `PlanError` unless the stages cover layers [0, num_layers) in order, with one stage per device.
    """
    check_stages(ends.strategy, stages, num_layers)
    pieces = [
        (stage.device, piece)
        for stage in stages
        for layer in range(stage.start, stage.stop)
        for piece in layer_slices(layer)
    ]
    return Placement(
        strategy=ends.strategy,
        holdings=(*ends.holdings, *(HeldSlice(device=rank, slice=piece) for rank, piece in pieces)),
        work=(*ends.work, *(ComputedSlice(device=rank, slice=piece) for rank, piece in pieces)),
    )


def check_stages(strategy: str, stages: Sequence[Stage], num_layers: int) -> None:
    """Check that the stages cover layers [0, num_layers) in order, one stage per device; raises `PlanError`.

    A device with two stages would wait for its own messages: neighbouring stages exchange hidden states by
    rank.
    """
    at = 0
    for stage in stages:
        if not at == stage.start < stage.stop:
            raise PlanError(
                f"{strategy}: the stage of device {stage.device} has layers {stage.start}:{stage.stop}, "
                f"expected at least one layer from {at} on."
            )
        at = stage.stop
    if at != num_layers:
        raise PlanError(f"{strategy}: the stages end at layer {at}, expected {num_layers}.")
    devices = [stage.device for stage in stages]
    for device in devices:
        if devices.count(device) > 1:
            raise PlanError(f"{strategy}: device {device} has {devices.count(device)} stages, expected one.")


class StageLayers:
    """The layers of one device's stage, all of them resident."""

    def __init__(self, ctx: Ctx, plan: Plan[KVLayout], layers: range):
        self.ctx = ctx
        self.plan = plan
        self.layers = layers

    def begin(self, step: Step) -> None:
        """Prepare for a step: start reading what it needs from disk, before its input arrives."""
        self.rows = DiskRows(self.ctx, self.plan, step, self.layers)
        self.rows.begin()

    async def run(self, step: Step, x: Tensor) -> Tensor:
        """Hidden rows `x` [B, T, D] through the layers: [B, T, D]."""
        if self.plan.layout.evicted_rows(step) or self.rows.active:
            for layer in self.layers:
                x = await run_block(self.rows, self.plan, step, layer, x)
        else:
            x = await self.ctx.compute_layers(layers(self.layers.start, self.layers.stop, caches_of(step)), x)
        await self.rows.settle()
        return x

    async def end(self) -> None:
        """After the last step: bring the weights in memory back to the state before the first."""


class Pipeline(Overlapping[ParamsT, StagesLayoutT]):
    """Runs the `stages` of a plan's layout. A source with layers has the first of them."""

    batches_bursts = False

    def together(self, plan: Plan[StagesLayoutT]) -> int | None:
        return plan.layout.micro_batch

    def stage_layers(self, ctx: Ctx, plan: Plan[StagesLayoutT], layers: range) -> StageLayers:
        """What runs the stage of this device; a method whose layers are not all resident has its own."""
        return StageLayers(ctx, plan, layers)

    def why_not_ragged(self, plan: Plan[StagesLayoutT]) -> str | None:
        return rows_kept_elsewhere(self.name, plan)

    def chooses_last(self, plan: Plan[StagesLayoutT]) -> bool:
        """Whether the last stage, which is not the source's, has the output matrix."""
        return False

    async def forward_all(
        self,
        ctx: Ctx,
        plan: Plan[StagesLayoutT],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ) -> None:
        """Every device processes the micro-batches in order, from `tokens` [B, T] of each at the source. At
        the source one more program per step receives its result, so that a result is handed over even while
        the source computes its own stage.
        """
        source = ctx.cluster.source_rank
        stages = plan.layout.stages
        first, last = stages[0].device, stages[-1].device
        returns: Returns = {}
        chosen = self.chooses_last(plan)
        if ctx.rank == source and last != source:
            returns = {
                (step.requests[0], step.index): ctx.spawn(_take(ctx, step, last, done, chosen))
                for step in steps
            }
        if ctx.rank == source and first != source:
            await _feed(ctx, plan, steps, tokens, first, returns)
        for number, mine in enumerate(stages):
            if ctx.rank == mine.device:
                before = stages[number - 1].device if number else source
                after = stages[number + 1].device if number + 1 < len(stages) else source
                stage = self.stage_layers(ctx, plan, range(mine.start, mine.stop))
                await _stage(ctx, steps, tokens, stage, before, after, done, returns, chosen)
        for handle in returns.values():
            await handle


async def _feed(
    ctx: Ctx,
    plan: Plan[KVLayout],
    steps: Sequence[Step],
    tokens: Sequence[Tensor | None],
    first: int,
    returns: Returns,
) -> None:
    for number, step in enumerate(steps):
        ctx.at(step.requests[0], step.index)
        ctx.send(await _input(ctx, plan, step, tokens, number, returns), first, tag(step, "hidden"))


async def _stage(
    ctx: Ctx,
    steps: Sequence[Step],
    tokens: Sequence[Tensor | None],
    stage: StageLayers,
    before: int,
    after: int,
    done: Done,
    returns: Returns,
    chosen: bool,
) -> None:
    """All steps of one device's stage. `before` or `after` equal to the device's own rank means that the
    device is the source and embeds, or computes the result. With `chosen` the last stage computes it.
    """
    layers = stage.layers
    for number, step in enumerate(steps):
        ctx.at(step.requests[0], step.index)
        stage.begin(step)
        if before == ctx.rank:
            x = await _input(ctx, stage.plan, step, tokens, number, returns)
        else:
            x = await ctx.recv(before, tag(step, "hidden", layers.start - 1))
        x = await stage.run(step, x)
        if after == ctx.rank:
            done(step, await finish(ctx, step, x))
        elif layers.stop < ctx.model.num_layers:
            ctx.send(x, after, tag(step, "hidden", layers.stop - 1))
        elif chosen:
            await choose_and_send(ctx, step, x, after, tag(step, "token"))
        else:
            ctx.send(wanted_rows(step, x), after, tag(step, "hidden", layers.stop - 1))
    await stage.end()


async def _input(
    ctx: Ctx,
    plan: Plan[KVLayout],
    step: Step,
    tokens: Sequence[Tensor | None],
    number: int,
    returns: Returns,
) -> Tensor:
    """Embed step `number` as soon as the token that it feeds back is known."""
    awaited = returns.pop((step.requests[0], step.index - 1), None)
    if awaited is not None:
        await awaited
    return await embed_rows(ctx, plan, step, tokens[number])


async def _take(ctx: Ctx, step: Step, last: int, done: Done, chosen: bool) -> None:
    ctx.at(step.requests[0], step.index)
    if chosen:
        done(step, await ctx.recv(last, tag(step, "token")))
    else:
        x = await ctx.recv(last, tag(step, "hidden", ctx.model.num_layers - 1))
        done(step, await finish(ctx, step, x))
