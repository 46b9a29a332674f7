"""Cloud-Only: a server computes the whole model; the source uploads prompts and receives token ids.

The baseline "Cloud-Only" of Hu et al., "AdaptLink" (AAAI 2025 workshop): a fast server behind a slow uplink.
A picture is uploaded as the pixels that the model reads. `upload_bytes` adds what an application sends
besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

from pydantic import Field

from engine.domain.by_hand import PlanByHand, Unit
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Layout, Placement, Plan
from engine.domain.values import Count
from engine.domain.workload import Workload
from engine.ops.layers import layers
from engine.ops.tensors import Meta, Tensor, payload_bytes, zeros
from engine.ops.tokens import Greedy
from engine.ops.vision import ImagePrompt
from engine.program.ctx import Ctx
from engine.program.strategy import DivisibleParams, Step, Strategy
from engine.strategies.adaptlink.time import RequestTime
from engine.strategies.shared.by_hand import of_device, wanted_device
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
    choice_op,
    embed,
    end_holdings,
    end_work,
    layer_slices,
    result_of,
    tag,
)
from engine.strategies.shared.messages import message_s
from engine.strategies.shared.shares import op_s


class CloudOnlyParams(DivisibleParams):
    units = ("layers",)
    device: str = Field(
        default="",
        description="The server; empty: the worker with which a request is estimated to be fastest, its "
        "way included.",
    )
    upload_bytes: Count = Field(
        default=0, description="Bytes that each request sends up besides its prompt: a picture's file, say."
    )


class CloudLayout(Layout):
    """The server's rank, and the bytes that each request sends up besides its prompt."""

    kind: Literal["cloud"] = "cloud"
    device: Count
    upload_bytes: Count


class CloudOnly(Strategy[CloudOnlyParams, CloudLayout]):
    name = "cloud_only"
    title = "Cloud only"
    paper = "Baseline of Hu et al., AdaptLink, AAAI 2025 workshop"
    summary = "A server computes everything, ends included; prompts go up, token ids come back."
    Params = CloudOnlyParams
    Layout = CloudLayout

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: CloudOnlyParams
    ) -> Plan[CloudLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        named = wanted_device(self.name, cluster, model, params.device, params.plan)
        time_s = partial(_request_s, RequestTime(cluster, model, demand), params.upload_bytes)
        servers = sorted(cluster.workers, key=time_s) if named is None else [named]
        refusals = []
        for rank in servers:
            try:
                return self._on(rank, cluster, model, demand, params)
            except PlanError as error:
                refusals.append(error)
        raise refusals[0]

    def _on(
        self, rank: int, cluster: ClusterSpec, model: ModelSpec, demand: Demand, params: CloudOnlyParams
    ) -> Plan[CloudLayout]:
        """The plan with the server `rank`. Raises `PlanError` if its memory is short."""
        layers = [piece for layer in range(model.num_layers) for piece in layer_slices(layer)]
        here = {"device": rank}
        placement = Placement(
            strategy=self.name,
            holdings=(
                *(holding.model_copy(update=here) for holding in end_holdings(cluster, model)),
                *(HeldSlice(slice=piece, **here) for piece in layers),
            ),
            work=(
                *(work.model_copy(update=here) for work in end_work(cluster, model)),
                *(ComputedSlice(slice=piece, **here) for piece in layers),
            ),
        )
        kv_bytes = {rank: model.num_layers * demand.kv_bytes(model, model.num_kv_heads)}
        ops = [*end_ops(model, demand), *block_ops(model, demand)]
        if demand.generates:
            ops.append(SizedOp(Greedy(), (Meta((demand.batch, model.vocab_size), model.dtype),)))
        check_memory(
            cluster,
            model,
            placement,
            kv_bytes,
            {rank: ops},
            "give it more memory, or name a larger server",
        )
        return placement.with_layout(CloudLayout(device=rank, upload_bytes=params.upload_bytes))

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[CloudLayout]) -> PlanByHand:
        return of_device(cluster, model, plan.layout.device)

    def hand_steps(self, model: ModelSpec, params: CloudOnlyParams) -> Mapping[Unit, int]:
        return {"layers": model.num_layers}

    def why_not_ragged(self, plan: Plan[CloudLayout]) -> str | None:
        return None

    async def forward(
        self, ctx: Ctx, plan: Plan[CloudLayout], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        server, source = plan.layout.device, ctx.cluster.source_rank
        if ctx.rank == source != server:
            _upload(ctx, step, tokens, server, plan.layout.upload_bytes)
            return await ctx.recv(server, tag(step, "output"))
        if ctx.rank != server:
            return None
        if source != server:
            tokens = await _prompt(ctx, step, source, plan.layout.upload_bytes)
        x = await embed(ctx, step, tokens)
        x = await ctx.compute_layers(layers(0, ctx.model.num_layers, caches_of(step)), x)
        result = await result_of(ctx, step, x)
        if step.generates and step.answered:
            result = await ctx.compute(choice_op(step), result)
        if source == server:
            return result
        ctx.send(result, source, tag(step, "output"))
        return None


def _request_s(times: RequestTime, upload_bytes: int, rank: int) -> float:
    """Seconds of a request with the server `rank`: the way up, all layers and both ends there, and back."""
    cluster, model, demand = times.cluster, times.model, times.demand
    source, ids, further = (
        cluster.source_rank,
        Meta((demand.batch, 1), "int64"),
        max(0, demand.new_tokens - 1),
    )
    *begin, end = end_ops(model, demand)
    prompt = {one.inputs[0] for one in (begin[0], begin[-1])}
    up_bytes = sum(payload_bytes(one) for one in prompt) + demand.batch * upload_bytes
    down_bytes = payload_bytes(ids if demand.generates else hidden(model, demand.batch, demand.rows))
    ways_s = [message_s(cluster, source, rank, up_bytes), message_s(cluster, rank, source, down_bytes)]
    again_s = sum(message_s(cluster, *way, payload_bytes(ids)) for way in ((source, rank), (rank, source)))
    device = cluster.devices[rank]
    ends_s = sum(op_s(device, model, one) for one in begin) + (1 + further) * op_s(device, model, end)
    return sum(ways_s) + further * again_s + ends_s + model.num_layers * times.layer_s(rank)


def _upload(ctx: Ctx, step: Step, prompt: Tensor, server: int, upload_bytes: int) -> None:
    """Send the additional bytes and the prompt in the prefill, one token in each decode step."""
    pixels, tokens = prompt if isinstance(prompt, ImagePrompt) else (None, prompt)
    if step.phase == "prefill" and upload_bytes:
        like = tokens if pixels is None else pixels
        ctx.send(zeros((step.batch, upload_bytes), like, "uint8"), server, tag(step, "upload"))
    if pixels is not None:
        ctx.send(pixels, server, tag(step, "pixels"))
    if tokens is not None:
        ctx.send(tokens, server, tag(step, "tokens"))


async def _prompt(ctx: Ctx, step: Step, source: int, upload_bytes: int) -> Tensor:
    """Receive what `_upload` sent, in the form that `embed` takes."""
    sees = step.phase == "prefill" and ctx.model.vision is not None
    if step.phase == "prefill" and upload_bytes:
        await ctx.recv(source, tag(step, "upload"))
    pixels = await ctx.recv(source, tag(step, "pixels")) if sees else None
    tokens = await ctx.recv(source, tag(step, "tokens")) if ctx.model.reads_text else None
    return ImagePrompt(pixels, tokens) if sees else tokens
