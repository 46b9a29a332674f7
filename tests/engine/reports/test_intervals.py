"""Means, intervals and quartiles, by hand and against scipy."""

from __future__ import annotations

from collections.abc import ItemsView

import pytest
from scipy import stats

from engine.reports.intervals import T_975, average_of, averages_of, box_of, interval


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


class Looked(dict[str, float]):
    """Counts how often somebody looks at its values."""

    looks = 0

    def __getitem__(self, name: str) -> float:
        Looked.looks += 1
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        Looked.looks += 1
        return super().__contains__(name)

    def items(self) -> ItemsView[str, float]:
        Looked.looks += len(self)
        return super().items()


def test_averages_look_at_each_value_once_however_many_rows_there_are() -> None:
    """Anybody may ask for 5,000 runs: with a look per row and value it took a minute of the server."""
    row = Looked({"a": 1.0, "b": 2.0})
    found = averages_of([row] * 500)
    assert (found["a"].mean, found["b"].mean, found["b"].count) == (1, 2, 500)
    assert Looked.looks <= 2 * 500


def test_an_average_is_over_the_rows_that_have_the_value() -> None:
    found = averages_of([{"a": 1.0}, {"a": 3.0, "b": 5.0}, {}])
    assert {name: (one.mean, one.count) for name, one in found.items()} == {"a": (2, 2), "b": (5, 1)}
    assert averages_of([]) == {}
