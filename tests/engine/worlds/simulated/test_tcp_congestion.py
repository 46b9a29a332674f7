"""TCP's congestion window: slow start, congestion avoidance and the reduction after a loss, by hand."""

import math

import pytest

from engine.worlds.simulated.tcp.congestion import INITIAL_CWND, CongestionWindow


def window(cwnd, ssthresh=math.inf):
    congestion = CongestionWindow()
    congestion.cwnd, congestion.ssthresh = float(cwnd), float(ssthresh)
    return congestion


def test_a_connection_starts_in_slow_start_with_a_warm_window():
    congestion = CongestionWindow()
    assert (congestion.cwnd, congestion.ssthresh) == (INITIAL_CWND, math.inf) == (20.0, math.inf)
    assert (congestion.prr_delivered, congestion.prr_out) == (0, 0)


def test_there_is_room_for_whole_segments_only():
    congestion = window(3.9)
    assert congestion.has_room(2)
    assert not congestion.has_room(3)


def test_slow_start_adds_a_segment_for_each_that_is_acknowledged():
    congestion = window(10)
    for _ in range(10):
        congestion.grow(1, limited=True, max_in_flight=10)
    assert congestion.cwnd == 20


def test_slow_start_stops_at_ssthresh():
    congestion = window(10, ssthresh=12)
    congestion.grow(5, limited=True, max_in_flight=10)
    assert congestion.cwnd == 12


def test_congestion_avoidance_adds_a_segment_per_window():
    congestion = window(8, ssthresh=8)
    for _ in range(8):
        congestion.grow(1, limited=True, max_in_flight=8)
    assert congestion.cwnd == 9


def test_a_window_that_was_not_full_does_not_grow():
    slow_start, avoidance = window(8), window(8, ssthresh=8)
    for congestion in (slow_start, avoidance):
        congestion.grow(1, limited=False, max_in_flight=4)
    assert (slow_start.cwnd, avoidance.cwnd) == (8, 8)


def test_slow_start_grows_an_unfilled_window_up_to_twice_what_was_in_flight():
    congestion = window(8)
    for _ in range(9):
        congestion.grow(1, limited=False, max_in_flight=5)
    assert congestion.cwnd == 10


@pytest.mark.parametrize(("cwnd", "ssthresh"), [(20, 10), (7, 3), (3, 2), (1, 2)])
def test_a_loss_sets_ssthresh_to_half_the_window_but_at_least_two(cwnd, ssthresh):
    congestion = window(cwnd)
    congestion.halve_ssthresh()
    assert congestion.ssthresh == ssthresh


def test_proportional_rate_reduction_sends_one_segment_for_two_while_too_many_are_in_flight():
    # window 10 → ssthresh 5; per ACK: sent so far must be ceil(delivered · 5 / 10)
    congestion = window(10)
    congestion.enter_fast_recovery()
    windows = []
    for in_flight in (8, 8, 7, 7):
        congestion.reduce(1, in_flight, progress=False)
        windows.append(congestion.cwnd)
        congestion.prr_out += int(congestion.cwnd) - in_flight
    assert windows == [
        9,
        8,
        8,
        7,
    ]  # ceil(0.5) = 1 → one more; ceil(1.0) = 1 → none; ceil(1.5) = 2 → one; none
    assert congestion.prr_out == 2


def test_below_ssthresh_the_reduction_sends_what_arrived_and_one_more_on_progress():
    congestion = window(20)
    congestion.enter_fast_recovery()  # ssthresh 10
    congestion.prr_delivered, congestion.prr_out = 3, 2
    congestion.reduce(1, in_flight=4, progress=False)  # 4 delivered, 2 sent: two may go
    assert congestion.cwnd == 6
    congestion.prr_out += 2
    congestion.reduce(1, in_flight=4, progress=True)  # one delivered, and one for the progress
    assert congestion.cwnd == 6
    congestion.prr_out += 2
    congestion.reduce(8, in_flight=4, progress=True)  # nine would be due, but not beyond ssthresh
    assert congestion.cwnd == 10


def test_with_as_many_in_flight_as_ssthresh_the_reduction_sends_nothing():
    congestion = window(10)
    congestion.enter_fast_recovery()  # ssthresh 5
    congestion.prr_delivered, congestion.prr_out = 3, 1
    congestion.reduce(1, in_flight=5, progress=True)
    assert congestion.cwnd == 5


def test_the_first_retransmission_goes_out_in_any_case():
    congestion = window(10)
    congestion.enter_fast_recovery()
    congestion.reduce(0, in_flight=9, progress=False)
    assert congestion.cwnd == 10


def test_a_recovery_ends_with_the_window_at_ssthresh():
    congestion = window(16)
    congestion.enter_fast_recovery()
    congestion.leave_fast_recovery()
    assert congestion.cwnd == congestion.ssthresh == 8


def test_a_time_out_leaves_one_segment_and_halves_ssthresh_once():
    congestion = window(16)
    congestion.on_timeout(first_loss=True)
    assert (congestion.cwnd, congestion.ssthresh) == (1, 8)
    congestion.on_timeout(first_loss=False)
    assert (congestion.cwnd, congestion.ssthresh) == (1, 8)


def test_a_loss_that_a_probe_repaired_halves_the_window_at_the_next_new_ack_only():
    congestion = window(16)
    congestion.on_new_ack()
    assert congestion.cwnd == 16
    congestion.on_probe_repaired()
    congestion.on_new_ack()
    congestion.on_new_ack()
    assert (congestion.cwnd, congestion.ssthresh) == (8, 8)
