"""TCP's round-trip estimate and time-out, by the formulas of RFC 6298 and by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.worlds.simulated.tcp.round_trip import RTO_MAX_S, RTO_MIN_S, RoundTripTime


def test_before_the_first_measurement_nothing_is_known():
    assert (RoundTripTime().srtt_s, RoundTripTime().rttvar_s) == (0.0, 0.0)


def test_the_first_measurement_is_the_smoothed_one_and_half_of_it_the_variation():
    round_trip = RoundTripTime()
    round_trip.start(0.4)
    assert (round_trip.srtt_s, round_trip.rttvar_s) == (0.4, 0.2)
    assert round_trip.timeout_s == pytest.approx(0.4 + 4 * 0.2)


def test_later_measurements_by_hand():
    round_trip = RoundTripTime()
    round_trip.start(0.4)
    round_trip.measure(0.8)  # RTTVAR = 3/4 · 0.2 + 1/4 · |0.4 - 0.8|, SRTT = 7/8 · 0.4 + 1/8 · 0.8
    assert round_trip.rttvar_s == pytest.approx(0.25)
    assert round_trip.srtt_s == pytest.approx(0.45)
    assert round_trip.timeout_s == pytest.approx(0.45 + 4 * 0.25)
    round_trip.measure(0.45)  # as expected: the variation shrinks to 3/4
    assert round_trip.rttvar_s == pytest.approx(0.1875)
    assert round_trip.srtt_s == pytest.approx(0.45)


def test_a_start_after_the_first_changes_nothing():
    round_trip = RoundTripTime()
    round_trip.start(0.4)
    round_trip.start(9.0)
    assert (round_trip.srtt_s, round_trip.rttvar_s) == (0.4, 0.2)


def test_a_small_variation_leaves_the_least_time_out_above_the_round_trip():
    round_trip = RoundTripTime()
    round_trip.start(0.01)
    assert round_trip.timeout_s == pytest.approx(0.01 + RTO_MIN_S)


def test_the_limits_of_the_time_out_are_those_of_linux():
    assert (RTO_MIN_S, RTO_MAX_S) == (0.2, 120.0)


@given(st.floats(0.001, 10.0), st.lists(st.floats(0.001, 10.0), max_size=20))
def test_any_measurements_give_what_the_formulas_of_the_rfc_give(first_s, later_s):
    srtt_s, rttvar_s = first_s, first_s / 2
    for sample_s in later_s:
        rttvar_s = 3 / 4 * rttvar_s + 1 / 4 * abs(srtt_s - sample_s)
        srtt_s = 7 / 8 * srtt_s + 1 / 8 * sample_s
    round_trip = RoundTripTime()
    round_trip.start(first_s)
    for sample_s in later_s:
        round_trip.measure(sample_s)
    assert round_trip.srtt_s == pytest.approx(srtt_s)
    assert round_trip.rttvar_s == pytest.approx(rttvar_s)
