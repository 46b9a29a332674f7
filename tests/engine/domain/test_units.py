"""Numbers for people: three digits, never in powers of ten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.units import human, human_s, transfer_s


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


def test_a_megabyte_takes_80_ms_at_100_mbit() -> None:
    assert transfer_s(1e6, 100e6) == pytest.approx(0.08)
