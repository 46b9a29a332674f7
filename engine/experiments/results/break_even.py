"""Break-even: where along a factor with numbers one level of another gets better than a second one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise

from engine.domain.experiment import Experiment
from engine.domain.numbers_as_text import shown
from engine.domain.quantity import Coordinate, Coordinates, Quantity
from engine.domain.units import between
from engine.domain.values import Value
from engine.experiments.results.best import groups
from engine.experiments.results.cells import Cell, cells, is_same, label_of, place_of
from engine.experiments.results.rows import Row
from engine.experiments.results.units import better_of

Pair = tuple[float, float, float]
"""A value of the factor, and the means of both sides there."""


SAME = 1e-6
"""Relative difference below which both sides are equal, and say nothing about a crossing."""


class Crossing(Value):
    """A change of the better one along a factor: from `below` to `above` (labels) at `x`, a value of `along`.

    `tested_low` and `tested_high` are the values on both sides of it. Between `low` and `high` the 95 %
    intervals of the two overlap; None where they still do at the last tested value, or without intervals.
    `distinguishable` is False if the two cannot be told apart on one of the sides. `text` says all of this
    in one sentence.
    """

    coordinates: Coordinates
    along: str
    x: float
    tested_low: float
    tested_high: float
    below: str
    above: str
    low: float | None = None
    high: float | None = None
    distinguishable: bool = True
    text: str


def crossings(
    experiment: Experiment,
    rows: Sequence[Row],
    quantity: Quantity,
    along: str,
    of: str,
    where: Sequence[str] = (),
    worlds: Sequence[str] = (),
) -> tuple[Crossing, ...]:
    """Every crossing of two levels of factor `of` along factor `along`, at every place of the other
    factors.
    """
    found = cells(experiment, rows, quantity, where, worlds)
    crossed = [(place, group) for place, group in groups(found, along) if of in place]
    result: list[Crossing] = []
    for (place, one), (other_place, other) in combinations(crossed, 2):
        rest = {name: value for name, value in place.items() if name != of}
        other_rest = {name: value for name, value in other_place.items() if name != of}
        if place_of(rest) == place_of(other_rest):
            labels = (label_of(experiment, of, place[of]), label_of(experiment, of, other_place[of]))
            result += _crossings_of(experiment, quantity, along, rest, labels, one, other)
    return tuple(result)


def pairs(one: Sequence[Cell], other: Sequence[Cell], along: str) -> list[Pair]:
    """Pairs of cells where both sides have a value, by rising value of the factor; only numbers have an
    order. Where both are one computation they differ by nothing, whatever was measured.
    """
    twins = {_number(cell.coordinates[along]): cell for cell in other}
    found = []
    for cell in one:
        x = _number(cell.coordinates[along])
        twin = twins.get(x)
        if x is not None and cell.mean is not None and twin is not None and twin.mean is not None:
            found.append((x, cell.mean, cell.mean if is_same(cell, twin) else twin.mean))
    return sorted(found)


def crossing_points(found: Sequence[Pair]) -> list[tuple[float, float, float, bool]]:
    """Every crossing as (x, tested value below, tested value above, whether the first side is lower below) of
    every crossing.

    The ratio of both sides is interpolated between neighbouring values: its logarithm over the logarithm of
    the factor, as rates and times are compared; where a number is not positive, the difference over the
    factor.
    """
    crossed = []
    values = [
        (x, *_difference(one, other)) for x, one, other in found if not math.isclose(one, other, rel_tol=SAME)
    ]
    for (x0, d0, is_log0), (x1, d1, is_log1) in pairwise(values):
        if (d0 < 0) == (d1 < 0):
            continue
        share = d0 / (d0 - d1)
        if is_log0 and is_log1 and x0 > 0:
            x = math.exp(math.log(x0) + share * (math.log(x1) - math.log(x0)))
        else:
            x = x0 + share * (x1 - x0)
        crossed.append((x, x0, x1, d0 < 0))
    return crossed


def overlaps(one: Sequence[Cell], other: Sequence[Cell], along: str) -> list[tuple[float, float]]:
    """Ranges of the factor in which the 95 % intervals of both sides overlap, by rising value: of intervals
    that are interpolated as their means are. Infinite where they overlap at the least or the largest tested
    value. There are none where no cell has an interval.
    """
    theirs = {_number(cell.coordinates[along]): cell for cell in other}
    found = []
    for cell in one:
        x = _number(cell.coordinates[along])
        twin = theirs.get(x)
        if x is not None and cell.mean is not None and twin is not None and twin.mean is not None:
            found.append((x, cell.bounds, twin.bounds))
    found.sort()
    if not any(low < high for _, *both in found for low, high in both):
        return []
    edges = [
        x
        for end in (1, 0)  # one's high end against other's low end, and the reverse: each crossing is an edge
        for x, *_ in crossing_points([(x, mine[end], yours[1 - end]) for x, mine, yours in found])
    ]
    return _spans(sorted(edges), overlap_at_start=_meet(found[0][1], found[0][2]))


def _spans(edges: Sequence[float], overlap_at_start: bool) -> list[tuple[float, float]]:
    """Ranges between the `edges` where an overlap begins or ends, by rising value."""
    spans = []
    start = -math.inf if overlap_at_start else None
    for x in edges:
        if start is None:
            start = x
        else:
            spans.append((start, x))
            start = None
    return [*spans, (start, math.inf)] if start is not None else spans


def _meet(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _reach(span: tuple[float, float] | None, title: str, unit: str) -> str:
    low, high = span or (-math.inf, math.inf)
    if math.isfinite(low):
        return f" where {title} is above {shown(low, unit)}"
    return f" where {title} is below {shown(high, unit)}" if math.isfinite(high) else ""


def _difference(one: float, other: float) -> tuple[float, bool]:
    if one > 0 and other > 0:
        return math.log(one / other), True
    return one - other, False


def _crossings_of(
    experiment: Experiment,
    quantity: Quantity,
    along: str,
    rest: Coordinates,
    labels: tuple[str, str],
    one: Sequence[Cell],
    other: Sequence[Cell],
) -> list[Crossing]:
    factor = experiment.factor(along)
    unit = factor.unit if factor else ""
    name = factor.label if factor else along
    result = []
    spans = overlaps(one, other, along)
    for x, low, high, first_is_lower in crossing_points(pairs(one, other, along)):
        first_is_better = first_is_lower == (better_of(quantity) != "higher")
        below, above = labels if first_is_better else (labels[1], labels[0])
        span = next((span for span in spans if span[0] <= x <= span[1]), None)
        apart = span is None or (math.isfinite(span[0]) and math.isfinite(span[1]))
        ends = tuple(end if math.isfinite(end) else None for end in span) if span else (None, None)
        title = _in_a_sentence(name)
        if apart:
            text = f"{above} is better than {below} where {title} is above {shown(x, unit)}"
            if span is not None and span[1] > span[0]:
                text += f", 95 % interval {between(shown(span[0], unit), shown(span[1], unit))}"
        else:
            text = f"{above} and {below} are not distinguishable{_reach(span, title, unit)}"
            text += f", though their means cross at {shown(x, unit)}"
        result.append(
            Crossing(
                coordinates=rest,
                along=along,
                x=x,
                tested_low=low,
                tested_high=high,
                below=below,
                above=above,
                low=ends[0],
                high=ends[1],
                distinguishable=apart,
                text=f"{text} (between {shown(low, unit)} and {shown(high, unit)}).",
            )
        )
    return result


def _in_a_sentence(title: str) -> str:
    """`Rate of the links` → `rate of the links`; a word in capitals stays."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def _number(value: Coordinate) -> float | None:
    return None if isinstance(value, bool | str) else float(value)
