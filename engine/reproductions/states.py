"""The state of a published figure, by rules that cannot flatter: the same for every figure."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from engine.experiments.results.claims import NEUTRAL, NO_EFFECT, Verdict
from engine.experiments.results.published import PublishedRow
from engine.reproductions.declared import Input, Sentence

State = Literal["confirmed", "near", "direction", "contradicted", "input", "cannot be checked"]
STATES: tuple[State, ...] = ("confirmed", "near", "direction", "contradicted", "input", "cannot be checked")
COUNTED: tuple[State, ...] = ("confirmed", "contradicted")
"""What the head of a page counts."""

AGREEMENTS: tuple[State, ...] = ("confirmed", "near", "direction")
"""What a reader takes for an agreement, which nothing is that was put in."""

CONFIRMED, NEAR = 0.1, 0.3
"""Largest distance from the published value, as a fraction of it."""

FOLLOWS = 0.8
"""Ours follows from an input if it moves by at least this power of what the input moves by."""

SAME = 1e-3
"""Two runs whose relation differs from none by less did the same but for rounding."""


class Judged(NamedTuple):
    """A state, and one sentence why, where the numbers do not say it."""

    state: State
    why: str = ""


def state_of_value(row: PublishedRow, relation: str, sentence: Sentence | None = None) -> Judged:
    """How ours is to a published value, range or outcome, before it is asked what was put in.

    A relation to a baseline must be on the published side of it, however near it is: 0.98 times is not 1.05
    times. Beyond 10 % it must also be an effect: 1.0 times is not 1.2 times.
    """
    if row.agrees is not None:
        return Judged("confirmed" if row.agrees else "contradicted")
    if row.bound in ("at_most", "at_least") and row.deviation == 0 and row.ours and row.published:
        return _of_bound(row.ours, row.published)
    if row.ours is None:
        return Judged("contradicted" if row.outcomes else "cannot be checked", row.problem)
    if sentence is not None and row.ours <= sentence.above:
        return Judged("contradicted", f"The sentence is “{sentence.text}”: more than {sentence.above:g}.")
    distance = abs(row.deviation) if row.deviation is not None else math.inf
    published = row.published if row.published is not None else row.published_low
    neutral = NEUTRAL.get(relation)
    if neutral is None or published is None:
        return Judged(by_distance(distance))
    effect = row.ours - neutral
    if abs(effect) < SAME and distance <= NEAR and abs(published - neutral) > SAME:
        return Judged(
            "cannot be checked",
            "Both runs are the same here, so that what is varied does nothing: to be near a small published "
            "difference confirms nothing.",
        )
    if abs(published - neutral) > NO_EFFECT and effect * (published - neutral) <= 0:
        return Judged("contradicted")
    if distance <= CONFIRMED:
        return Judged("confirmed")
    if abs(effect) <= NO_EFFECT or effect * (published - neutral) <= 0:
        return Judged("contradicted")
    return Judged("near" if distance <= NEAR else "direction")


def _of_bound(ours: float, bound: float) -> Judged:
    """A bound that is met, which confirms a number only near to it."""
    times = max(ours / bound, bound / ours)
    if times - 1 <= CONFIRMED:
        return Judged("confirmed")
    return Judged("direction", f"The bound is met {times:.2g} times over, which says nothing of its value.")


def state_of_claim(found: Verdict) -> Judged:
    """A sentence holds as it stands, in direction, or not."""
    match found.verdict:
        case "holds":
            return Judged("confirmed")
        case "holds in direction":
            return Judged("direction")
        case "does not hold":
            return Judged("contradicted")
        case "not known":
            return Judged("cannot be checked", found.found)


def with_input(judged: Judged, set_it: Input | None, moved: dict[str, float], by: dict[str, float]) -> Judged:
    """`judged`, or *input* where what was put in would be taken for an agreement. A contradiction stays one.

    `moved` has by the name of an input how many times as large ours, or its effect, is with it multiplied by
    `by`.
    """
    if judged.state not in AGREEMENTS:
        return judged
    if set_it is not None:
        return Judged("input", f"Put in: {set_it.name}.")
    for name, ratio in moved.items():
        if follows(ratio, by[name]):
            moved_to = f"with {by[name]:.2f} times of it" if by[name] else "without it"
            return Judged("input", f"It follows from {name}: {moved_to}, {_change(ratio)}.")
    return judged


def _change(ratio: float) -> str:
    if ratio == 0:
        return "it ends otherwise"
    return f"ours is {ratio:.2f} times as large" if ratio > 0 else "it is on the other side of its baseline"


def follows(ratio: float, by: float) -> bool:
    """Whether ours moves with an input; a ratio of 0 stands for another outcome, which is all that can follow
    from an input that is left out (`by` 0).
    """
    return ratio <= 0 or (by > 0 and abs(math.log(ratio)) >= FOLLOWS * abs(math.log(by)))


def by_distance(distance: float) -> State:
    """The state of a value, by its distance alone: no baseline gives it a side."""
    return "confirmed" if distance <= CONFIRMED else "near" if distance <= NEAR else "contradicted"
