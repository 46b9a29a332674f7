"""Break-even: where along a factor with numbers one level of another gets better than a second one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise

from engine.domain.experiment import Experiment
from engine.domain.quantity import Coordinate, Coordinates, Quantity
from engine.domain.values import Value
from engine.experiments.results.best import groups
from engine.experiments.results.cells import Cell, cells, label_of, place_of
from engine.experiments.results.numbers_as_text import shown
from engine.experiments.results.rows import Row
from engine.experiments.results.units import better_of

Pair = tuple[float, float, float]
"""A value of the factor, and the means of both sides there."""


SAME = 1e-6
"""Relative difference below which both sides are equal, and say nothing about a crossing."""


class Crossing(Value):
    """At `x` (a value of factor `along`) the better one changes from `below` to `above`, which are labels.

    `tested_low` and `tested_high` are the values on both sides of it; `text` says all of this in one
    sentence.
    """

    coordinates: Coordinates
    along: str
    x: float
    tested_low: float
    tested_high: float
    below: str
    above: str
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
            result += _crossings_of(experiment, quantity, along, rest, labels, pairs(one, other, along))
    return tuple(result)


def pairs(one: Sequence[Cell], other: Sequence[Cell], along: str) -> list[Pair]:
    """Where both sides have a value, by rising value of the factor; only numbers have an order."""
    means = {_number(cell.coordinates[along]): cell.mean for cell in other}
    found = []
    for cell in one:
        x = _number(cell.coordinates[along])
        theirs = means.get(x)
        if x is not None and cell.mean is not None and theirs is not None:
            found.append((x, cell.mean, theirs))
    return sorted(found)


def crossing_points(found: Sequence[Pair]) -> list[tuple[float, float, float, bool]]:
    """(x, tested value below, tested value above, whether the first side is lower below) of every crossing.

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
    found: Sequence[Pair],
) -> list[Crossing]:
    factor = experiment.factor(along)
    unit = factor.unit if factor else ""
    name = factor.label if factor else along
    result = []
    for x, low, high, first_is_lower in crossing_points(found):
        first_is_better = first_is_lower == (better_of(quantity) != "higher")
        below, above = labels if first_is_better else (labels[1], labels[0])
        text = f"{above} is better than {below} where {_in_a_sentence(name)} is above {shown(x, unit)}"
        result.append(
            Crossing(
                coordinates=rest,
                along=along,
                x=x,
                tested_low=low,
                tested_high=high,
                below=below,
                above=above,
                text=f"{text} (between {shown(low, unit)} and {shown(high, unit)}).",
            )
        )
    return result


def _in_a_sentence(title: str) -> str:
    """`Rate of the links` → `rate of the links`; a word in capitals stays."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def _number(value: Coordinate) -> float | None:
    return None if isinstance(value, bool | str) else float(value)
