"""Prompts from a JSONL file: one object a line, `prompt` the text, and if known `new_tokens` and `at_s`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from engine.domain.arrivals import arrivals_s
from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import WeightsRef
from engine.domain.values import NonNegative, Value
from engine.domain.workload import TracedRequest, Workload
from engine.models.inputs.text import encode_prompts
from engine.recorded.files import parse_name, parse_options, text_of

MAX_PROMPTS = 10_000


class Prompt(Value):
    """A text, how many tokens it gets at most, and when it arrives, in virtual seconds."""

    prompt: str = Field(min_length=1)
    new_tokens: int | None = Field(default=None, gt=0)
    at_s: NonNegative | None = None


class PromptOptions(Value):
    """requests: how many prompts are taken, the first of them."""

    requests: int | None = Field(default=None, gt=0)


def read_prompts(name: str) -> tuple[Prompt, ...]:
    """The prompts in `FILE,requests=N`. Raises `SpecError` with the file and the line."""
    path, _, options = parse_name(name)
    return parse_prompts(text_of(path, "the prompts"), str(path), options)


def parse_prompts(text: str, where: str, options: str = "") -> tuple[Prompt, ...]:
    """The prompts of all lines but empty ones, or the first of them. Raises `SpecError`."""
    asked = parse_options(PromptOptions, options, where)
    found: list[Prompt] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if len(found) == asked.requests:
            break
        place = f"{where}, line {number}"
        found.append(Prompt.parse(_object(line, place), place))
        if len(found) > MAX_PROMPTS:
            raise SpecError(f"{where}: has more than {MAX_PROMPTS:,} prompts: add requests=1000.")
    if not found:
        raise SpecError(f'{where}: has no prompt: expected lines such as {{"prompt": "Hello"}}.')
    return _in_order(found, where)


def listed_prompts(given: Any) -> tuple[Prompt, ...]:
    """The prompts that an experiment lists itself. Raises `SpecError`."""
    if not isinstance(given, list | tuple) or not 0 < len(given) <= MAX_PROMPTS:
        raise SpecError(f"workload.prompts: expected a file, or a list of 1 to {MAX_PROMPTS:,} prompts.")
    where = "workload.prompts"
    return _in_order([Prompt.parse(one, f"{where}[{index}]") for index, one in enumerate(given)], where)


def _in_order(found: Sequence[Prompt], where: str) -> tuple[Prompt, ...]:
    timed = [prompt for prompt in found if prompt.at_s is not None]
    if timed and len(timed) < len(found):
        raise SpecError(
            f"{where}: {len(timed)} of {len(found)} prompts have at_s: give it to all, or to none."
        )
    return tuple(sorted(found, key=lambda prompt: prompt.at_s or 0.0))


def traced(
    prompts: Sequence[Prompt],
    model: ModelSpec,
    weights: WeightsRef,
    new_tokens: int,
    rate_per_s: float | None = None,
    seed: int = 0,
) -> tuple[TracedRequest, ...]:
    """The prompts as requests of a trace, with the ids that the model's tokenizer gives.

    They arrive when they say, or at random, `rate_per_s` a second as with poisson, or all at time 0. Those
    that do not say it get `new_tokens`. Raises `SpecError`.
    """
    if model.vision or not (model.causal and model.has_head):
        raise SpecError(f"prompts: {model.name} does not continue a text alone: choose a model that does.")
    if rate_per_s is not None and prompts[0].at_s is not None:
        raise SpecError("prompts: they say when they arrive: leave out the rate.")
    times: Sequence[float | None] = [prompt.at_s or 0.0 for prompt in prompts]
    if rate_per_s is not None:
        drawn = Workload(
            pattern="poisson", rate_per_s=rate_per_s, requests=len(prompts), prompt_tokens=1, new_tokens=1
        )
        times = arrivals_s(drawn, seed)
    ids = encode_prompts(model, weights, [prompt.prompt for prompt in prompts])
    return tuple(
        TracedRequest(
            at_s=at_s or 0.0,
            prompt_tokens=len(tokens),
            new_tokens=prompt.new_tokens or new_tokens,
            tokens=tokens,
        )
        for prompt, at_s, tokens in zip(prompts, times, ids, strict=True)
    )


def _object(line: str, where: str) -> dict[str, object]:
    try:
        data = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise SpecError(f"{where}: is no JSON: {error}.") from error
    if not isinstance(data, dict):
        raise SpecError(f'{where}: expected an object such as {{"prompt": "Hello"}}.')
    return data
