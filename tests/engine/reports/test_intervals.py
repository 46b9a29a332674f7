"""Means, intervals and quartiles, by hand and against scipy."""

from __future__ import annotations

import pytest
from scipy import stats

from engine.reports.intervals import T_975, average_of, box_of, interval


def test_the_interval_is_student_s() -> None:
    # mean 2.5, s = sqrt(5/3), s/sqrt(4) = 0.6455, t(3) = 3.182
    assert interval([1.0, 2.0, 3.0, 4.0]) == pytest.approx((2.5 - 2.0540, 2.5 + 2.0540), abs=1e-3)
    assert interval([1.0]) is None
    assert list(T_975) == pytest.approx([stats.t.ppf(0.975, df) for df in range(1, 101)], abs=6e-4)


@pytest.mark.parametrize(("count", "quantile"), [(32, 2.040), (40, 2.023), (50, 2.010), (200, 1.984)])
def test_many_repeats_have_the_quantile_of_their_number(count: int, quantile: float) -> None:
    """0 and 2 in turn: the standard error of n values is 1/√(n - 1)."""
    average = average_of([0.0, 2.0] * (count // 2))
    assert average is not None and average.margin is not None
    assert average.margin * (count - 1) ** 0.5 == pytest.approx(quantile)


def test_a_median_and_extremes_are_left_or_shown_by_one_value_far_away() -> None:
    average = average_of([10.0, 9.0, 300.0, 8.0])  # in order 8, 9, 10, 300
    assert average is not None
    assert (average.median, average.least, average.most, average.count) == (9.5, 8, 300, 4)
    assert average_of([]) is None and box_of([]) is None


def test_quartiles_are_interpolated_between_values() -> None:
    box = box_of([4.0, 1.0, 3.0, 2.0])  # places 0.75, 1.5 and 2.25 between 1, 2, 3, 4
    assert box is not None
    assert (box.least, box.lower, box.median, box.upper, box.most) == (1, 1.75, 2.5, 3.25, 4)
    one = box_of([5.0])
    assert one is not None and (one.least, one.lower, one.most) == (5, 5, 5)
