"""A showcase: a run that shows what distributing is good for, others beside it, and what to expect."""

from __future__ import annotations

from collections.abc import Iterator
from string import Formatter
from typing import Literal, NamedTuple, get_args

from pydantic import Field, model_validator

from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.domain.values import Name, Positive, Value

Measure = Literal["latency_s", "ttft_s", "tpot_s", "longest_pause_s"]
"""Fields of a `RunReport`, and the longest time between two tokens of one request."""


Fact = Literal["weights_bytes", "memory_bytes"]
"""The weights of the showcase's model, and the memory of its cluster's smallest device."""

Place = Literal["demo", "reason", "method"]
"""The place where a showcase is offered: the run of the start page, a reason to distribute, or a paper's
method.
"""


class Figure(NamedTuple):
    """A figure that stands in braces in a sentence: a `Fact`, or a `Measure` of the run called `run`, "" for
    the showcase's own; `ratio`: as a multiple of the showcase's own.
    """

    run: str
    name: str
    ratio: bool


def parts_of(text: str) -> Iterator[tuple[str, Figure | None]]:
    """Pieces of a sentence, each with the figure that follows it. Raises `ValueError` for odd braces."""
    for words, field, wanted, _ in Formatter().parse(text):
        run, _, name = (field or "").rpartition(".")
        yield words, None if field is None else Figure(run, name, wanted == "ratio")


class Other(Value):
    """A run beside the showcase's own: another method on the same cluster, or the same on another cluster."""

    name: Name
    title: str
    spec: RunSpec


class Claim(Value):
    """A claim of a showcase about another run: `other`'s `measure` over the showcase's own lies in [at_least,
    at_most], or, without `at_least`, `other` cannot be run at all. `published` is the paper's ratio or
    statement, "" if it has none.
    """

    sentence: str
    measure: Measure
    other: Name
    at_least: Positive | None = None
    at_most: Positive | None = None
    published: str = ""


class Guide(Value):
    """What a person is told to try while the run goes on: slow `link` to `bit_per_s`, then drop `device`."""

    link: str
    bit_per_s: Positive
    device: Name


class Showcase(Value):
    """A run that shows one thing, with others that it is compared with.

    `look_for` says in one sentence what a reader should watch, and why it happens; `emulated` is whether a
    run of it on emulated devices takes less than two minutes on two cores.
    """

    name: Name
    title: str
    look_for: str
    expected: str = Field(description="The comparison to expect; figures, in braces, are predicted.")
    spec: RunSpec
    others: tuple[Other, ...]
    claims: tuple[Claim, ...] = Field(min_length=1)
    emulated: bool = True
    place: Place = "method"
    guide: Guide | None = None
    answer: str = Field("", description='What the model answers, as a run has printed it; "": not kept.')

    @model_validator(mode="after")
    def _guide_is_of_the_cluster(self) -> Showcase:
        if self.guide is not None:
            self.spec.cluster.link_index(self.guide.link)
            self.spec.cluster.rank(self.guide.device)
        return self

    @model_validator(mode="after")
    def _claims_name_others(self) -> Showcase:
        names = [other.name for other in self.others]
        for index, claim in enumerate(self.claims):
            if claim.other not in names:
                raise ValueError(
                    f"claims[{index}].other is {claim.other}: expected one of {', '.join(names)}"
                )
        for _, figure in parts_of(self.expected):
            if figure and not _is_known(figure, names):
                runs = ", ".join(["no run", *names])
                raise ValueError(
                    f"expected has {figure}: expected one of {', '.join(get_args(Fact))}, or one of "
                    f"{', '.join(get_args(Measure))} of {runs}"
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


def _is_known(figure: Figure, names: list[str]) -> bool:
    if figure.name in get_args(Fact):
        return not figure.run and not figure.ratio
    return figure.name in get_args(Measure) and (not figure.run or figure.run in names)
