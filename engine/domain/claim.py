"""Claims: sentences of a paper, or of ours, that results can confirm or refute."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from engine.domain.quantity import Coordinate, Coordinates, Quantity
from engine.domain.values import NonNegative, Value

Selection = dict[str, Coordinate | tuple[Coordinate, ...]]
"""Factor name → the value, or the values, at which a claim is checked; factors left out: at all of theirs."""


class StatedClaim(Value):
    """A claim in words, with what all kinds of claims share.

    `text` is the sentence, `where` its place in the paper, `figures` the ids of published figures that it
    stands for. `reason` is written by a person who has looked why it does not hold. `unpublished` names
    factors whose values had to be assumed: the claim is judged at each of them, and not known where that
    differs.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,60}$")
    text: str
    where: str = ""
    figures: tuple[str, ...] = ()
    at: Selection = Field(default_factory=dict)
    unpublished: tuple[str, ...] = ()
    reason: str = ""


class Compared(StatedClaim, Quantity):
    """The claim that `a` is below or above `b` at every cell of `at`: "voltage is below single by 27.9 % ± 3
    at six devices".

    `a` and `b` are coordinates of the two sides. With `by_frac` the difference |a - b| / b is that fraction,
    give or take `within_frac` (both fractions: 0.279 and 0.03). Direction: `a` is on the named side of `b`.
    """

    kind: Literal["compared"] = "compared"
    a: Coordinates
    b: Coordinates
    side: Literal["below", "above"]
    by_frac: NonNegative | None = None
    within_frac: NonNegative = 0.03


class First(StatedClaim, Quantity):
    """The claim that `level` is the best (or with `last` the worst) of factor `of` at every cell of `at`:
    "edgeformer is first for every model". It has no direction: first nearly everywhere is not first
    everywhere.
    """

    kind: Literal["first"] = "first"
    of: str
    level: Coordinate
    last: bool = False


class Ended(StatedClaim):
    """Every run of `at` ended so, or in one of several ways: "megatron is out of memory in Setting 3",
    which is `out_of_memory` in a run, and `no_plan` where the strategy sees it before. It has no direction.
    """

    kind: Literal["ended"] = "ended"
    outcome: str | tuple[str, ...]


class Trend(StatedClaim, Quantity):
    """The quantity falls or rises with factor `along`, at every cell of the others. Direction: its last value
    is on that side of its first, in every line.
    """

    kind: Literal["trend"] = "trend"
    along: str
    goes: Literal["falls", "rises"]


class Within(StatedClaim, Quantity):
    """The quantity at every cell of `at` lies in [low, high], in `unit`; one of the two may be left out.
    `best_of` names a factor of which only the best level counts at every place: "the best baseline takes 1.7
    times as long". Direction, of relations to a baseline alone: every cell is on the same side of the
    baseline as the whole range, by 2 % of it at least.
    """

    kind: Literal["within"] = "within"
    low: float | None = None
    high: float | None = None
    unit: str = ""
    best_of: str = ""

    @model_validator(mode="after")
    def _in_order(self) -> Within:
        if self.low is None and self.high is None:
            raise ValueError("a claim within bounds needs low, high, or both")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low is {self.low:g} and high {self.high:g}: exchange them")
        return self


class BreakEven(StatedClaim, Quantity):
    """The claim that `a` gets better than `b` where factor `along` is between `low` and `high`: "distributing
    pays above 85 Mbit/s". Direction: every line has a crossing, elsewhere. The place is interpolated between
    neighbouring values, or with `tested` the first value at which `a` is better.
    """

    kind: Literal["break_even"] = "break_even"
    along: str
    a: Coordinates
    b: Coordinates
    low: float
    high: float
    tested: bool = False


Claim = Annotated[
    Compared | First | Ended | Trend | Within | BreakEven,
    Field(discriminator="kind"),
]
