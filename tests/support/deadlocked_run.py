"""A real run whose programs wait for each other for ever, in a process of its own: the file gets the outcome
and the predicted one.
"""

import json
from pathlib import Path

from engine.domain.network import LoopbackNetwork
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
    predicted = predict(spec).outcome
    report = execute(spec, lambda spec, dilation: LoopbackNetwork(spec.cluster), lambda event: None)
    outcomes = [outcome.model_dump(mode="json") for outcome in (report.outcome, predicted)]
    Path(target).write_text(json.dumps(outcomes))
