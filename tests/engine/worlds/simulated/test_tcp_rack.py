"""RACK: which segments count as lost when a later one was acknowledged, worked out by hand."""

import math

import pytest

from engine.worlds.simulated.tcp.path import Transmission
from engine.worlds.simulated.tcp.rack import TIMER_MIN_S, Rack


def sent_at(*times_s):
    """Segments 0, 1, … in flight, sent at these times."""
    return {segment: Transmission(segment + 1, time_s) for segment, time_s in enumerate(times_s)}


def after_ack_of(segment, in_flight, now_s):
    rack = Rack()
    rack.on_acked(in_flight.pop(segment), now_s)
    return rack


def test_without_an_acknowledgement_nothing_is_lost():
    assert Rack().find_lost(sent_at(0.0, 1.0), 0.0, 100.0) == []


def test_what_was_sent_before_the_acknowledged_segment_is_lost_and_what_was_sent_after_is_not():
    in_flight = sent_at(0.0, 1.0, 2.0, 3.0)
    rack = after_ack_of(2, in_flight, now_s=12.0)
    assert rack.find_lost(in_flight, 0.0, 12.0) == [0, 1]
    assert rack.timer_s == math.inf


def test_within_the_reordering_window_the_segment_may_still_come_and_a_timer_runs():
    # sent at 0 and at 1, the second acknowledged at 11: round trip 10; the first is late by 1, allowed are 4
    in_flight = sent_at(0.0, 1.0)
    rack = after_ack_of(1, in_flight, now_s=11.0)
    assert rack.find_lost(in_flight, 4.0, 11.0) == []
    assert rack.timer_s == 11.0 + (4.0 - 1.0) + TIMER_MIN_S


def test_a_segment_that_is_late_by_half_a_second_less_than_the_window_is_not_lost():
    in_flight = sent_at(0.0, 0.5)
    rack = after_ack_of(1, in_flight, now_s=10.5)  # lost would be what was sent before 0.5 - 0.9
    assert rack.find_lost(in_flight, 0.9, 10.5) == []
    assert rack.timer_s == pytest.approx(10.5 + 0.4 + 0.002), "Linux: two jiffies of a millisecond later"


def test_after_the_reordering_window_the_segment_is_lost():
    in_flight = sent_at(0.0, 1.0)
    rack = after_ack_of(1, in_flight, now_s=11.0)
    assert rack.find_lost(in_flight, 4.0, 14.0) == [0]


def test_when_the_timer_expires_all_that_was_sent_before_is_lost():
    in_flight = sent_at(0.0, 0.9, 1.0, 2.0)
    rack = after_ack_of(2, in_flight, now_s=11.0)
    assert rack.find_lost(in_flight, 4.0, 11.0) == []
    rack.on_timer()
    assert rack.timer_s == math.inf
    assert rack.find_lost(in_flight, 4.0, 11.5) == [0, 1]


def test_a_segment_that_was_sent_again_later_is_not_lost():
    rack = Rack()
    rack.on_acked(Transmission(5, 4.0), 14.0)
    assert rack.find_lost({0: Transmission(9, 10.0)}, 0.0, 14.0) == []


def test_the_newest_transmission_counts_whatever_the_order_of_acknowledgements():
    rack = Rack()
    rack.on_acked(Transmission(7, 6.0), 20.0)
    rack.on_acked(Transmission(3, 2.0), 21.0)
    assert (rack.newest, rack.rtt_s) == (Transmission(7, 6.0), 14.0)


def test_the_very_first_transmission_counts():
    rack = Rack()
    rack.on_acked(Transmission(1, 2.0), 12.0)
    assert (rack.newest, rack.rtt_s) == (Transmission(1, 2.0), 10.0)


def test_a_timer_that_runs_is_not_put_off_by_a_longer_round_trip():
    in_flight = sent_at(0.0, 1.0, 2.0)
    rack = after_ack_of(1, in_flight, now_s=11.0)
    rack.find_lost(in_flight, 4.0, 11.0)
    timer_s = rack.timer_s
    rack.on_acked(in_flight.pop(2), 13.5)
    assert rack.rtt_s == 11.5
    rack.find_lost(in_flight, 4.0, 13.5)
    assert rack.timer_s == timer_s


def test_the_timer_stops_when_nothing_is_in_doubt_any_more():
    in_flight = sent_at(0.0, 1.0)
    rack = after_ack_of(1, in_flight, now_s=11.0)
    rack.find_lost(in_flight, 4.0, 11.0)
    assert rack.find_lost({}, 4.0, 12.0) == []
    assert rack.timer_s == math.inf
