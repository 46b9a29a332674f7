"""What is asked of the cluster: prompts, how many tokens, when requests arrive."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.values import Count, Value


class Workload(Value):
    """`requests` prompts of equal length. Exactly one of `prompt` and `prompt_tokens` gives them.

    sporadic: one request at a time, the next arrives when the last is answered.
    bursty: all arrive at time 0 (LIME, section V: as many as there are devices).
    Encoders take `new_tokens = 0` and return hidden states.
    """

    prompt: str | None = None
    prompt_tokens: int | None = Field(default=None, gt=0, description="Random prompt of this many tokens.")
    new_tokens: Count = 16
    requests: int = Field(default=1, gt=0)
    pattern: Literal["sporadic", "bursty"] = "sporadic"


class Request(Value):
    """A workload made concrete: token ids of one request."""

    index: Count
    tokens: tuple[int, ...]
