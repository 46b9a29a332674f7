"""Splitwise (Patel et al., ISCA 2024): one machine computes prompts while another computes the tokens of
other requests.

A KV cache goes over layer by layer, while the next layer of the prompt is computed; the first token does not
wait for it. The scheduler `disaggregated` has a step of prompts and a step of tokens under way at once.
"""

from __future__ import annotations

from typing import Literal

from edgeloom.method import (
    ClusterSpec,
    ComputedSlice,
    Count,
    Ctx,
    HeldSlice,
    Layout,
    ModelSpec,
    Params,
    Placement,
    Plan,
    Step,
    Strategy,
    Tensor,
    Workload,
)
from edgeloom.method.demand import block_ops, check_memory, demand_of, end_ops
from edgeloom.method.operations import Block, PutRows, TakeRows
from edgeloom.method.planning import fastest
from edgeloom.method.running import (
    caches_of,
    end_holdings,
    end_work,
    layer_slices,
    pass_on_device,
    tag,
)


class SplitwiseLayout(Layout):
    kind: Literal["splitwise"] = "splitwise"
    prompt_device: Count
    token_device: Count


class Splitwise(Strategy[Params, SplitwiseLayout]):
    name = "splitwise"
    title = "Splitwise"
    paper = "Patel et al., Splitwise (ISCA 2024)"
    summary = "A machine for prompts and one for tokens work at once; KV caches go over layer by layer."
    rule = "Arithmetic chooses the machine of prompts, memory that of tokens; the link is not looked at."
    needs_cache = "it moves KV caches from one machine to the other."
    batches_bursts = False
    Params = Params
    Layout = SplitwiseLayout

    def plan(self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: Params) -> Plan:
        demand = demand_of(model, workload, self.batches_bursts)
        prompt = fastest(cluster, cluster.workers, model, demand._replace(new_tokens=0))
        others = [rank for rank in cluster.workers if rank != prompt and demand.generates] or [prompt]
        token = max(others, key=lambda rank: cluster.devices[rank].memory_byte_per_s)
        phases = {prompt: "prefill", token: "decode"} if prompt != token else {prompt: "both"}
        pieces = [piece for layer in range(model.num_layers) for piece in layer_slices(layer)]
        held = [HeldSlice(device=rank, slice=piece) for rank in phases for piece in pieces]
        computed = [
            ComputedSlice(device=rank, slice=piece, phase=phase)
            for rank, phase in phases.items()
            for piece in pieces
        ]
        placement = Placement(
            strategy=self.name,
            holdings=(*end_holdings(cluster, model), *held),
            work=(*end_work(cluster, model), *computed),
        )
        caches = dict.fromkeys(phases, model.num_layers * demand.kv_bytes(model, model.num_kv_heads))
        ops = {rank: list(block_ops(model, demand)) for rank in phases}
        ops.setdefault(cluster.source_rank, []).extend(end_ops(model, demand))
        check_memory(cluster, model, placement, caches, ops, "give it more memory, or take a smaller model")
        return placement.with_layout(SplitwiseLayout(prompt_device=prompt, token_device=token))

    def why_not_apart(self, plan: Plan[SplitwiseLayout]) -> str | None:
        if plan.layout.prompt_device != plan.layout.token_device:
            return None
        return "splitwise has one machine for prompts and tokens here."

    async def forward(
        self, ctx: Ctx, plan: Plan[SplitwiseLayout], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        prompt, token = plan.layout.prompt_device, plan.layout.token_device
        moves = step.phase == "prefill" and prompt != token and bool(step.cache)

        async def layers(x: Tensor) -> Tensor:
            for layer in range(ctx.model.num_layers):
                x = await ctx.compute(Block(layer, caches_of(step)), x)
                if moves:
                    new = TakeRows(layer, step.start, step.start + step.rows, step.batch, step.cache)
                    ctx.send(await ctx.compute(new), token, tag(step, "kv", layer))
            if moves:
                ctx.release(step.cache)
            return x

        taken = ctx.spawn(self.take_over(ctx, step, prompt)) if moves and ctx.rank == token else None
        rank = prompt if step.phase == "prefill" else token
        result = await pass_on_device(ctx, step, tokens, rank, layers)
        if taken is not None:
            await taken
        return result

    async def take_over(self, ctx: Ctx, step: Step, prompt: int) -> None:
        for layer in range(ctx.model.num_layers):
            rows = await ctx.recv(prompt, tag(step, "kv", layer))
            await ctx.compute(PutRows(layer, step.cache), rows)
