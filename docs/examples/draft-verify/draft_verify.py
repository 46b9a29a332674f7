"""Draft and verify (Leviathan et al., ICML 2023): the draft on a board, the model on a server (SLED, 2025).

The source drafts tokens with a small model. The server computes all of them in one pass, keeps those that it
would have chosen, and adds the next one. Only tokens travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from edgeloom.method import (
    ClusterSpec,
    ComputedSlice,
    Count,
    Ctx,
    Done,
    HeldSlice,
    Layout,
    Mark,
    ModelSpec,
    Overlapping,
    Params,
    Placement,
    Plan,
    PlanAt,
    Slice,
    Span,
    Step,
    Tensor,
    Workload,
    concat,
    draft_of,
    narrow,
    of_draft,
)
from edgeloom.method.demand import block_ops, check_memory, demand_of, end_ops
from edgeloom.method.operations import OfDraft
from edgeloom.method.planning import fastest
from edgeloom.method.running import (
    DraftReport,
    draft_tokens,
    drafts_of,
    drop_rows,
    end_slices,
    layer_slices,
    tag,
    verify,
)


class DraftVerifyLayout(Layout):
    kind: Literal["draft_verify"] = "draft_verify"
    verify_device: Count
    draft_length: Count


class DraftVerifyParams(Params):
    draft_length: int = Field(default=4, ge=1, le=64, description="Tokens drafted for each verification.")


class DraftVerify(Overlapping[DraftVerifyParams, DraftVerifyLayout]):
    name = "draft_verify"
    title = "Draft and verify"
    paper = "Leviathan et al., ICML 2023; Li et al., SLED, 2025"
    summary = "The source drafts tokens with a small model, the fastest other device verifies them in a pass."
    rule = "The fastest device verifies, whatever its link."
    needs_cache = "it verifies on the KV cache of the tokens before."
    drafts = True
    batches_bursts = False
    Params = DraftVerifyParams
    Layout = DraftVerifyLayout
    Report = DraftReport

    def supports(self, cluster: ClusterSpec, model: ModelSpec) -> str | None:
        if not model.causal:
            return f"draft_verify drafts tokens, and {model.name} chooses none."
        if cluster.source_rank not in cluster.workers:
            return f"the source drafts, and {cluster.source} computes nothing."
        return None

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: DraftVerifyParams
    ) -> Plan:
        source, draft, length = cluster.source_rank, draft_of(model), params.draft_length
        demand = demand_of(model, workload, self.batches_bursts)
        others = [rank for rank in cluster.workers if rank != source] or [source]
        server = fastest(cluster, others, model, demand)
        placement = Placement(
            strategy=self.name,
            holdings=(
                *(HeldSlice(device=source, slice=of_draft(piece)) for piece in whole(draft)),
                *(HeldSlice(device=server, slice=piece) for piece in whole(model)),
            ),
            work=tuple(ComputedSlice(device=server, slice=piece) for piece in whole(model)),
        )
        first = demand._replace(rows=demand.rows + length)  # the prompt and its draft go in one pass
        answers = demand._replace(batch=length + 1, rows=1)  # the head has as many rows as there are tokens
        ops = {server: [*block_ops(model, first), *end_ops(model, first), *end_ops(model, answers)]}
        drafting = (*block_ops(draft, demand), *end_ops(draft, demand))
        ops.setdefault(source, []).extend(one._replace(op=OfDraft(one.op)) for one in drafting)
        caches = {server: model.num_layers * first.kv_bytes(model, model.num_kv_heads)}
        drafted = draft.num_layers * demand.kv_bytes(draft, draft.num_kv_heads)
        caches[source] = caches.get(source, 0) + drafted
        check_memory(cluster, model, placement, caches, ops, "give it more memory, or take a smaller model")
        return placement.with_layout(DraftVerifyLayout(verify_device=server, draft_length=length))

    def continuous(self, plan: Plan[DraftVerifyLayout]) -> bool:
        return True

    def answers_at_once(self, plan: Plan[DraftVerifyLayout]) -> bool:
        return True

    def summarise(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        plans: Sequence[PlanAt],
        trace: Sequence[Span | Mark],
    ) -> DraftReport | None:
        return drafts_of(trace)

    async def forward_all(
        self,
        ctx: Ctx,
        plan: Plan[DraftVerifyLayout],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ) -> None:
        """All requests side by side: the source drafts for one while another is verified."""
        numbers: dict[str, list[int]] = {}
        for number, step in enumerate(steps):
            numbers.setdefault(step.cache, []).append(number)
        for answer in [ctx.spawn(self.answer(ctx, plan, steps, tokens, done, of)) for of in numbers.values()]:
            await answer

    async def answer(
        self,
        ctx: Ctx,
        plan: Plan[DraftVerifyLayout],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
        numbers: Sequence[int],
    ) -> None:
        """The steps `numbers` of one request, in rounds. The draft model has `seen` so many tokens."""
        source, server = ctx.cluster.source_rank, plan.layout.verify_device
        at = seen = 0
        while at < len(numbers) and ctx.rank in (source, server):
            these = [steps[number] for number in numbers[at : at + plan.layout.draft_length + 1]]
            step, length = these[0], len(these) - 1
            cache, end = step.cache, step.start + step.rows
            ctx.at(step.requests[0], step.index)
            if ctx.rank == source:
                ids = tokens[numbers[at]]
                if length:
                    unseen = [tokens[n] for n in numbers[: at + 1] if steps[n].start >= seen]
                    guesses = await draft_tokens(ctx, these[:-1], seen, f"{cache}/draft", concat(unseen, 1))
                    ids, seen = concat([ids, guesses], 1), end + length - 1
                if server != source:
                    ctx.send(ids, server, tag(step, "drafted"))
            if ctx.rank == server:
                if server != source:
                    ids = await ctx.recv(source, tag(step, "drafted"))
                accepted, chosen = await verify(ctx, these, ids, f"{tag(step, 'draft')}.v{plan.version}")
                if server != source:
                    ctx.send(chosen, source, tag(step, "verified"), (accepted,))
                await drop_rows(ctx, end + accepted, end + length, cache)
            else:
                (accepted,), chosen = await ctx.recv_noted(server, tag(step, "verified"))
            if ctx.rank == source:
                await drop_rows(ctx, end + accepted, seen, f"{cache}/draft", draft=True)
                seen = min(seen, end + accepted)
                for row in range(accepted + 1):
                    done(these[row], narrow(chosen, 0, row, row + 1))
            at += accepted + 1


def whole(model: ModelSpec) -> list[Slice]:
    """Every slice of `model`."""
    layers = [piece for layer in range(model.num_layers) for piece in layer_slices(layer)]
    return [*end_slices(model), *layers]
