"""Prefill and decode on different devices: one computes prompts, another one tokens.

Patel et al., "Splitwise: Efficient Generative LLM Inference Using Phase Splitting" (ISCA 2024); Zhong et
al., "DistServe" (OSDI 2024). Arithmetic bounds a prompt and memory a token, so each phase has the device that
suits it, and both hold the whole model. The KV cache goes over layer by layer while the prompt is still
computed (Splitwise, section IV-C). Under the scheduler `disaggregated` both devices compute at the same time,
for different requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from pydantic import Field

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Layout, Placement, Plan
from engine.domain.values import Count
from engine.domain.workload import Workload
from engine.ops.core import Block
from engine.ops.kv_cache import PutRows, TakeRows
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx
from engine.program.strategy import Done, Overlapping, Params, Step
from engine.strategies.shared.demand import (
    Demand,
    SizedOp,
    block_ops,
    check_memory,
    demand_of,
    end_ops,
    hidden,
)
from engine.strategies.shared.ends import (
    caches_of,
    end_holdings,
    end_work,
    layer_slices,
    pass_on_device,
    tag,
)
from engine.strategies.shared.shares import named_worker, op_s, prefill_layer_s

REMEDY = "give it more memory, or choose a method that splits the weights (gpipe, megatron)"


class DisaggregatedParams(Params):
    prompt_device: str = Field(
        default="",
        description="Worker that computes prompts; empty: the fastest of those with room.",
    )
    token_device: str = Field(
        default="",
        description="Worker that computes tokens; empty: of the others with room, the fastest.",
    )


class DisaggregatedLayout(Layout):
    """The ranks that compute prompts and tokens; the same one where no other worker has room."""

    kind: Literal["disaggregated"] = "disaggregated"
    prompt_device: Count
    token_device: Count

    @property
    def is_apart(self) -> bool:
        return self.prompt_device != self.token_device


class Disaggregated(Overlapping[DisaggregatedParams, DisaggregatedLayout]):
    name = "disaggregated"
    title = "Prefill and decode apart"
    paper = "Patel et al., Splitwise, ISCA 2024; Zhong et al., DistServe, OSDI 2024"
    summary = "One device computes prompts, another one tokens; KV caches go over layer by layer."
    rule = (
        "Prompts have the fastest device with room, tokens the fastest other one: more memory, or another "
        "link or device, can be slower."
    )
    Params = DisaggregatedParams
    Layout = DisaggregatedLayout

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: DisaggregatedParams
    ) -> Plan[DisaggregatedLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        refusals = []
        for first, then in _pairs(cluster, model, demand, params):
            try:
                return _placed(cluster, model, demand, first, then)
            except PlanError as error:
                refusals.append(error)
        raise refusals[0]

    def why_not_ragged(self, plan: Plan[DisaggregatedLayout]) -> str | None:
        if not plan.layout.is_apart:
            return None
        return "disaggregated has no device for a step with prompts and tokens (scheduler disaggregated)."

    def why_not_apart(self, plan: Plan[DisaggregatedLayout]) -> str | None:
        if plan.layout.is_apart:
            return None
        return "disaggregated has only one worker with room for this model here."

    needs_cache = "it moves KV caches from the device of prompts to that of tokens."

    async def forward_all(
        self,
        ctx: Ctx,
        plan: Plan[DisaggregatedLayout],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ) -> None:
        first, then = plan.layout.prompt_device, plan.layout.token_device
        for step, ids in zip(steps, tokens, strict=True):
            ctx.at(step.requests[0], step.index)
            moves = step.phase == "prefill" and bool(step.cache) and plan.layout.is_apart
            taken = ctx.spawn(_take_over(ctx, step, first)) if moves and ctx.rank == then else None
            rank = first if step.phase == "prefill" else then
            run = partial(_layers, ctx, step, then=then if moves else None)
            result = await pass_on_device(ctx, step, ids, rank, run)
            if result is not None:
                done(step, result)
            if taken is not None:
                await taken


async def _layers(ctx: Ctx, step: Step, x: Tensor, then: int | None) -> Tensor:
    """All layers. The KV rows of each are on their way to device `then` while the next one is computed."""
    for layer in range(ctx.model.num_layers):
        x = await ctx.compute(Block(layer, caches_of(step)), x)
        if then is None:
            continue
        for one in step.each:
            take = TakeRows(layer, one.start, one.start + one.rows, one.batch, one.cache)
            ctx.send(await ctx.compute(take), then, tag(one, "kv", layer))
    for one in step.each if then is not None else ():
        ctx.release(one.cache)
    return x


async def _take_over(ctx: Ctx, step: Step, first: int) -> None:
    """Put the KV rows that device `first` sends into this device's caches."""
    for layer in range(ctx.model.num_layers):
        for one in step.each:
            await ctx.compute(PutRows(layer, one.cache), await ctx.recv(first, tag(one, "kv", layer)))


def _pairs(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, params: DisaggregatedParams
) -> list[tuple[int, int]]:
    """The ranks for prompts and for tokens, the best pair first, one device for both last. Ties for tokens go
    to the source, which embeds them and has the head.
    """
    source, workers, where = cluster.source_rank, cluster.workers, "parameters of disaggregated"
    first = named_worker(cluster, params.prompt_device, f"{where}, prompt_device")
    then = named_worker(cluster, params.token_device, f"{where}, token_device")
    token = SizedOp(Block(0, "plan"), (hidden(model, demand.batch, 1),), demand.cached_rows)

    def prompt_order(rank: int) -> tuple[float, bool, int]:
        return prefill_layer_s(cluster.devices[rank], model, demand), rank == source, rank

    def token_order(rank: int) -> tuple[float, bool, int]:
        return op_s(cluster.devices[rank], model, token), rank != source, rank

    firsts = sorted(workers, key=prompt_order) if first is None else [first]
    thens = sorted(workers, key=token_order) if then is None else [then]
    if not demand.generates:
        return [(rank, rank) for rank in firsts]
    pairs = [(one, other) for one in firsts for other in thens]
    return sorted(pairs, key=lambda pair: pair[0] == pair[1])


def _placed(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, first: int, then: int
) -> Plan[DisaggregatedLayout]:
    """The plan with these ranks for prompts and tokens. Raises `PlanError` if memory is short."""
    roles: list[tuple[int, Literal["both", "prefill", "decode"]]] = (
        [(first, "prefill"), (then, "decode")] if first != then else [(first, "both")]
    )
    pieces = [piece for layer in range(model.num_layers) for piece in layer_slices(layer)]
    placement = Placement(
        strategy=Disaggregated.name,
        holdings=(
            *end_holdings(cluster, model),
            *(HeldSlice(device=rank, slice=piece) for rank, _ in roles for piece in pieces),
        ),
        work=(
            *end_work(cluster, model),
            *(
                ComputedSlice(device=rank, slice=piece, phase=phase)
                for rank, phase in roles
                for piece in pieces
            ),
        ),
    )
    prompts = demand._replace(cached_rows=demand.rows)
    ops = {rank: list(block_ops(model, demand)) for rank, _ in roles}
    ops.setdefault(cluster.source_rank, []).extend(end_ops(model, demand))
    kv_bytes = {
        rank: model.num_layers
        * (prompts if phase == "prefill" else demand).kv_bytes(model, model.num_kv_heads)
        for rank, phase in roles
    }
    check_memory(cluster, model, placement, kv_bytes, ops, REMEDY)
    return placement.with_layout(DisaggregatedLayout(prompt_device=first, token_device=then))
