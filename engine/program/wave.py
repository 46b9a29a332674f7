"""One wave of requests: from the prompts to the last token of each, on every device in both worlds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.workload import Request, Workload
from engine.ops.tensors import Tensor, concat
from engine.program.ctx import Ctx, Handle
from engine.program.strategy import Step, Strategy

Batch = tuple[Request, ...]

CHECKED_TOKENS = 8
"""An open workload's wave ends at most so many tokens after the last of its requests was cancelled."""


def batches_of(requests: Sequence[Request], together: int | None) -> tuple[Batch, ...]:
    """`requests` in batches of `together`, all in one for None. Requests of different lengths, or that have
    got different numbers of tokens before a failure, share none.
    """
    if together is None:
        return (tuple(requests),)
    found = []
    for _, alike in groupby(requests, shape_of):
        same = tuple(alike)
        found += [same[start : start + together] for start in range(0, len(same), together)]
    return tuple(found)


def shape_of(request: Request) -> tuple[int, int, int | None]:
    """What the requests of one batch have in common."""
    return len(request.tokens), request.emitted, request.new_tokens


class SourceIO(Protocol):
    """What only the device `cluster.source` does: it has the prompts and receives the results."""

    def prompt(self, requests: Sequence[Request]) -> Tensor:
        """Token ids [B, T] of a batch; marks its requests as arrived and begun, once each."""

    def next_tokens(self, step: Step, logits: Tensor) -> Tensor:
        """Logits [B, V], or ids [B] chosen already, → token ids [B, 1]; marks them as emitted."""

    def begin(self, requests: Sequence[Request]) -> None:
        """Mark `requests` as arrived and begun, once each; their tokens are given by `tokens_of` then."""

    def tokens_of(self, step: Step) -> Tensor:
        """Token ids [1, T] of the rows of a step whose requests have begun, prompts and answers so far."""

    def hidden(self, step: Step, hidden: Tensor) -> None:
        """Take an encoder's result [B, T, D]."""

    def arrival_s(self, request: Request) -> float | None:
        """When `request` arrives; None while the answer that it follows is not complete."""

    def arrive(self, requests: Sequence[Request]) -> None:
        """Mark `requests` as arrived, once each."""

    def finish(self, request: int) -> None:
        """Mark `request` as answered."""

    def nothing(self) -> Tensor:
        """An empty tensor [0], for a message that is all in its note."""

    # of an open workload, whose requests people send while the run goes on

    def open(self) -> None:
        """Forget the queue, who waits for its change, and that it was closed: all that is told again."""

    def enqueue(self, requests: Sequence[Request], time_s: float) -> None:
        """Put `requests` in the queue; it is virtual time `time_s`, where that is known."""

    def expect_no_more(self) -> None:
        """Take note that all requests that were known before have arrived."""

    def waiting(self) -> Sequence[Request]:
        """The requests that have arrived and were neither begun nor ended, in the order in which they are
        served: people take turns.
        """

    def queue_change(self) -> Handle:
        """Done when another request has arrived, when no more will be taken, or at `tell_change`."""

    def tell_change(self) -> None:
        """Resume the programs that wait for a `queue_change`."""

    @property
    def closed(self) -> bool:
        """Whether no more requests will be taken."""

    def has_ended(self, request: int) -> bool:
        """Whether `request` needs no more tokens: answered by a stop token, or cancelled."""


async def answer(
    ctx: Ctx,
    strategy: Strategy,
    plan: Plan,
    wave: tuple[Batch, ...],
    new_tokens: int,
    source: SourceIO | None,
    kv_cache: bool = True,
    goes_on: Callable[[], Awaitable[bool]] | None = None,
) -> None:
    """Generate all tokens of a wave. All batches finish a token before any starts the next (GPipe's flush),
    unless the strategy is continuous. The index of its first request identifies a batch.

    Without `kv_cache` every token is a pass over all tokens so far, and nothing is kept.

    With `goes_on`, all devices ask after every `CHECKED_TOKENS` tokens whether the wave goes on, unless the
    strategy answers requests at once.
    """
    tokens: dict[tuple[int, int], Tensor] = {}
    last = max(new_tokens - 1, 0)

    def done(step: Step, result: Tensor) -> None:
        assert source is not None, "only the source gets results"
        if new_tokens:
            first, chosen = step.requests[0], source.next_tokens(step, result)
            if not kv_cache:
                chosen = concat((tokens.pop((first, step.index)), chosen), 1)
            tokens[first, step.index + 1] = chosen
        else:
            source.hidden(step, result)
        for request in step.requests if step.index == last else ():
            source.finish(request)

    if source is not None:
        for batch in wave:
            tokens[batch[0].index, batch[0].emitted] = source.prompt(batch)
    indices = range(min(batch[0].emitted for batch in wave), last + 1)
    checks = goes_on is not None and not strategy.answers_at_once(plan)
    size = CHECKED_TOKENS if checks else max(1, len(indices))
    for start in range(0, len(indices), size):
        block = indices[start : start + size]
        if start and goes_on is not None and not await goes_on():
            break
        for together in [block] if strategy.continuous(plan) else [[index] for index in block]:
            steps = [
                step_of(batch, index, new_tokens, kv_cache)
                for index in together
                for batch in wave
                if index >= batch[0].emitted
            ]
            await strategy.forward_all(ctx, plan, steps, _Inputs(steps, tokens), done)
    for batch in wave if new_tokens and kv_cache else ():
        ctx.release(cache_name(batch))


class _Inputs(Sequence[Tensor | None]):
    """The input tokens of each step, looked up on access, since later ones follow from earlier results: by
    the first request of a batch, and the number of the token that follows from them.
    """

    def __init__(self, steps: Sequence[Step], tokens: Mapping[tuple[int, int], Tensor]):
        self.steps = steps
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, number: Any) -> Any:
        step = self.steps[number]
        return self.tokens.get((step.requests[0], step.index))


def step_of(batch: Batch, index: int, new_tokens: int, kv_cache: bool = True) -> Step:
    """The forward pass that gives token `index` of a batch: the first over the whole prompt, then one row
    each; without a KV cache always over all tokens so far.
    """
    rows, fed_back = len(batch[0].tokens), index - batch[0].emitted
    samplings = tuple(request.sampling for request in batch)
    if new_tokens and not kv_cache:
        rows, fed_back = rows + fed_back, 0
    return Step(
        phase="decode" if fed_back else "prefill",
        cache=cache_name(batch) if new_tokens and kv_cache else "",
        batch=len(batch),
        start=rows + fed_back - 1 if fed_back else 0,
        rows=1 if fed_back else rows,
        index=index,
        requests=tuple(request.index for request in batch),
        samplings=samplings if any(samplings) else (),
        uncached=bool(new_tokens) and not kv_cache,
    )


def cache_name(batch: Batch) -> str:
    return cache_of_request(batch[0].index)


def cache_of_request(request: int) -> str:
    """The name of the KV cache of a batch by the index of its first request."""
    return f"r{request}"


def check_cache(strategy: Strategy, model: ModelSpec, workload: Workload) -> None:
    """Check that the run goes without KV caches where the workload has none; raises `SpecError`."""
    if workload.kv_cache:
        return
    reason = strategy.needs_cache
    if model.vision:
        reason = f"{model.name} sees a picture, and only its text is fed again."
    if reason:
        raise SpecError(
            f"workload.kv_cache is false, so every token is a pass over all tokens so far, and {reason} "
            "Keep the KV cache, or choose another method or model.",
            [("workload.kv_cache", reason)],
        )
