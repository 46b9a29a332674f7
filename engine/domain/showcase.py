"""A showcase: a run on which a method does what it was invented for, others beside it, and what to expect."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.domain.values import Name, Positive, Value

Measure = Literal["latency_s", "ttft_s", "tpot_s", "longest_pause_s"]
"""Fields of a `RunReport`, and the longest time between two tokens of one request."""


class Other(Value):
    """A run beside the showcase's own: another method on the same cluster, or the same on another cluster."""

    name: Name
    title: str
    spec: RunSpec


class Claim(Value):
    """`other`'s `measure` over the showcase's own lies in [at_least, at_most]; `published` is the paper's
    ratio or statement, "" if it has none.
    """

    sentence: str
    measure: Measure
    other: Name
    at_least: Positive
    at_most: Positive | None = None
    published: str = ""


class Showcase(Value):
    """`look_for` says in one sentence what a reader should watch; `emulated` is whether a run of it on
    emulated devices takes less than two minutes on two cores.
    """

    name: Name
    title: str
    look_for: str
    expected: str = Field(description="The comparison to expect, with its numbers, in one sentence.")
    spec: RunSpec
    others: tuple[Other, ...]
    claims: tuple[Claim, ...] = Field(min_length=1)
    emulated: bool = True

    @model_validator(mode="after")
    def _claims_name_others(self) -> Showcase:
        names = [other.name for other in self.others]
        for index, claim in enumerate(self.claims):
            if claim.other not in names:
                raise ValueError(
                    f"claims[{index}].other is {claim.other}: expected one of {', '.join(names)}"
                )
        return self

    def run_called(self, other: str) -> RunSpec:
        """The showcase's own run for "", else that of the other with this name. Raises `SpecError`."""
        if not other:
            return self.spec
        for each in self.others:
            if each.name == other:
                return each.spec
        known = ", ".join(each.name for each in self.others)
        raise SpecError(f"showcase {self.name} has no run {other} beside its own: it has {known}.")
