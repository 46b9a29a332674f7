"""The program of speculative decoding: rounds of a draft and its verification, the same whatever drafts.

`DraftModel`: a second model drafts, and tokens travel (SLED). `FirstLayers`: the model's own first layers do
(Elhoushi et al., "LayerSkip: Enabling Early Exit Inference and Self-Speculative Decoding", ACL 2024, section
4.3): their hidden rows travel, so that the other layers alone verify, and both parts use one KV cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from engine.domain.plan import Plan
from engine.ops.core import Embed
from engine.ops.layers import layers
from engine.ops.tensors import Tensor, concat, narrow, shape_of
from engine.program.ctx import Ctx
from engine.program.strategy import Done, Step
from engine.strategies.shared.ends import tag
from engine.strategies.shared.verify import (
    Verified,
    draft_rows,
    draft_tokens,
    drop_rows,
    guess_tokens,
    verify,
    verify_rows,
)
from engine.strategies.speculative.layout import SpeculativeLayout

UNSEEN = "tokens that the draft model has not seen"
MOST_UNSEEN = 2
"""The newest token, and the last one of a draft that was accepted as a whole. Of a request whose steps come
in several calls, a third: the last step of a call has no room for a draft.
"""


class Draft(NamedTuple):
    """What is `sent` to be verified; `ids` [1, T] are the tokens that what drafts had not seen before."""

    sent: tuple[Tensor, ...]
    ids: Tensor


class Rounds(ABC):
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
        source = self.layout.draft_device
        sent = [await self.ctx.recv(source, tag(steps[0], name)) for name in self.sends(steps)]
        verified = await self.verify(steps, sent, self._decision(steps))
        note = (verified.accepted,)
        self.ctx.send(verified.tokens, source, tag(steps[0], "verified"), note)
        await self._drop_refused(steps, verified.accepted)
        return verified.accepted + 1

    def _decision(self, steps: Sequence[Step]) -> str:
        return f"r{steps[0].requests[0]}.t{steps[0].index}.v{self.version}"

    async def _drop_refused(self, steps: Sequence[Step], accepted: int) -> None:
        if steps[0].phase == "decode":
            start = steps[0].start
            stop = start + len(steps)
            await drop_rows(self.ctx, start + accepted + 1, stop, self.cache, of=self.verifying())

    async def _ask(self, steps: Sequence[Step], newest: Tensor) -> int:
        """Draft, let the draft be verified, and give the tokens out; their number. `newest` [1, T] are the
        prompt, or the newest token.
        """
        draft = await self.draft(steps, newest)
        verified = await self._verified(steps, draft)
        for row, step in enumerate(steps[: verified.accepted + 1]):
            self.done(step, narrow(verified.tokens, 0, row, row + 1))
        await self.settle(steps, draft, verified.accepted)
        return verified.accepted + 1

    async def _verified(self, steps: Sequence[Step], draft: Draft) -> Verified:
        """What the model says of a draft."""
        ctx, other = self.ctx, self.layout.verify_device
        if other != ctx.rank:
            for name, tensor in zip(self.sends(steps), draft.sent, strict=True):
                ctx.send(tensor, other, tag(steps[0], name))
        await self.meanwhile(steps, draft)
        if other != ctx.rank:
            (accepted,), tokens = await ctx.recv_noted(other, tag(steps[0], "verified"))
            return Verified(accepted, tokens)
        verified = await self.verify(steps, draft.sent, self._decision(steps))
        await self._drop_refused(steps, verified.accepted)
        return verified

    @abstractmethod
    def sends(self, steps: Sequence[Step]) -> tuple[str, ...]:
        """The name of each tensor that is sent to be verified."""

    @abstractmethod
    def verifying(self) -> range:
        """The layers whose caches are the verifying device's."""

    @abstractmethod
    async def draft(self, steps: Sequence[Step], newest: Tensor) -> Draft:
        """Guess the tokens of all `steps` but the last, after the tokens `newest` [1, T]."""

    async def meanwhile(self, steps: Sequence[Step], draft: Draft) -> None:
        """What the source does while a draft is verified elsewhere."""
        return None

    @abstractmethod
    async def verify(self, steps: Sequence[Step], sent: Sequence[Tensor], decision: str) -> Verified:
        """Verify what was `sent`. The caches of `verifying` then have all its rows."""

    @abstractmethod
    async def settle(self, steps: Sequence[Step], draft: Draft, accepted: int) -> None:
        """Remove the refused tokens from the caches of what drafts."""


class DraftModel(Rounds):
    """Drafts of a second model."""

    @property
    def draft_cache(self) -> str:
        return f"{self.cache}/draft"

    def sends(self, steps: Sequence[Step]) -> tuple[str, ...]:
        return ("drafted",)

    def verifying(self) -> range:
        return range(self.ctx.model.num_layers)

    async def draft(self, steps: Sequence[Step], newest: Tensor) -> Draft:
        first, guesses = steps[0], len(steps) - 1
        unseen: dict[str, Tensor] = self.ctx.memory.setdefault(UNSEEN, {})
        before = unseen.pop(self.cache, None)
        if first.phase == "prefill" or before is None:
            before = narrow(newest, 1, 0, 0)
        ids, start = concat([before, newest], 1), first.start - shape_of(before)[1]
        if not guesses:
            return Draft((newest,), ids)
        drafted = await draft_tokens(self.ctx, steps[:-1], start, self.draft_cache, ids)
        return Draft((concat([newest, drafted], 1),), ids)

    async def meanwhile(self, steps: Sequence[Step], draft: Draft) -> None:
        """The draft model sees the prompt."""
        if steps[0].phase == "prefill":
            await draft_rows(self.ctx, 0, self.draft_cache, draft.sent[0])

    async def verify(self, steps: Sequence[Step], sent: Sequence[Tensor], decision: str) -> Verified:
        return await verify(self.ctx, steps, sent[0], decision)

    async def settle(self, steps: Sequence[Step], draft: Draft, accepted: int) -> None:
        first, guesses = steps[0], len(steps) - 1
        unseen = self.ctx.memory[UNSEEN]
        if first.phase == "decode" and not guesses:
            unseen[self.cache] = draft.ids
        elif guesses and accepted == guesses:
            unseen[self.cache] = narrow(draft.sent[0], 1, guesses, guesses + 1)
        elif guesses:
            seen, right = first.start + guesses, first.start + accepted + 1
            await drop_rows(self.ctx, right, seen, self.draft_cache, draft=True)


class FirstLayers(Rounds):
    """Drafts of the model's own first layers, whose rows are computed once."""

    def sends(self, steps: Sequence[Step]) -> tuple[str, ...]:
        return ("hidden", "drafted") if len(steps) > 1 else ("hidden",)

    def verifying(self) -> range:
        return range(self.layout.draft_layers, self.ctx.model.num_layers)

    async def draft(self, steps: Sequence[Step], newest: Tensor) -> Draft:
        found: list[Tensor] = []

        async def see(ids: Tensor) -> Tensor:
            start = steps[0].start + sum(shape_of(x)[1] for x in found)
            x = await self.ctx.compute(Embed(start), ids)
            x = await self.ctx.compute_layers(layers(0, self.layout.draft_layers, self.cache), x)
            found.append(x)
            return x

        if len(steps) == 1:
            return Draft((await see(newest),), newest)
        drafted = await guess_tokens(self.ctx, steps[:-1], newest, see)
        guesses = shape_of(drafted)[1]
        await see(narrow(drafted, 1, guesses - 1, guesses))
        return Draft((concat(found, 1), drafted), newest)

    async def verify(self, steps: Sequence[Step], sent: Sequence[Tensor], decision: str) -> Verified:
        verifying = self.verifying()
        x = await self.ctx.compute_layers(layers(verifying.start, verifying.stop, self.cache), sent[0])
        return await verify_rows(self.ctx, steps, x, sent[-1], decision)

    async def settle(self, steps: Sequence[Step], draft: Draft, accepted: int) -> None:
        if steps[0].phase == "decode":
            start = steps[0].start
            first = range(self.layout.draft_layers)
            await drop_rows(self.ctx, start + accepted + 1, start + len(steps), self.cache, of=first)
