"""A workload made concrete: the token ids of every request."""

from __future__ import annotations

from random import Random

from engine.errors import SpecError
from engine.models.text import encode
from engine.spec import RunSpec
from engine.workload import Request


def requests_of(spec: RunSpec) -> tuple[Request, ...]:
    """The requests of a run, all of one length. Raises `SpecError` for a workload that the model cannot do.

    A text is every request's prompt; `prompt_tokens` gives each request its own ids, from the seed.
    """
    model, workload = spec.model, spec.workload
    if (workload.prompt is None) == (workload.prompt_tokens is None):
        raise SpecError("workload: give exactly one of prompt and prompt_tokens.", [("workload", "prompt")])
    if workload.new_tokens and not (model.causal and model.has_head):
        raise SpecError(
            f"workload.new_tokens: is {workload.new_tokens}, and {model.name} generates nothing: give 0.",
            [("workload.new_tokens", "expected 0 for an encoder")],
        )
    if workload.prompt is not None:
        prompts = [encode(model, spec.weights, workload.prompt)] * workload.requests
    else:
        prompts = [_random_ids(spec, index) for index in range(workload.requests)]
    need = len(prompts[0]) + workload.new_tokens
    if need > model.max_positions:
        raise SpecError(
            f"workload: {len(prompts[0])} prompt tokens and {workload.new_tokens} new ones are {need} "
            f"positions, and {model.name} has {model.max_positions}: ask for fewer.",
            [("workload", f"at most {model.max_positions} positions")],
        )
    return tuple(Request(index=index, tokens=prompt) for index, prompt in enumerate(prompts))


def _random_ids(spec: RunSpec, request: int) -> tuple[int, ...]:
    random = Random(f"{spec.seed}/{request}")
    return tuple(random.randrange(spec.model.vocab_size) for _ in range(spec.workload.prompt_tokens or 0))
