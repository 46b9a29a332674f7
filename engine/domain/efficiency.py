"""How much of a device's peak rate a matrix product reaches, as a table over its rows and its width."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import log
from typing import Literal

from pydantic import Field

from engine.domain.values import Positive, Value


class Efficiency(Value):
    """One point: a product of `rows` rows, whose matrix has `width` outputs or inputs, whichever is less.

    `basis` says where `frac` is from: fitted to published figures, measured, or predicted without any.
    """

    rows: int = Field(gt=0)
    width: int = Field(gt=0)
    frac: Positive = Field(le=1)
    basis: Literal["fitted", "measured", "predicted"]


def check_grid(points: Sequence[Efficiency]) -> None:
    """Raises `ValueError` unless every number of rows has one point at every width."""
    found = [(point.rows, point.width) for point in points]
    wanted = set(product({rows for rows, _ in found}, {width for _, width in found}))
    missing = sorted(wanted - set(found))
    if missing:
        raise ValueError(f"no point for rows {missing[0][0]} and width {missing[0][1]}: state all of a grid")
    if len(found) > len(wanted):
        raise ValueError("a point is there twice: state one for each number of rows and each width")


@lru_cache(maxsize=4096)
def efficiency(points: tuple[Efficiency, ...], rows: int, width: int) -> float:
    """Share of the peak rate, linear in the logarithms of rows and width, and constant beyond the table."""
    table = {(point.rows, point.width): point.frac for point in points}
    low_rows, high_rows, rows_frac = _between(sorted({point.rows for point in points}), rows)
    low_width, high_width, width_frac = _between(sorted({point.width for point in points}), width)

    def at(rows: int) -> float:
        return (1 - width_frac) * table[rows, low_width] + width_frac * table[rows, high_width]

    return (1 - rows_frac) * at(low_rows) + rows_frac * at(high_rows)


def _between(knots: Sequence[int], value: int) -> tuple[int, int, float]:
    """The knots around `value`, and how far it is from the first to the second on a logarithmic scale."""
    if value <= knots[0]:
        return knots[0], knots[0], 0.0
    if value >= knots[-1]:
        return knots[-1], knots[-1], 0.0
    low, high = knots[bisect_right(knots, value) - 1], knots[bisect_right(knots, value)]
    return low, high, log(value / low) / log(high / low)
