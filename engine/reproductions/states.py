"""The state of a published figure, by rules that cannot flatter: the same for every figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from engine.domain.claim import BreakEven, Claim, Compared, Within
from engine.experiments.results.claims import NEUTRAL, NO_EFFECT, Verdict, bounds_of
from engine.experiments.results.published import PublishedRow
from engine.reproductions.declared import Input, Move, Sentence

State = Literal["confirmed", "near", "direction", "contradicted", "input", "cannot be checked"]
STATES: tuple[State, ...] = ("confirmed", "near", "direction", "contradicted", "input", "cannot be checked")
COUNTED: tuple[State, ...] = ("confirmed", "contradicted")
"""What the head of a page counts."""

AGREEMENTS: tuple[State, ...] = ("confirmed", "near", "direction")
"""What a reader takes for an agreement, which nothing is that was put in."""

CONFIRMED, NEAR = 0.1, 0.3
"""Largest distance from the published value, as a fraction of it; of a relation to a baseline, from the
published effect: 1.12 times is half as much again as 1.08 times.
"""

FOLLOWS = 0.8
"""Ours follows from an input if it moves by at least this power of what the input moves by."""

SAME = 1e-3
"""Two runs whose relation differs from none by less did the same but for rounding."""


Cause = Literal["", "paper", "project", "unknown"]
"""What makes a difference; unknown where it may be what the paper leaves out or what this project lacks."""


class Judged(NamedTuple):
    """A state, one sentence why, where the numbers do not say it, and what causes a difference."""

    state: State
    why: str = ""
    cause: Cause = ""


def state_of_value(row: PublishedRow, relation: str, sentence: Sentence | None = None) -> Judged:
    """How ours is to a published value, range or outcome, before it is asked what was put in.

    A relation to a baseline must be on the published side of it, however near it is: 0.98 times is not 1.05
    times. What counts is its effect: 1.0 times is not 1.2 times, and 1.12 times not 1.08 times.
    """
    if row.agrees is not None:
        return Judged("confirmed" if row.agrees else "contradicted")
    neutral = NEUTRAL.get(relation)
    if row.bound in ("at_most", "at_least") and row.deviation == 0 and row.ours and row.published:
        return _of_bound(row.ours, row.published, neutral or 0.0)
    if row.ours is None:
        return Judged("contradicted" if row.outcomes else "cannot be checked", row.problem)
    if sentence is not None:
        told = _of_sentence(sentence, row.ours, neutral or 0.0)
        if told is not None:
            return told
    distance = abs(row.deviation) if row.deviation is not None else math.inf
    published = row.published if row.published is not None else row.published_low
    if neutral is None or published is None:
        return Judged(by_distance(distance))
    effect = row.ours - neutral
    if abs(effect) < SAME and distance <= NEAR and abs(published - neutral) > SAME:
        return Judged(
            "cannot be checked",
            "Both runs are the same here, so that what is varied does nothing: to be near a small published "
            "difference confirms nothing.",
        )
    if not distance:
        return Judged("confirmed")
    ends = (row.published, row.published_low, row.published_high)
    printed = [end - neutral for end in ends if end is not None]
    largest, nearest = max(printed, key=abs), min(printed, key=lambda one: abs(effect - one))
    if abs(largest) <= NO_EFFECT:
        return Judged("confirmed" if abs(effect) <= NO_EFFECT else "contradicted")
    if effect * largest <= 0:
        return Judged("contradicted")
    off = abs(effect / nearest - 1) if nearest else math.inf
    if off > CONFIRMED and abs(effect) <= NO_EFFECT:
        return Judged("contradicted")
    return Judged("confirmed" if off <= CONFIRMED else "near" if off <= NEAR else "direction")


def _of_sentence(sentence: Sentence, ours: float, neutral: float) -> Judged | None:
    """What a sentence makes of a value; None where the value is judged as others are."""
    if sentence.above is None:
        if abs(ours - neutral) > NO_EFFECT:
            return Judged("contradicted", f"The sentence is “{sentence.text}”.")
        return Judged("direction", f"The sentence is “{sentence.text}”, and ours has no effect.", "paper")
    if ours > sentence.above:
        return None
    return Judged("contradicted", f"The sentence is “{sentence.text}”: more than {sentence.above:g}.")


def _of_bound(ours: float, bound: float, neutral: float) -> Judged:
    """A bound that is met, which confirms a number only near to it; where it is the baseline, a side."""
    if bound == neutral:
        return _of_side(f"{ours:.3g}.")
    times = (ours - neutral) / (bound - neutral)
    times = max(times, 1 / times) if times > 0 else math.inf
    if times - 1 <= CONFIRMED:
        return Judged("confirmed")
    told = f"The bound is met {times:.2g} times over, which says nothing of its value."
    return Judged("direction", told, "paper")


def _of_side(ours: str) -> Judged:
    return Judged("direction", f"The paper prints a side and no number; ours: {ours}", "paper")


def state_of_claim(found: Verdict, claim: Claim, values: Sequence[float] = ()) -> Judged:
    """A sentence holds as it stands, in direction, or not. One that has a bound, or a side alone, confirms no
    number that is far from the bound; `values` are those that the claim is about. A break-even is a place,
    and between the published one and ours the other side is better: its distance counts.
    """
    if isinstance(claim, BreakEven) and found.verdict in ("holds", "holds in direction"):
        published = (claim.low + claim.high) / 2
        return Judged(by_distance(max(abs(place / published - 1) for place in values)))
    match found.verdict:
        case "holds":
            if isinstance(claim, Compared) and claim.by_frac is None:
                return _of_side(found.found)
            return _of_bounds(claim, found, values) if isinstance(claim, Within) else Judged("confirmed")
        case "holds in direction":
            return Judged("direction")
        case "does not hold":
            return Judged("contradicted")
        case "not known":
            return Judged("cannot be checked", found.found)


def _of_bounds(claim: Within, found: Verdict, values: Sequence[float]) -> Judged:
    neutral = NEUTRAL.get(claim.relation, 0.0)
    ends = [end for end in bounds_of(claim) if math.isfinite(end) and end != neutral]
    if not ends:
        return _of_side(found.found)
    if len(ends) > 1 or not values:
        return Judged("confirmed")
    return _of_bound(min(values, key=lambda one: abs(one - ends[0])), ends[0], neutral)


def with_input(judged: Judged, set_it: Input | None, moved: Sequence[tuple[Move, float]]) -> Judged:
    """`judged`, or *input* where what was put in would be taken for an agreement. A contradiction stays one.

    `moved` has what was moved, and how many times as large ours, or its effect, is then.
    """
    if judged.state not in AGREEMENTS:
        return judged
    if set_it is not None:
        return Judged("input", f"Put in: {set_it.name}.")
    for move, ratio in moved:
        if follows(ratio, move):
            return Judged("input", f"It follows from {move.name}: {move.told}, {_change(ratio)}.")
    return judged


def _change(ratio: float) -> str:
    if ratio == 0:
        return "it ends otherwise"
    return f"ours is {ratio:.2f} times as large" if ratio > 0 else "it is on the other side of its baseline"


def follows(ratio: float, move: Move) -> bool:
    """Whether ours moves with what was moved; a ratio of 0 stands for another outcome, which is all that can
    follow from an input that is left out.
    """
    return ratio <= 0 or (move.by > 0 and abs(math.log(ratio)) >= FOLLOWS * abs(math.log(move.by)))


def by_distance(distance: float) -> State:
    """The state of a value, by its distance alone: no baseline gives it a side."""
    return "confirmed" if distance <= CONFIRMED else "near" if distance <= NEAR else "contradicted"
