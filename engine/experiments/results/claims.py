"""Judges claims by results: whether each holds, holds in direction, or does not hold, and what was found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from itertools import pairwise
from typing import Literal, NamedTuple

from engine.domain.claim import (
    BreakEven,
    Claim,
    Compared,
    Ended,
    First,
    Selection,
    StatedClaim,
    Trend,
    Within,
)
from engine.domain.experiment import Experiment
from engine.domain.numbers_as_text import shown
from engine.domain.quantity import Coordinates, Quantity
from engine.domain.units import between
from engine.domain.values import Value
from engine.domain.world import World
from engine.experiments.results.best import groups, ranking
from engine.experiments.results.break_even import crossing_points, pairs
from engine.experiments.results.cells import Cell, cells, chosen, label_of, named, sides
from engine.experiments.results.rows import Row
from engine.experiments.results.units import better_of, in_unit, unit_of_quantity

Holds = Literal["holds", "holds in direction", "does not hold", "not known"]
NO_EFFECT = 0.02
"""A relation to a baseline that differs from it by no more is no effect."""

NEUTRAL = {"ratio": 1.0, "speedup": 1.0, "reduction": 0.0}
"""Relation → its value where a cell is as its baseline."""


class Verdict(Value):
    """One claim in one world. `found` is what the results say, in one sentence; `reason` is the claim's own,
    where it does not hold as it stands.
    """

    name: str
    text: str
    kind: str
    world: World
    verdict: Holds
    found: str
    where: str = ""
    reason: str = ""


class Finding(NamedTuple):
    """What one claim comes to."""

    verdict: Holds
    found: str


def verdicts(experiment: Experiment, rows: Sequence[Row]) -> tuple[Verdict, ...]:
    """Every claim in every world that has rows, in the order of the claims."""
    worlds = [world for world in experiment.worlds if any(row.world == world for row in rows)]
    return tuple(
        _verdict(experiment, claim, [row for row in rows if row.world == world], world)
        for claim in experiment.claims
        for world in worlds or experiment.worlds[:1]
    )


def _verdict(experiment: Experiment, claim: Claim, rows: Sequence[Row], world: World) -> Verdict:
    quantity = claim if isinstance(claim, Quantity) else Quantity()
    found = cells(experiment, rows, quantity)
    finding = _whatever_is_assumed(claim, experiment, found)
    return Verdict(
        name=claim.name,
        text=claim.text,
        kind=claim.kind,
        world=world,
        verdict=finding.verdict,
        found=finding.found,
        where=claim.where,
        reason="" if finding.verdict == "holds" else claim.reason,
    )


def _whatever_is_assumed(claim: Claim, experiment: Experiment, found: Sequence[Cell]) -> Finding:
    """What the claim comes to, if that is the same whatever was assumed of what is not published."""
    if not found:
        return Finding("not known", "There are no results yet.")
    if not claim.unpublished:
        return _judge(claim, experiment, found)
    by_assumed: dict[str, list[Cell]] = {}
    for cell in chosen(experiment, found, _given(claim)):
        names = {name: cell.coordinates[name] for name in claim.unpublished if name in cell.coordinates}
        by_assumed.setdefault(_side(experiment, names), []).append(cell)
    findings = {assumed: _judge(claim, experiment, some) for assumed, some in by_assumed.items()}
    if not findings:
        return Finding("not known", "No run matches the claim.")
    told = " ".join(f"{assumed}: {finding.found}" for assumed, finding in findings.items())
    agreed = {finding.verdict for finding in findings.values()}
    if len(agreed) == 1:
        return Finding(agreed.pop(), told)
    return Finding("not known", f"It depends on what is not published: {told}")


def _given(claim: Claim) -> Selection:
    """What `at` says of the factors that are not published."""
    return {name: value for name, value in claim.at.items() if name in claim.unpublished}


def values_of(experiment: Experiment, rows: Sequence[Row], claim: Claim) -> list[float]:
    """The numbers that a claim is about: in the metric's own unit those that are to lie within its bounds;
    the differences of a comparison, as fractions of its second side; the places of a break-even, in the unit
    of its factor, where there are any. A claim of another kind has none.
    """
    if not isinstance(claim, Quantity):
        return []
    found = cells(experiment, rows, claim)
    match claim:
        case Within():
            return [cell.mean for cell in _matching(claim, experiment, found) if cell.mean is not None]
        case Compared():
            return _differences(claim, experiment, found)[0]
        case BreakEven():
            return [place for place in _places(claim, experiment, found)[0] if place is not None]
        case _:
            return []


def outcomes_of(experiment: Experiment, rows: Sequence[Row], claim: Ended) -> set[str]:
    """How the runs that a claim is about ended."""
    reach = chosen(experiment, cells(experiment, rows, Quantity()), claim.at)
    return {outcome for cell in reach for outcome in cell.outcomes}


def _matching(claim: Within, experiment: Experiment, found: Sequence[Cell]) -> list[Cell]:
    matching = chosen(experiment, found, claim.at)
    return _best_of(claim, matching) if claim.best_of else matching


def _differences(claim: Compared, experiment: Experiment, found: Sequence[Cell]) -> tuple[list[float], int]:
    """a / b - 1 at every place that has both sides, and how many places lack one."""
    within_reach = [cell for cell in found if chosen(experiment, [cell], _others(claim))]
    differences, missing = [], 0
    for _, one, other in sides(experiment, within_reach, claim.a, claim.b):
        base = other[0].mean if other else None
        if not one or one[0].mean is None or not base:
            missing += 1
        else:
            differences.append(one[0].mean / base - 1)
    return differences, missing


def _places(
    claim: BreakEven, experiment: Experiment, found: Sequence[Cell]
) -> tuple[list[float | None], int]:
    """Where every line crosses, None where it does not, and how many lines are too short to cross."""
    reach = chosen(experiment, found, _others(claim))
    a_is_better_lower = better_of(claim) != "higher"
    places: list[float | None] = []
    missing = 0
    for _, one, other in sides(experiment, reach, claim.a, claim.b, claim.along):
        both = pairs(one, other, claim.along)
        if len(both) < 2:
            missing += 1
            continue
        # a gets better: it is not the better one below the crossing
        crossed = [c for c in crossing_points(both) if c[3] != a_is_better_lower]
        places.append((crossed[-1][2] if claim.tested else crossed[-1][0]) if crossed else None)
    return places, missing


@singledispatch
def _judge(claim: StatedClaim, experiment: Experiment, found: Sequence[Cell]) -> Finding:
    raise TypeError(f"no rule for claims of type {type(claim).__name__}")


@_judge.register
def _compared(claim: Compared, experiment: Experiment, found: Sequence[Cell]) -> Finding:
    differences, missing = _differences(claim, experiment, found)
    if not differences:
        return Finding("not known", "No point has a value on both sides of the comparison.")
    sign = 1 if claim.side == "above" else -1
    on_side = [sign * difference > 0 for difference in differences]
    close = claim.by_frac is None or all(
        abs(sign * difference - claim.by_frac) <= claim.within_frac for difference in differences
    )
    low, high = min(differences), max(differences)
    size = between(f"{low:+.1%}", f"{high:+.1%}")
    sentence = f"{_side(experiment, claim.a)} against {_side(experiment, claim.b)}: {size}"
    return _finding(all(on_side) and close, all(on_side), sentence, len(differences), missing)


@_judge.register
def _first(claim: First, experiment: Experiment, found: Sequence[Cell]) -> Finding:
    better = better_of(claim)
    if better is None:
        return Finding("not known", f"Neither more nor less of {claim.metric} is better, so none is first.")
    level = named(experiment, {claim.of: claim.level})[claim.of]
    times, leaders, missing = 0, [], 0
    for _, group in groups(chosen(experiment, found, claim.at), claim.of):
        ranked = ranking(group, (better == "higher") != claim.last)
        if not any(cell.coordinates[claim.of] == level for cell in ranked):
            missing += 1
            continue
        leaders.append(label_of(experiment, claim.of, ranked[0].coordinates[claim.of]))
        times += ranked[0].coordinates[claim.of] == level
    if not leaders:
        return Finding("not known", f"No point with {claim.level} has a value.")
    others = sorted({name for name in leaders if name != label_of(experiment, claim.of, level)})
    sentence = f"{'last' if claim.last else 'first'} in {times} of {len(leaders)}"
    sentence += f"; elsewhere {', '.join(others)}" if others else ""
    return _finding(times == len(leaders), False, sentence, len(leaders), missing)


@_judge.register
def _ended(claim: Ended, experiment: Experiment, found: Sequence[Cell]) -> Finding:
    expected = (claim.outcome,) if isinstance(claim.outcome, str) else claim.outcome
    outcomes = [outcome for cell in chosen(experiment, found, claim.at) for outcome in cell.outcomes]
    if not outcomes:
        return Finding("not known", "No run matches the claim.")
    times = sum(outcome in expected for outcome in outcomes)
    counted = sorted({(outcomes.count(one), one.replace("_", " ")) for one in outcomes}, reverse=True)
    sentence = ", ".join(f"{number} of {len(outcomes)} {one}" for number, one in counted)
    return _finding(times == len(outcomes), False, sentence, len(outcomes), 0)


@_judge.register
def _trend(claim: Trend, experiment: Experiment, found: Sequence[Cell]) -> Finding:
    sign = 1 if claim.goes == "rises" else -1
    steady, ends, lines, missing = [], [], [], 0
    for _, group in groups(chosen(experiment, found, claim.at), claim.along):
        means = [cell.mean for cell in group if cell.mean is not None]
        if len(means) < 2:
            missing += 1
            continue
        steady.append(all(sign * (b - a) > 0 for a, b in pairwise(means)))
        ends.append(sign * (means[-1] - means[0]) > 0)
        lines.append(f"{_shown(means[0], claim)} to {_shown(means[-1], claim)}")
    if not ends:
        return Finding("not known", f"{claim.along} has fewer than two values to compare.")
    sentence = f"{claim.goes} in every step of {sum(steady)} of {len(steady)}; from {'; '.join(lines[:3])}"
    return _finding(all(steady), all(ends), sentence, len(ends), missing)


@_judge.register
def _within(claim: Within, experiment: Experiment, found: Sequence[Cell]) -> Finding:
    low, high = bounds_of(claim)
    matching = _matching(claim, experiment, found)
    means = [cell.mean for cell in matching if cell.mean is not None]
    if not means:
        return Finding("not known", matching[0].problem if matching else "No run matches the claim.")
    ends = between(_shown(min(means), claim), _shown(max(means), claim))
    if claim.low is None or claim.high is None:
        bound = f"at least {_shown(low, claim)}" if claim.high is None else f"at most {_shown(high, claim)}"
    else:
        bound = between(_shown(low, claim), _shown(high, claim))
    sentence = f"{ends}, claimed {bound}"
    inside = all(low <= value <= high for value in means)
    on_side = _on_claimed_side(claim, low, high, means)
    return _finding(inside, on_side, sentence, len(means), len(matching) - len(means))


def bounds_of(claim: Within) -> tuple[float, float]:
    """The claim's bounds in the unit of its metric; infinite where it has none."""
    unit = unit_of_quantity(claim)
    low = -math.inf if claim.low is None else in_unit(claim.low, claim.unit, unit)
    high = math.inf if claim.high is None else in_unit(claim.high, claim.unit, unit)
    return low, high


def _best_of(claim: Within, matching: Sequence[Cell]) -> list[Cell]:
    """The best level of factor `best_of` at every place of the others; any where none has a value."""
    highest_first = better_of(claim) == "higher"
    return [(ranking(group, highest_first) or group)[0] for _, group in groups(matching, claim.best_of)]


def _on_claimed_side(claim: Within, low: float, high: float, means: Sequence[float]) -> bool:
    """Whether every cell has an effect, and to the side of the baseline on which the whole range is."""
    neutral = NEUTRAL.get(claim.relation)
    if neutral is None:
        return False
    if low >= neutral:
        return all(value - neutral > NO_EFFECT for value in means)
    return high <= neutral and all(neutral - value > NO_EFFECT for value in means)


@_judge.register
def _break_even(claim: BreakEven, experiment: Experiment, found: Sequence[Cell]) -> Finding:
    places, missing = _places(claim, experiment, found)
    if not places:
        return Finding("not known", f"No line has two values on each side along {claim.along}.")
    known = [place for place in places if place is not None]
    factor = experiment.factor(claim.along)
    unit = factor.unit if factor else ""
    where = ", ".join(shown(place, unit) for place in known) or "nowhere"
    sentence = f"{_side(experiment, claim.a)} gets better than {_side(experiment, claim.b)} at {where}"
    inside = len(known) == len(places) and all(claim.low <= place <= claim.high for place in known)
    return _finding(inside, len(known) == len(places), sentence, len(places), missing)


def _finding(holds: bool, in_direction: bool, sentence: str, places: int, missing: int) -> Finding:
    """What the results say of a claim about every place: one that contradicts it suffices, and a place
    without a value leaves open what the others confirm.
    """
    verdict: Holds = "holds" if holds else "holds in direction" if in_direction else "does not hold"
    if missing and verdict != "does not hold":
        verdict = "not known"
    more = f" ({places} places)" if places > 1 else ""
    more += f"; {missing} without a value" if missing else ""
    return Finding(verdict, f"{sentence}{more}.")


def _others(claim: Compared | BreakEven) -> Selection:
    """What `at` fixes besides the two sides."""
    return {name: value for name, value in claim.at.items() if name not in {*claim.a, *claim.b}}


def _side(experiment: Experiment, coordinates: Coordinates) -> str:
    return ", ".join(label_of(experiment, name, value) for name, value in coordinates.items())


def _shown(value: float, quantity: Quantity) -> str:
    return shown(value, unit_of_quantity(quantity))
