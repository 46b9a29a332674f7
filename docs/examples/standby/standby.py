"""One device computes the model and a second one beside it: when the first fails, no token is computed again.

Both get every input and keep a KV cache. After each step the source says to the second whether it needs the
result, which it does once the first has failed. So the run goes on without a new plan; only when both are
gone EdgeLoom plans again.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgeloom.method import (
    ClusterSpec,
    ComputedSlice,
    Count,
    Ctx,
    HeldSlice,
    Layout,
    ModelSpec,
    Params,
    PeerFailed,
    Placement,
    Plan,
    PlanError,
    Step,
    Strategy,
    Tensor,
    Workload,
    zeros,
)
from edgeloom.method.demand import block_ops, check_memory, demand_of, end_ops
from edgeloom.method.operations import layers
from edgeloom.method.planning import layer_s
from edgeloom.method.running import (
    cache_of,
    embed,
    end_holdings,
    end_work,
    finish,
    layer_slices,
    tag,
    wanted_rows,
)


class StandbyParams(Params):
    spare: bool = Field(default=True, description="Whether a second device computes beside the first.")


class StandbyLayout(Layout):
    """`device` computes all layers, and so does `spare`; None: nobody."""

    kind: Literal["standby"] = "standby"
    device: Count
    spare: Count | None


class Standby(Strategy[StandbyParams, StandbyLayout]):
    name = "standby"
    title = "Hot standby"
    summary = (
        "Two devices compute the model, the fastest ones; when the first fails, the second has the result."
    )
    Params = StandbyParams
    Layout = StandbyLayout

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: StandbyParams
    ) -> Plan[StandbyLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        others = [rank for rank in cluster.workers if rank != cluster.source_rank] or cluster.workers
        others = sorted(others, key=lambda rank: (layer_s(cluster.devices[rank], model, demand), rank))
        if not others:
            raise PlanError(f"{self.name}: the cluster has no worker: let a device compute.")
        device, spare = others[0], others[1] if params.spare and len(others) > 1 else None
        computing = [device] if spare is None else [device, spare]
        pieces = [piece for layer in range(model.num_layers) for piece in layer_slices(layer)]
        held = [HeldSlice(device=rank, slice=piece) for rank in computing for piece in pieces]
        placement = Placement(
            strategy=self.name,
            holdings=(*end_holdings(cluster, model), *held),
            work=(
                *end_work(cluster, model),
                *(ComputedSlice(device=device, slice=piece) for piece in pieces),
            ),
        )
        kv_bytes = dict.fromkeys(computing, model.num_layers * demand.kv_bytes(model, model.num_kv_heads))
        ops = {rank: list(block_ops(model, demand)) for rank in computing}
        ops.setdefault(cluster.source_rank, []).extend(end_ops(model, demand))
        check_memory(cluster, model, placement, kv_bytes, ops, "give it more memory, or set spare=false")
        return placement.with_layout(StandbyLayout(device=device, spare=spare))

    def partners(self, cluster: ClusterSpec, plan: Plan[StandbyLayout]) -> frozenset[tuple[int, int]]:
        """The spare sends its result only after a failure, which no prediction shows."""
        source, spare = cluster.source_rank, plan.layout.spare
        return frozenset() if spare is None else frozenset({(spare, source)})

    async def forward(
        self, ctx: Ctx, plan: Plan[StandbyLayout], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        source, device, spare = ctx.cluster.source_rank, plan.layout.device, plan.layout.spare
        if ctx.rank == source:
            return await at_source(ctx, plan, step, await embed(ctx, step, tokens))
        if ctx.rank in (device, spare):
            result = await all_layers(ctx, step, await ctx.recv(source, tag(step, "input")))
            if ctx.rank == device or (await ctx.recv_noted(source, tag(step, "wanted")))[0] == (1,):
                ctx.send(result, source, tag(step, "output"))
        return None


async def at_source(ctx: Ctx, plan: Plan[StandbyLayout], step: Step, x: Tensor) -> Tensor:
    """Give the input to both, and take the result of the first, or of the spare if that has failed."""
    device, spare = plan.layout.device, plan.layout.spare
    if device == ctx.rank:
        return await finish(ctx, step, await all_layers(ctx, step, x))
    for rank in (device, spare):
        if rank is not None:
            ctx.send(x, rank, tag(step, "input"))
    result = None
    try:
        result = await ctx.recv(device, tag(step, "output"))
    except PeerFailed:
        if spare is None:
            raise
        if device not in ctx.memory.setdefault("replaced", set()):
            ctx.memory["replaced"].add(device)
            ctx.mark("taken_over", device=device, spare=spare)
    if spare is not None:
        ctx.send(zeros((1,), x, "float32"), spare, tag(step, "wanted"), (int(result is None),))
        if result is None:
            result = await ctx.recv(spare, tag(step, "output"))
    return await finish(ctx, step, result)


async def all_layers(ctx: Ctx, step: Step, x: Tensor) -> Tensor:
    return wanted_rows(step, await ctx.compute_layers(layers(0, ctx.model.num_layers, cache_of(step)), x))
