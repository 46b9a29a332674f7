"""Linear interpolation between the points of a table, on a logarithmic scale."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence


def neighbours(knots: Sequence[float], value: float) -> tuple[tuple[int, float], ...]:
    """The places in `knots`, which rise, of the points around `value`, with their weights, which add up to 1.

    Linear in the logarithm between two points, one point of weight 1 beyond the ends.
    """
    at = bisect_right(knots, value)
    if at in (0, len(knots)):
        return ((min(at, len(knots) - 1), 1.0),)
    share = math.log(value / knots[at - 1]) / math.log(knots[at] / knots[at - 1])
    return (at - 1, 1.0 - share), (at, share)
