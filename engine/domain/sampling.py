"""How a token is drawn at random from what a model says, in place of the most likely one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import Field

from engine.domain.values import Count, Positive, Value

MOST_TEMPERATURE = 10.0
SEEDS = 2**63
"""Seeds are whole numbers below this, so that a message's note can carry one."""
NUMBERS = 5
"""Of a `Sampling` in a note."""


class Sampling(Value):
    """A token has the probability softmax(logits / temperature), among those that may be drawn: the `top_k`
    most likely ones (0: all), and of these the fewest that have `top_p` of the probability together.

    The same `seed` draws the same tokens; requests of one seed have different streams.
    """

    temperature: Positive = Field(le=MOST_TEMPERATURE)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=0, lt=SEEDS)
    seed: int = Field(ge=0, lt=SEEDS)
    stream: Count = 0

    @property
    def filters(self) -> bool:
        """Whether only some of the tokens may be drawn."""
        return self.top_k > 0 or self.top_p < 1

    def as_numbers(self) -> tuple[int, ...]:
        """The same in integers of 64 bits, for a message's note."""
        packed = struct.pack("<ddqqq", self.temperature, self.top_p, self.top_k, self.seed, self.stream)
        return struct.unpack("<qqqqq", packed)

    @classmethod
    def of_numbers(cls, numbers: Sequence[int]) -> Sampling:
        temperature, top_p, top_k, seed, stream = struct.unpack("<ddqqq", struct.pack("<qqqqq", *numbers))
        return cls(temperature=temperature, top_p=top_p, top_k=top_k, seed=seed, stream=stream)


class TokenDraw(NamedTuple):
    """How one token is chosen: the token `number` of an answer; the most likely one without
    `sampling`.
    """

    sampling: Sampling | None
    number: int


def is_filtered(draws: Sequence[TokenDraw]) -> bool:
    """Whether some of `draws` take only some of the tokens, so that they are sorted."""
    return any(one.sampling is not None and one.sampling.filters for one in draws)


def candidates_of_part(draws: Sequence[TokenDraw]) -> int:
    """How many tokens of each part of the vocabulary decide all `draws`; 0: any of them may."""
    wanted = [_candidates(one.sampling) for one in draws]
    return max(wanted) if all(wanted) else 0


def _candidates(sampling: Sampling | None) -> int:
    if sampling is None or not sampling.filters:
        return 1  # the most likely one, or the one with the largest score
    return sampling.top_k  # without it, what other parts have decides how many have `top_p` together
