"""Speculative decoding over a link: a small model on the source drafts tokens, a stronger device verifies.

Li et al., "SLED: A Speculative LLM Decoding Framework for Efficient Edge Serving" (SEC 2025), section III: an
edge device drafts with a small model, a server verifies all drafts in one pass of the large one; only tokens
travel. Leviathan et al., "Fast Inference from Transformers via Speculative Decoding" (ICML 2023),
Algorithm 1: the server accepts drafted tokens up to the first that is not its own, and gives the next one
itself, so that tokens are those of the large model alone. SLED's early verification of uncertain drafts and
its batches of several boards are not part of this method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.method_report import MethodReport, PlanAt
from engine.domain.model import ModelSpec, draft_of, layer_kinds
from engine.domain.plan import ComputedSlice, HeldSlice, Layout, Placement, Plan, Slice, of_draft
from engine.domain.trace import Mark, Span
from engine.domain.values import Count, Fraction
from engine.domain.workload import Workload
from engine.ops.core import Block, Embed, Head
from engine.ops.draft import OfDraft
from engine.ops.tensors import Meta, Tensor, concat, narrow, shape_of
from engine.ops.tokens import Greedy
from engine.program.ctx import Ctx
from engine.program.strategy import Done, Overlapping, Params, Step
from engine.strategies.shared.demand import Demand, SizedOp, check_memory, demand_of, hidden
from engine.strategies.shared.ends import end_slices, layer_slices, tag
from engine.strategies.shared.shares import named_worker, op_s
from engine.strategies.shared.verify import Verified, draft_rows, draft_tokens, drop_rows, verify

REMEDY = "give it more memory, choose a smaller draft model, or a method that splits the weights (gpipe)"
ACCEPTED = "accepted"
"""Decisions about drafts have names that start with this."""
UNSEEN = "tokens that the draft model has not seen"
MOST_UNSEEN = 2
"""The newest token, and the last one of a draft that was accepted as a whole. Of a request whose steps come
in several calls, a third: the last step of a call has no room for a draft.
"""


class SpeculativeParams(Params):
    draft_length: int = Field(
        default=4,
        ge=1,
        le=64,
        description="Tokens that are drafted for each verification, fewer where fewer are left.",
    )
    verify_device: str = Field(
        default="",
        description="Worker that verifies; empty: the fastest of those with room.",
    )


class SpeculativeLayout(Layout):
    """The ranks that draft and verify; drafts have at most `draft_length` tokens."""

    kind: Literal["speculative"] = "speculative"
    draft_device: Count
    verify_device: Count
    draft_length: Count


class SpeculativeReport(MethodReport):
    """What became of the drafts of a run."""

    kind: Literal["speculative"] = "speculative"
    verifications: Count = Field(description="Passes over a draft.")
    drafted: Count = Field(description="Tokens of all drafts.")
    accepted: Count = Field(description="Those of them that were the model's own.")
    accepted_per_verification: float
    accepted_share: Fraction
    likely_acceptance: Fraction = Field(
        description="The share of tokens that the draft model guesses: of those that were compared, up to "
        "the first wrong one of each draft."
    )

    def lines(self) -> tuple[str, ...]:
        return (
            f"Of {self.drafted} drafted tokens {self.accepted} were accepted ({self.accepted_share:.0%}), "
            f"{self.accepted_per_verification:.2f} per verification; the draft guesses "
            f"{self.likely_acceptance:.0%} of the tokens (--likely-acceptance {self.likely_acceptance:.2f}).",
        )


class Speculative(Overlapping[SpeculativeParams, SpeculativeLayout]):
    name = "speculative"
    title = "Speculative decoding"
    paper = "Leviathan et al., ICML 2023; Li et al., SLED, SEC 2025"
    summary = "The source drafts tokens with a small model; another device verifies several in one pass."
    rule = (
        "The fastest worker with room verifies, whatever its link: a better device can be slower to reach, "
        "and a faster draft model may guess less."
    )
    drafts = True
    needs_cache = "it verifies drafts on the KV cache of what is accepted."
    batches_bursts = False
    Params = SpeculativeParams
    Layout = SpeculativeLayout
    Report = SpeculativeReport

    def supports(self, cluster: ClusterSpec, model: ModelSpec) -> str | None:
        if cluster.source_rank not in cluster.workers:
            return f"the draft model runs on the source, and {cluster.source} computes no layers."
        return super().supports(cluster, model)

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: SpeculativeParams
    ) -> Plan[SpeculativeLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        if not demand.generates:
            raise PlanError("speculative: workload.new_tokens is 0, and it drafts new tokens: ask for some.")
        draft = draft_of(model)
        if draft.max_positions < demand.longest.cached_rows:
            raise PlanError(
                f"speculative: the draft model {draft.name} has {draft.max_positions} positions, and prompt "
                f"and answer need {demand.longest.cached_rows}: shorten them, or choose another draft model."
            )
        named = named_worker(cluster, params.verify_device, f"parameters of {self.name}, verify_device")
        passed = SizedOp(
            Block(0, "plan"), (hidden(model, 1, params.draft_length + 1),), demand.longest.cached_rows
        )

        def order(rank: int) -> tuple[float, bool, int]:
            return op_s(cluster.devices[rank], model, passed), rank != cluster.source_rank, rank

        unseen = MOST_UNSEEN + workload.is_open
        refusals = []
        for rank in sorted(cluster.workers, key=order) if named is None else [named]:
            try:
                placement = _placed(self.name, cluster, model, demand, rank, params.draft_length, unseen)
            except PlanError as error:
                refusals.append(error)
                continue
            return placement.with_layout(
                SpeculativeLayout(
                    draft_device=cluster.source_rank,
                    verify_device=rank,
                    draft_length=params.draft_length,
                )
            )
        raise refusals[0]

    def continuous(self, plan: Plan[SpeculativeLayout]) -> bool:
        return True

    def why_not_ragged(self, plan: Plan[SpeculativeLayout]) -> str | None:
        return "speculative verifies several rows of one sequence at a time."

    def summarise(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        plans: Sequence[PlanAt],
        trace: Sequence[Span | Mark],
    ) -> SpeculativeReport | None:
        return report_of(trace)

    async def forward_all(
        self,
        ctx: Ctx,
        plan: Plan[SpeculativeLayout],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ) -> None:
        if ctx.rank not in (plan.layout.draft_device, plan.layout.verify_device):
            return
        numbers: dict[str, list[int]] = {}
        for number, step in enumerate(steps):
            numbers.setdefault(step.cache, []).append(number)
        unseen = ctx.memory.get(UNSEEN)
        if unseen and all(steps[of_one[0]].phase == "prefill" for of_one in numbers.values()):
            unseen.clear()  # of requests that have ended
        answers = [_Answer(ctx, plan, steps, tokens, done, of_one).run() for of_one in numbers.values()]
        begun = [ctx.spawn(answer) for answer in answers[1:]]
        await answers[0]
        for handle in begun:
            await handle


class _Answer:
    """The steps of one request on this device."""

    def __init__(
        self,
        ctx: Ctx,
        plan: Plan[SpeculativeLayout],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
        numbers: Sequence[int],
    ):
        self.ctx, self.layout, self.version, self.done = ctx, plan.layout, plan.version, done
        self.steps, self.tokens, self.numbers = [steps[number] for number in numbers], tokens, numbers
        self.cache = self.steps[0].cache
        self.draft_cache = f"{self.cache}/draft"

    async def run(self) -> None:
        """All steps: each round is a pass over the prompt, or over the newest token and its draft."""
        at = 0
        while at < len(self.steps):
            most = 1 if self.steps[at].phase == "prefill" else self.layout.draft_length + 1
            steps = self.steps[at : at + most]
            self.ctx.at(steps[0].requests[0], steps[0].index)
            if self.ctx.rank == self.layout.draft_device:
                newest = self.tokens[self.numbers[at]]
                assert newest is not None, "the source has the tokens"
                at += await self._ask(steps, newest)
            else:
                at += await self._answer(steps)

    async def _answer(self, steps: Sequence[Step]) -> int:
        """Verify what the source sends; the number of tokens that it gets."""
        ids = await self.ctx.recv(self.layout.draft_device, tag(steps[0], "drafted"))
        verified = await self._verify(steps, ids)
        note = (verified.accepted,)
        self.ctx.send(verified.tokens, self.layout.draft_device, tag(steps[0], "verified"), note)
        await self._drop_refused(steps, verified.accepted)
        return verified.accepted + 1

    async def _verify(self, steps: Sequence[Step], ids: Tensor) -> Verified:
        name = f"{ACCEPTED}.r{steps[0].requests[0]}.t{steps[0].index}.v{self.version}"
        return await verify(self.ctx, steps, ids, name)

    async def _drop_refused(self, steps: Sequence[Step], accepted: int) -> None:
        if steps[0].phase == "decode":
            start = steps[0].start
            await drop_rows(self.ctx, start + accepted + 1, start + len(steps), self.cache)

    async def _ask(self, steps: Sequence[Step], newest: Tensor) -> int:
        """Draft, let the draft be verified, and give the tokens out; their number. `newest` [1, T] are the
        prompt, or the newest token.
        """
        ctx, first, guesses = self.ctx, steps[0], len(steps) - 1
        unseen: dict[str, Tensor] = ctx.memory.setdefault(UNSEEN, {})
        before = unseen.pop(self.cache, None)
        if first.phase == "prefill" or before is None:
            before = narrow(newest, 1, 0, 0)
        ids, start = concat([before, newest], 1), first.start - shape_of(before)[1]
        sent, drafted = newest, before
        if guesses:
            drafted = await draft_tokens(ctx, steps[:-1], start, self.draft_cache, ids)
            sent = concat([newest, drafted], 1)
        verified = await self._verified(steps, sent)
        for row, step in enumerate(steps[: verified.accepted + 1]):
            self.done(step, narrow(verified.tokens, 0, row, row + 1))
        if first.phase == "decode" and not guesses:
            unseen[self.cache] = ids
        elif guesses and verified.accepted == guesses:
            unseen[self.cache] = narrow(drafted, 1, guesses - 1, guesses)
        elif guesses:
            seen, right = first.start + guesses, first.start + verified.accepted + 1
            await drop_rows(ctx, right, seen, self.draft_cache, draft=True)
        return verified.accepted + 1

    async def _verified(self, steps: Sequence[Step], ids: Tensor) -> Verified:
        """What the model says of `ids`. Meanwhile the draft model sees the prompt."""
        ctx, other = self.ctx, self.layout.verify_device
        if other != ctx.rank:
            ctx.send(ids, other, tag(steps[0], "drafted"))
        if steps[0].phase == "prefill":
            await draft_rows(ctx, 0, self.draft_cache, ids)
        if other != ctx.rank:
            (accepted,), tokens = await ctx.recv_noted(other, tag(steps[0], "verified"))
            return Verified(accepted, tokens)
        verified = await self._verify(steps, ids)
        await self._drop_refused(steps, verified.accepted)
        return verified


def report_of(trace: Sequence[Span | Mark]) -> SpeculativeReport | None:
    """What became of the drafts in a trace; None without any."""
    answers = [
        item.facts["answer"]
        for item in trace
        if isinstance(item, Mark)
        and item.name == "decided"
        and str(item.facts["decision"]).startswith(f"{ACCEPTED}.")
    ]
    if not answers:
        return None
    accepted, drafted = (sum(one[field] for one in answers) for field in (0, 1))
    refusals = sum(right < of for right, of in answers)
    return SpeculativeReport(
        verifications=len(answers),
        drafted=drafted,
        accepted=accepted,
        accepted_per_verification=accepted / len(answers),
        accepted_share=accepted / drafted,
        likely_acceptance=accepted / (accepted + refusals),
    )


def _placed(
    name: str, cluster: ClusterSpec, model: ModelSpec, demand: Demand, rank: int, length: int, unseen: int
) -> Placement:
    """The draft model on the source, which gets up to `unseen` tokens at once, the whole model on device
    `rank`. Raises `PlanError` if memory is short.
    """
    draft, source = draft_of(model), cluster.source_rank
    pieces = _whole(model)
    placement = Placement(
        strategy=name,
        holdings=(
            *(HeldSlice(device=rank, slice=piece) for piece in pieces),
            *(HeldSlice(device=source, slice=of_draft(piece)) for piece in _whole(draft)),
        ),
        work=tuple(ComputedSlice(device=rank, slice=piece) for piece in pieces),
    )
    of_draft_ops = [
        one._replace(op=OfDraft(one.op))
        for one in (*_pass_ops(draft, demand, unseen), *_choice_ops(draft, 1))
    ]
    ops = [*_pass_ops(model, demand, length + 1), *_choice_ops(model, length + 1)]
    kv_bytes = {each: 0 for each in (rank, source)}
    kv_bytes[rank] += model.num_layers * demand.kv_bytes(model, model.num_kv_heads)
    kv_bytes[source] += draft.num_layers * demand.kv_bytes(draft, draft.num_kv_heads)
    by_rank = {rank: ops, source: of_draft_ops} if rank != source else {rank: [*ops, *of_draft_ops]}
    check_memory(cluster, model, placement, kv_bytes, by_rank, REMEDY)
    return placement


def _whole(model: ModelSpec) -> list[Slice]:
    layers = [piece for layer in range(model.num_layers) for piece in layer_slices(layer)]
    return [*end_slices(model), *layers]


def _pass_ops(model: ModelSpec, demand: Demand, rows: int) -> list[SizedOp]:
    """The operations of the largest passes: over the prompt, and over `rows` tokens at the end."""
    passes = [(0, demand.rows), (max(0, demand.cached_rows - rows), rows)]
    found = []
    for cached, new in passes:
        found.append(SizedOp(Embed(cached), (Meta((1, new), "int64"),)))
        found += [
            SizedOp(Block(kind.layer, "plan"), (hidden(model, 1, new),), cached)
            for kind in layer_kinds(model)
        ]
    return found


def _choice_ops(model: ModelSpec, rows: int) -> list[SizedOp]:
    """The operations that give `rows` tokens."""
    answers = Meta((rows, 1, model.hidden_size), model.dtype)
    logits = Meta((rows, model.vocab_size), model.dtype)
    return [SizedOp(Head(), (answers,)), SizedOp(Greedy(), (logits,))]
