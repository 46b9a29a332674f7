"""Means of repeated values with their 95 % intervals, and where the values lie, for every page and table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from engine.domain.values import Value

T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145),
    *(2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048),
    *(2.045, 2.042, 2.040, 2.037, 2.035, 2.032, 2.030, 2.028, 2.026, 2.024, 2.023, 2.021, 2.020, 2.018),
    *(2.017, 2.015, 2.014, 2.013, 2.012, 2.011, 2.010, 2.009, 2.008, 2.007, 2.006, 2.005, 2.004, 2.003),
    *(2.002, 2.002, 2.001, 2.000, 2.000, 1.999, 1.998, 1.998, 1.997, 1.997, 1.996, 1.995, 1.995, 1.994),
    *(1.994, 1.993, 1.993, 1.993, 1.992, 1.992, 1.991, 1.991, 1.990, 1.990, 1.990, 1.989, 1.989, 1.989),
    *(1.988, 1.988, 1.988, 1.987, 1.987, 1.987, 1.986, 1.986, 1.986, 1.986, 1.985, 1.985, 1.985, 1.984),
    *(1.984, 1.984),
)
"""97.5 % quantiles of Student's t with 1 to 100 degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
With more degrees that of 100 is taken, which is at most 1.3 % too wide.
"""

ROUNDING = 1e-9
"""Repeats that differ by less than this part of their mean are equal but for the rounding of floats."""


class Average(Value):
    """The mean of `count` values. `margin` is half of the 95 % interval of the mean; None of a
    single value.
    """

    mean: float
    margin: float | None
    median: float
    least: float
    most: float
    count: int


class Box(Value):
    """Least, quartiles and most of `count` values; quartiles are interpolated linearly."""

    least: float
    lower: float
    median: float
    upper: float
    most: float
    count: int


def average_of(values: Sequence[float]) -> Average | None:
    """The mean of `values` with its interval; None without values."""
    if not values:
        return None
    return Average(
        mean=statistics.fmean(values),
        margin=margin_of(values),
        median=statistics.median(values),
        least=min(values),
        most=max(values),
        count=len(values),
    )


def averages_of(rows: Iterable[Mapping[str, float]]) -> dict[str, Average]:
    """The average of each name, over the rows that have it."""
    values: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    return {name: known for name, one in values.items() if (known := average_of(one)) is not None}


def margin_of(values: Sequence[float]) -> float | None:
    """The half width of the 95 % confidence interval of the mean (Student's t); None of fewer than two
    values.
    """
    number = len(values)
    if number < 2:
        return None
    half = T_975[min(number - 1, len(T_975)) - 1] * statistics.stdev(values) / math.sqrt(number)
    return half if half > ROUNDING * abs(statistics.fmean(values)) else 0.0


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % confidence interval of the mean of two or more values; None for fewer."""
    half = margin_of(values)
    if half is None:
        return None
    mean = statistics.fmean(values)
    return mean - half, mean + half


def box_of(values: Sequence[float]) -> Box | None:
    """The quartiles of `values`; None without values."""
    if not values:
        return None
    if len(values) == 1:
        lower = median = upper = values[0]
    else:
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return Box(
        least=min(values), lower=lower, median=median, upper=upper, most=max(values), count=len(values)
    )
