"""The workload of a run: prompts, numbers of tokens, and when requests arrive."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.domain.values import Count, Positive, Value


class Workload(Value):
    """`requests` prompts of equal length. Exactly one of `prompt` and `prompt_tokens` gives them, and none
    for a model that reads no text.

    A vision model gets `image` with every request, or a random image with each.

    sporadic: one request at a time, the next arrives when the last is answered.
    bursty: all arrive at time 0 (LIME, section V: as many as there are devices).
    Encoders take `new_tokens = 0` and return hidden states, classifiers the logits of their classes.
    """

    prompt: str | None = None
    prompt_tokens: int | None = Field(default=None, gt=0, description="Random prompt of this many tokens.")
    image: str | None = Field(default=None, description="PNG of the model's image size, in base64.")
    new_tokens: Count = 16
    requests: int = Field(default=1, gt=0)
    pattern: Literal["sporadic", "bursty"] = "sporadic"
    token_limit_s: Positive | None = Field(
        default=None,
        description="The run ends as out of time when a token takes longer, in virtual seconds (LIME: 40).",
    )


class Request(Value):
    """The token ids of one request. The last `emitted` of them were generated already: a request that goes on
    after a device failed starts with its prompt and all tokens generated so far.
    """

    index: Count
    tokens: tuple[int, ...]
    emitted: Count = 0
