"""What a strategy does when the KV cache does not fit: refuse the plan, recompute rows, or offload rows.

Sun et al., "LIME" (arXiv 2512.21835), section V, about its baselines: tokens whose keys and values do not fit
are evicted and recomputed in every step. Here the oldest rows are evicted, as few as the memory allows. With
E rows evicted a step passes E + 1 rows through all layers; the results are the same. With `offload_kv` the
oldest rows are on disk and are read back for every step (`kv_disk.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, TypeVar

from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.ops.core import Attention, FeedForward, Residual
from engine.ops.operation import Op
from engine.ops.recompute import AttentionAgain, EmbedAgain
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx
from engine.program.strategy import Step
from engine.strategies.shared.demand import Demand
from engine.strategies.shared.ends import caches_of, embed
from engine.strategies.shared.kv_disk import DiskRows
from engine.strategies.shared.kv_layout import KVLayout

KVPressure = Literal["oom", "recompute", "offload_kv"]
"""The parameter `kv_pressure`: what happens when KV caches outgrow memory."""

CANDIDATES = 32
KV_PRESSURE_HELP = (
    "When the KV cache outgrows memory: oom refuses the plan; recompute evicts the oldest tokens "
    "and computes their keys and values again in every step; offload_kv has the oldest rows on disk "
    "and reads them back in every step."
)
"""Description of the parameter `kv_pressure`."""

KVLayoutT = TypeVar("KVLayoutT", bound=KVLayout)


UNKEPT = {"recompute": "evicted_rows", "offload_kv": "offloaded_rows"}
"""By policy the field of a demand that counts the rows that are not kept."""


def with_kept_rows(plan: Plan[KVLayoutT], demand: Demand) -> Plan[KVLayoutT]:
    """`plan` whose layout says how many rows a cache keeps, and how many in memory, if not all."""
    kept: dict[str, int] = {}
    if demand.evicted_rows:
        kept["kv_rows"] = demand.kept_rows
    if demand.offloaded_rows:
        kept["kv_memory_rows"] = demand.memory_rows
    return plan.model_copy(update={"layout": plan.layout.model_copy(update=kept)}) if kept else plan


def plan_under(
    pressure: KVPressure,
    model: ModelSpec,
    demand: Demand,
    plan_for: Callable[[Demand], Plan[KVLayoutT]],
    check: Callable[[Plan[KVLayoutT], Demand], object],
) -> Plan[KVLayoutT]:
    """`plan_for(demand)`, or if need be the plan that evicts or offloads the fewest rows, as `pressure` says.

    Its layout says in `kv_rows` ("recompute") or `kv_memory_rows` how many rows a cache keeps. A plan for
    answers of an assumed length stays as it is when they become longer; then it keeps as many rows as `check`
    allows, which raises `PlanError` where a plan does not fit a demand. If that is not enough the plan is for
    the true length; without one the run ends where memory does. Raises `PlanError` if there is none at all.
    """
    if pressure == "oom" or not demand.generates or (pressure == "recompute" and model.vision):
        return plan_for(demand)
    plan = _with_fewest(UNKEPT[pressure], demand, plan_for)
    if demand.longest is demand:
        return plan

    def as_planned(of: Demand) -> Plan[KVLayoutT]:
        check(plan, of)
        return plan

    for extended in (as_planned, plan_for):
        with suppress(PlanError):
            return _with_fewest(UNKEPT[pressure], demand.true, extended)
    return plan


def _with_fewest(
    unkept: str, demand: Demand, plan_for: Callable[[Demand], Plan[KVLayoutT]]
) -> Plan[KVLayoutT]:
    """The plan with the fewest rows away from the caches; raises the `PlanError` of all rows in them if there
    is none.

    A row that is not kept frees memory in all layers but needs some in the layers that run, so too many
    evicted rows do not fit either. Tries `CANDIDATES` numbers of rows, then bisects between the first that
    fits and the one before.
    """
    try:
        return plan_for(demand)
    except PlanError as error:
        refused = error

    def attempt(rows: int) -> Plan[KVLayoutT] | None:
        changed: dict[str, Any] = {unkept: rows}
        of = demand._replace(**changed)
        with suppress(PlanError):
            return with_kept_rows(plan_for(of), of)
        return None

    stride = -(-demand.cached_rows // CANDIDATES)
    too_few = 0
    for rows in (*range(stride, demand.cached_rows - 1, stride), demand.cached_rows - 1):
        plan = attempt(rows)
        if plan is not None:
            break
        too_few = rows
    else:
        raise refused
    while rows - too_few > 1:
        middle = (rows + too_few) // 2
        fewer = attempt(middle)
        if fewer is None:
            too_few = middle
        else:
            plan, rows = fewer, middle
    return plan


def rows_kept_elsewhere(name: str, plan: Plan[KVLayout]) -> str | None:
    """Why a plan takes no steps of sequences at positions of their own: it keeps no whole KV caches. None if
    it does.
    """
    if plan.layout.kv_rows is None and plan.layout.kv_memory_rows is None:
        return None
    return (
        f"in this plan of {name} the oldest rows of a KV cache are computed again or on disk: as many of "
        "each sequence of a step."
    )


async def embed_rows(ctx: Ctx, plan: Plan[KVLayout], step: Step, tokens: Tensor) -> Tensor:
    """Embed the rows that pass through the layers, [B, E + T, D] with E evicted ones. Only the source calls
    this.
    """
    if plan.layout.kv_rows is None:
        return await embed(ctx, step, tokens)
    evicted = plan.layout.evicted_rows(step)
    if evicted:
        ctx.mark("recomputed", rows=evicted)
    return await ctx.compute(EmbedAgain(step.start, evicted, step.cache), tokens)


def attention_op(
    plan: Plan[KVLayout], step: Step, layer: int, start: int, stop: int, bias: bool, normed: bool = False
) -> Op:
    """The attention of query heads [start, stop) in `step`: with recomputed rows if some are evicted."""
    evicted = plan.layout.evicted_rows(step)
    if not evicted:
        return Attention(layer, start, stop, bias, caches_of(step), normed)
    position = max(step.start, evicted)
    return AttentionAgain(layer, start, stop, bias, step.cache, evicted, position, normed)


async def run_block(rows: DiskRows, plan: Plan[KVLayout], step: Step, layer: int, x: Tensor) -> Tensor:
    """Run a whole layer over the rows `x` [B, T, D] of `step` in parts, because KV rows are evicted or on
    disk; gives [B, T, D].
    """
    ctx, model = rows.ctx, rows.ctx.model
    total = await rows.compute(attention_op(plan, step, layer, 0, model.num_heads, True), x)
    x = await ctx.compute(Residual(layer, "attention"), x, total)
    total = await ctx.compute(FeedForward(layer, 0, model.intermediate_size, True), x)
    return await ctx.compute(Residual(layer, "ffn"), x, total)
