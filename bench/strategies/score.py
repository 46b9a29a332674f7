"""Measures how good a strategy's numbers are on text that no model was trained on, against the model's own.

Windows of held-out text: a prompt and its true continuation, which is fed back token by token, so that
prefill and decode both count. Only the continuation is scored, because strategies do not compute the prompt's
logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import exp
from typing import NamedTuple

import torch
from torch.nn.functional import kl_div, nll_loss

from engine.domain.spec import RunSpec
from engine.domain.workload import Request
from engine.models.inputs.text import encode
from engine.models.training.demo_corpus import held_out
from engine.ops.tensors import Tensor
from engine.program.serve import serve
from engine.program.strategy import Step
from engine.runs.predict import plan_of
from engine.strategies.registry import strategy
from engine.worlds.calculated import CalculatedWorld
from engine.worlds.common.device import Device
from engine.worlds.common.source import RealSource


class Window(NamedTuple):
    """Token ids of a prompt and of the text that really follows it."""

    prompt: tuple[int, ...]
    continuation: tuple[int, ...]


class Score(NamedTuple):
    """perplexity and accuracy (the true token is the likeliest) on the continuations; kl_mean: divergence
    of the model's own distribution from the strategy's, nats per token; top1_agreement: both have the same
    likeliest token.
    """

    perplexity: float
    accuracy: float
    kl_mean: float
    top1_agreement: float
    tokens: int


def held_out_windows(spec: RunSpec, count: int, prompt: int, continuation: int) -> tuple[Window, ...]:
    """The first `count` windows of the demo model's held-out paragraphs that are long enough."""
    size = prompt + continuation
    encoded = (encode(spec.model, spec.weights, text) for text in held_out())
    long_enough = (ids for ids in encoded if len(ids) >= size)
    return tuple(Window(tuple(ids[:prompt]), tuple(ids[prompt:size])) for ids in islice(long_enough, count))


def logits_of(spec: RunSpec, windows: Sequence[Window]) -> torch.Tensor:
    """What `spec`'s strategy gives at every token of the continuations: [windows, continuation, V]."""
    new_tokens = len(windows[0].continuation)
    workload = spec.workload.model_copy(
        update={
            "prompt": None,
            "prompt_tokens": len(windows[0].prompt),
            "new_tokens": new_tokens,
            "requests": len(windows),
            "pattern": "sporadic",
        }
    )
    spec = spec.model_copy(update={"workload": workload})
    requests = tuple(Request(index=i, tokens=window.prompt) for i, window in enumerate(windows))
    plan = plan_of(spec, requests)
    world = CalculatedWorld(spec, plan, lambda item: None)
    source = _Forced(world.devices[spec.cluster.source_rank], windows)
    chosen = strategy(spec.strategy)
    world.run(
        (rank, serve(device, chosen, plan, workload, requests, source if device is source.device else None))
        for rank, device in enumerate(world.devices)
    )
    return torch.stack([torch.stack(source.logits[i]) for i in range(len(windows))]).float()


def score(own: torch.Tensor, theirs: torch.Tensor, windows: Sequence[Window]) -> Score:
    """How well logits continue texts: `own` are the strategy's, `theirs` the model's, both [windows,
    continuation, V].
    """
    truth = torch.tensor([window.continuation for window in windows])
    ours, expected = own.log_softmax(dim=-1), theirs.log_softmax(dim=-1)
    loss = float(nll_loss(ours.flatten(0, 1), truth.flatten()))
    return Score(
        perplexity=exp(loss),
        accuracy=float((own.argmax(dim=-1) == truth).float().mean()),
        kl_mean=max(0.0, float(kl_div(ours, expected, log_target=True, reduction="none").sum(-1).mean())),
        top1_agreement=float((own.argmax(dim=-1) == theirs.argmax(dim=-1)).float().mean()),
        tokens=truth.numel(),
    )


class _Forced(RealSource):
    """Feeds back the true tokens, whatever was predicted."""

    def __init__(self, device: Device, windows: Sequence[Window]):
        super().__init__(device)
        self.windows = windows

    def next_tokens(self, step: Step, logits: Tensor) -> Tensor:
        super().next_tokens(step, logits)
        return torch.tensor([[self.windows[i].continuation[step.index]] for i in step.requests])
