"""How much of a device's peak rate a matrix product reaches, as a table over its rows and its width."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Literal

from pydantic import Field

from engine.domain.interpolation import neighbours
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
    """Check that every number of rows has one point at every width; raises `ValueError`."""
    found = [(point.rows, point.width) for point in points]
    wanted = set(product({rows for rows, _ in found}, {width for _, width in found}))
    missing = sorted(wanted - set(found))
    if missing:
        raise ValueError(f"no point for rows {missing[0][0]} and width {missing[0][1]}: state all of a grid")
    if len(found) > len(wanted):
        raise ValueError("a point is there twice: state one for each number of rows and each width")


@lru_cache(maxsize=4096)
def efficiency(points: tuple[Efficiency, ...], rows: int, width: int) -> float:
    """The share of the peak rate that a product reaches, linear in the logarithms of rows and width, and
    constant beyond the table.
    """
    table = {(point.rows, point.width): point.frac for point in points}
    all_rows, widths = (sorted({place[axis] for place in table}) for axis in (0, 1))
    return sum(
        share * part * table[all_rows[row], widths[column]]
        for row, share in neighbours(all_rows, rows)
        for column, part in neighbours(widths, width)
    )
