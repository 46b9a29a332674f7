"""What processes cost each other, from times that were measured in turn."""

import pytest

from emulator.calibration.contention import slowdown_in


def test_a_machine_that_is_slower_in_one_turn_is_so_for_one_process_and_several_alike() -> None:
    """Two processes take 1.2 times as long, three 1.6 times; in the second turn everything takes twice that,
    and in the third another user slows three of them.
    """
    turns = [[[speed * factor for factor in (1.0, 1.2, 1.6)]] for speed in (1e-3, 2e-3)]
    assert slowdown_in([*turns, [[1e-3, 1.2e-3, 9e-3]]]) == pytest.approx((1.0, 1.2, 1.6))


def test_the_slowdown_is_that_of_few_and_many_rows_alike() -> None:
    """√(1.0 · 1.44) = 1.2."""
    assert slowdown_in([[[1.0, 1.0], [5.0, 7.2]]]) == pytest.approx((1.0, 1.2))


def test_more_processes_are_never_faster() -> None:
    assert slowdown_in([[[1.0, 0.9, 1.5, 1.4]]]) == pytest.approx((1.0, 1.0, 1.5, 1.5))
