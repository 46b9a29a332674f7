"""Numbers for people: three digits, never in powers of ten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.units import between, human, human_apart, human_j, human_s, needs_and_has, transfer_s


@pytest.mark.parametrize(
    ("value", "text"),
    [(5e8, "500 MB"), (999.7e6, "1 GB"), (999.4e6, "999 MB"), (0, "0 B"), (12, "12 B"), (-2e3, "-2 kB")],
)
def test_sizes_have_decimal_prefixes(value: float, text: str) -> None:
    assert human(value, "B") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.23e-3, "1.23 ms"), (0.99999, "1 s"), (9.9996e-4, "1 ms"), (2e-6, "2 µs"), (4321.4, "4321 s")],
)
def test_times_have_the_unit_that_fits(seconds: float, text: str) -> None:
    assert human_s(seconds) == text


@given(st.floats(min_value=1e-6, max_value=1e14))
def test_no_size_and_no_time_is_written_with_an_exponent(value: float) -> None:
    assert "e+" not in human(value, "B")
    assert "e+" not in human_s(value)


@pytest.mark.parametrize(
    ("need", "have", "text"),
    [
        (64_000.1e6, 64_000e6, "needs 64.0001 GB and has 64 GB"),
        (100_049, 100_000, "needs 100.05 kB and has 100 kB"),
        (2e9, 1e6, "needs 2 GB and has 1 MB"),
        (1000, 999.9, "needs 1 kB and has 999.9 B"),
        (5, 5, "needs 5 B and has 5 B"),
    ],
)
def test_what_is_needed_and_what_is_there_have_digits_that_tell_them_apart(need, have, text) -> None:
    assert needs_and_has(need, have) == text


def test_what_it_is_for_stands_between_the_two() -> None:
    assert needs_and_has(2e6, 1e6, " for its weights") == "needs 2 MB for its weights and has 1 MB"


@given(st.integers(1, 10**13), st.integers(1, 10**6))
def test_a_byte_too_much_is_seen(have: int, more: int) -> None:
    need_text, have_text = human_apart(have + more, have, "B")
    assert need_text != have_text
    assert "e+" not in need_text + have_text


def test_a_megabyte_takes_80_ms_at_100_mbit() -> None:
    assert transfer_s(1e6, 100e6) == pytest.approx(0.08)


@pytest.mark.parametrize(
    ("joules", "text"),
    [(0, "0 J"), (1380, "1.38 kJ"), (0.0127, "12.7 mJ"), (0.99999e-3, "1 mJ"), (6.17e-7, "617 nJ")],
)
def test_energies_have_small_units_too(joules: float, text: str) -> None:
    assert human_j(joules) == text


def test_a_range_whose_ends_read_the_same_is_one_number() -> None:
    assert between(human_s(0.002), human_s(0.003)) == "2 ms to 3 ms"
    assert between(f"{0.63999:.2g}", f"{0.64001:.2g}") == "0.64"
