"""A real run whose programs wait for each other for ever, in a process of its own: the file gets the outcome,
the predicted one, and the wall seconds from the last trace of a device to the end.
"""

import json
import sys
import time
from pathlib import Path

from engine.domain.events import StateChanged
from engine.domain.network import LoopbackNetwork
from engine.domain.trace import Span
from engine.models import catalogue
from engine.runs.execute import execute
from engine.runs.predict import predict
from engine.strategies.registry import strategy
from tests.support.small_cases import spec_of, star


async def waits_for_ever(self, ctx, plan, step, tokens):
    """Exchange one message, then wait for one that nobody sends."""
    other = 1 - ctx.rank
    if tokens is not None:
        await ctx.send(tokens, other, "hello")
    else:
        await ctx.recv(other, "hello")
    await ctx.recv(other, "never")


def main(target):
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    spec = spec_of("megatron", model, star((1e9, 1e9)), new_tokens=2)
    spec = spec.model_copy(update={"weights": weights, "dilation": 1.0})
    type(strategy("megatron")).forward = waits_for_ever
    seen_s = [time.monotonic()]

    def watch(event):
        if isinstance(event, Span) or (isinstance(event, StateChanged) and event.state == "running"):
            seen_s[0] = time.monotonic()
        elif isinstance(event, StateChanged) and event.state == "failed":
            seen_s.append(time.monotonic())

    predicted = predict(spec).outcome
    report = execute(spec, lambda spec, dilation: LoopbackNetwork(spec.cluster), watch)
    outcomes = [outcome.model_dump(mode="json") for outcome in (report.outcome, predicted)]
    Path(target).write_text(json.dumps([*outcomes, seen_s[-1] - seen_s[0]]))


if __name__ == "__main__":
    main(sys.argv[1])
