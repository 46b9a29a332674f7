"""What a strategy without memory management does when the KV cache no longer fits: nothing, or recompute.

Lin et al., "LIME" (section V), on its baselines: tokens whose keys and values do not fit are evicted and
computed again in every step. Here the oldest go: a cache keeps as many rows as fit beside the last step,
whose working set is the largest. With E tokens evicted a step passes E + 1 rows through all layers, which
changes no result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from engine.ctx import Ctx
from engine.errors import PlanError
from engine.models.ops import Attention, Block, FeedForward, Op, Residual
from engine.models.recompute_ops import AttentionAgain, EmbedAgain
from engine.models.spec import ModelSpec
from engine.plan import Plan
from engine.strategies.contract import Step
from engine.strategies.demand import Demand
from engine.strategies.ends import cache_of, embed
from engine.tensors import Tensor

KVPressure = Literal["oom", "recompute"]
CANDIDATES = 32
KV_PRESSURE_HELP = (
    "When the KV cache outgrows memory: oom refuses the plan; recompute evicts the oldest tokens "
    "and computes their keys and values again in every step."
)


def plan_under(
    pressure: KVPressure, model: ModelSpec, demand: Demand, plan_for: Callable[[Demand], Plan]
) -> Plan:
    """`plan_for(demand)`, or with "recompute" if need be the plan that evicts the fewest rows.

    Its `extra` says in `kv_rows` how many rows a cache keeps. Each evicted row frees memory in all layers and
    takes some in the one that runs, so too many do not fit either: looks at `CANDIDATES` numbers of
    rows, then between the first that fits and the one before. Raises `PlanError` if none of them fits.
    """
    try:
        return plan_for(demand)
    except PlanError as error:
        if pressure == "oom" or not demand.generates or model.vision:
            raise
        refused = error

    def attempt(evicted: int) -> Plan | None:
        try:
            return plan_for(demand._replace(evicted_rows=evicted))
        except PlanError:
            return None

    stride = -(-demand.cached_rows // CANDIDATES)
    too_few = 0
    for evicted in (*range(stride, demand.cached_rows - 1, stride), demand.cached_rows - 1):
        plan = attempt(evicted)
        if plan is not None:
            break
        too_few = evicted
    else:
        raise refused
    while evicted - too_few > 1:
        middle = (evicted + too_few) // 2
        fewer = attempt(middle)
        if fewer is None:
            too_few = middle
        else:
            plan, evicted = fewer, middle
    return plan.model_copy(update={"extra": {**plan.extra, "kv_rows": demand.cached_rows - evicted}})


def evicted_rows(plan: Plan, step: Step) -> int:
    """How many of the oldest tokens are not in the cache after `step`."""
    rows = step.start + step.rows
    kept: int = plan.extra.get("kv_rows", rows)
    return max(0, rows - kept)


def rows_in_step(plan: Plan, step: Step) -> int:
    """Rows that go through the layers: the new ones and the evicted ones that are not among them."""
    return step.rows + min(step.start, evicted_rows(plan, step))


async def embed_rows(ctx: Ctx, plan: Plan, step: Step, tokens: Tensor) -> Tensor:
    """The hidden rows that go through the layers [B, E + T, D]; at the source."""
    if "kv_rows" not in plan.extra:
        return await embed(ctx, step, tokens)
    evicted = evicted_rows(plan, step)
    if evicted:
        ctx.mark("recomputed", rows=evicted)
    return await ctx.compute(EmbedAgain(step.start, evicted, step.cache), tokens)


def attention_op(
    plan: Plan, step: Step, layer: int, start: int, stop: int, bias: bool, normed: bool = False
) -> Op:
    """Query heads [start, stop) over the rows of `step`."""
    evicted = evicted_rows(plan, step)
    if not evicted:
        return Attention(layer, start, stop, bias, cache_of(step), normed)
    position = max(step.start, evicted)
    return AttentionAgain(layer, start, stop, bias, step.cache, evicted, position, normed)


async def run_block(ctx: Ctx, plan: Plan, step: Step, layer: int, x: Tensor) -> Tensor:
    """A whole layer over the rows of `step`."""
    if not evicted_rows(plan, step):
        return await ctx.compute(Block(layer, cache_of(step)), x)
    model = ctx.model
    total = await ctx.compute(attention_op(plan, step, layer, 0, model.num_heads, True), x)
    x = await ctx.compute(Residual(layer, "attention"), x, total)
    total = await ctx.compute(FeedForward(layer, 0, model.intermediate_size, True), x)
    return await ctx.compute(Residual(layer, "ffn"), x, total)
