"""Draft tokens, with a second model or a part of the run's own, and verify several of them in one pass: parts
of speculative decoding.

Leviathan et al., "Fast Inference from Transformers via Speculative Decoding" (ICML 2023), Algorithm 1. A run
accepts a drafted token if it is the one that the model itself chooses: the most likely one, or the one that
it draws with the run's random numbers. So every token is the model's own, drawn at random or not, where
section 2.3 of the paper only keeps the distribution.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import takewhile
from random import Random
from typing import Literal, NamedTuple

from pydantic import Field

from engine.domain.method_report import MethodReport
from engine.domain.model import draft_of
from engine.domain.sampling import is_filtered
from engine.domain.trace import Mark, Span
from engine.domain.values import Count, Fraction
from engine.ops.core import Block, Embed, Head
from engine.ops.draft import OfDraft
from engine.ops.kv_cache import DropRows
from engine.ops.layers import layers
from engine.ops.operation import Op
from engine.ops.tensors import Tensor, concat, narrow, reshape, shape_of
from engine.ops.tokens import Draw, Greedy
from engine.program.ctx import Ctx
from engine.program.strategy import Step
from engine.strategies.shared.ends import keep_logits

ACCEPTED = "accepted"
"""Decisions about drafts have names that start with this."""


class Verified(NamedTuple):
    """The first `accepted` drafted tokens are right. `tokens`, ids [accepted + 1], are these and the one
    after them.
    """

    accepted: int
    tokens: Tensor


class DraftReport(MethodReport):
    """What became of the drafts of a run whose drafts went through `verify`."""

    kind: Literal["speculative"] = "speculative"
    verifications: Count = Field(description="Passes over a draft.")
    drafted: Count = Field(description="Tokens of all drafts.")
    accepted: Count = Field(description="Those of them that were the model's own.")
    accepted_per_verification: float = Field(description="Accepted tokens of a draft, on average.")
    accepted_share: Fraction = Field(description="Accepted tokens over drafted ones.")
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


class Acceptance:
    """How many of the drafted tokens [1, k] are those that the model chooses, [k + 1], as a decision: (that
    number, k).

    They are of `request`, from its token `index` on. In the simulated world, a token is the draft's guess or
    not by a draw of its own with the probability `likely`, the same one in every run: Leviathan et al. assume
    as well that guesses are independent (section 3.1).
    """

    def __init__(self, likely: float, request: int, index: int):
        self.likely, self.request, self.index = likely, request, index

    def __call__(self, drafted: Tensor, chosen: Tensor) -> tuple[int, int]:
        pairs = zip(drafted[0].tolist(), chosen.tolist(), strict=False)
        return _leading(guess == token for guess, token in pairs), shape_of(drafted)[1]

    def prior(self, drafted: Tensor, chosen: Tensor) -> tuple[int, int]:
        """The same from the shapes of `drafted` [1, k] and `chosen` [k + 1]."""
        count = shape_of(drafted)[1]
        indices = range(self.index, self.index + count)
        return _leading(_drawn(self.request, index) < self.likely for index in indices), count


def _leading(hits: Iterable[bool]) -> int:
    """How many are true before the first that is not."""
    return sum(1 for _ in takewhile(bool, hits))


def _drawn(request: int, index: int) -> float:
    return Random(f"{request}/{index}").random()


def choice_of(steps: Sequence[Step]) -> Op:
    """The operation that chooses the token of each of `steps`, from their logits [k, V]."""
    draws = tuple(draw for step in steps for draw in step.draws)
    return Draw(draws, is_filtered(draws)) if draws else Greedy()


async def draft_rows(ctx: Ctx, start: int, cache: str, ids: Tensor) -> Tensor:
    """All layers of the draft model on the tokens `ids` [1, T] from position `start` on: [1, T, D]."""
    x = await ctx.compute(OfDraft(Embed(start)), ids)
    for layer in range(draft_of(ctx.model).num_layers):
        x = await ctx.compute(OfDraft(Block(layer, cache)), x)
    return x


async def draft_tokens(ctx: Ctx, steps: Sequence[Step], start: int, cache: str, ids: Tensor) -> Tensor:
    """Tokens [1, k] that the draft model guesses for `steps`, one after the other: those after the tokens
    `ids` [1, T], which it has not seen, from position `start` on. Its KV cache `cache`, `r0/draft` of the
    sequence with `r0`, then has all but the last guess.
    """
    seen = start

    async def see(ids: Tensor) -> Tensor:
        nonlocal seen
        x = await draft_rows(ctx, seen, cache, ids)
        seen += shape_of(ids)[1]
        return x

    return await guess_tokens(ctx, steps, ids, see, OfDraft)


async def guess_tokens(
    ctx: Ctx,
    steps: Sequence[Step],
    ids: Tensor,
    see: Callable[[Tensor], Awaitable[Tensor]],
    part: Callable[[Op], Op] | None = None,
) -> Tensor:
    """Tokens [1, k] that are guessed for `steps`, one after the other: those after the tokens `ids` [1, T].

    `see` gives the hidden rows [1, T, D] of the next tokens [1, T], of which the output matrix makes a guess:
    that of the run's model, or as `part` makes its operations, like `OfDraft`.
    """

    def of_part(op: Op) -> Op:
        return op if part is None else part(op)

    guesses = []
    for step in steps:
        x = await see(ids)
        rows = shape_of(x)[1]
        logits = await ctx.compute(of_part(Head()), narrow(x, 1, rows - 1, rows))
        ids = reshape(await ctx.compute(of_part(choice_of([step])), logits), (1, 1))
        guesses.append(ids)
    return concat(guesses, 1)


async def verify(ctx: Ctx, steps: Sequence[Step], ids: Tensor, name: str) -> Verified:
    """One pass of the whole model over `ids` [1, T + k], the last k of which are drafted for the first k of
    `steps`. `name` is unique in the run, as that of its decision is. Afterwards the KV caches have all rows:
    those of refused tokens are to be dropped.
    """
    first, rows = steps[0], shape_of(ids)[1]
    x = await ctx.compute(Embed(first.start), ids)
    x = await ctx.compute_layers(layers(0, ctx.model.num_layers, first.cache), x)
    return await verify_rows(ctx, steps, x, narrow(ids, 1, rows - len(steps) + 1, rows), name)


async def verify_rows(ctx: Ctx, steps: Sequence[Step], x: Tensor, drafted: Tensor, name: str) -> Verified:
    """`verify` the tokens `drafted` [1, k] for the first k of `steps` by the last layer's rows `x`
    [1, T + k, D] of the tokens up to the last of them. The output matrix is read once for the k + 1 rows that
    give tokens.
    """
    first, model, rows = steps[0], ctx.model, shape_of(x)[1]
    answers = reshape(narrow(x, 1, rows - len(steps), rows), (len(steps), 1, model.hidden_size))
    logits = await ctx.compute(Head(), answers)
    chosen = await ctx.compute(choice_of(steps), logits)
    accepted = 0
    if len(steps) > 1:
        decision = Acceptance(model.likely_acceptance, first.requests[0], first.index)
        accepted, _ = ctx.decide(f"{ACCEPTED}.{name}", decision, drafted, chosen)
    for row, step in enumerate(steps[: accepted + 1]):
        keep_logits(ctx, step, 0, narrow(logits, 0, row, row + 1))
    return Verified(accepted, narrow(chosen, 0, 0, accepted + 1))


async def drop_rows(
    ctx: Ctx, start: int, stop: int, cache: str, draft: bool = False, of: range | None = None
) -> None:
    """Remove the newest rows [start, stop) from the KV cache `cache` of the layers `of` the model, None: of
    all, or of the `draft` model.
    """
    if stop <= start:
        return
    model = draft_of(ctx.model) if draft else ctx.model
    for layer in range(model.num_layers) if of is None else of:
        op = DropRows(layer, start, stop, 1, cache)
        await ctx.compute(OfDraft(op) if draft else op)


def drafts_of(trace: Sequence[Span | Mark]) -> DraftReport | None:
    """What became of the drafts that `verify` checked, by a run's trace; None without any. `summarise` of a
    method that drafts may return it.
    """
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
    return DraftReport(
        verifications=len(answers),
        drafted=drafted,
        accepted=accepted,
        accepted_per_verification=accepted / len(answers),
        accepted_share=accepted / drafted,
        likely_acceptance=accepted / (accepted + refusals),
    )
