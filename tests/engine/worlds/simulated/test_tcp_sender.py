"""When TCP sends what again: fast retransmit, probes and time-outs, worked out to the microsecond.

Segments take 1 ms on the link. The device's queue takes three at once, so segment n leaves the sender at
max(0, n - 3 + 1) ms and has crossed the link at n + 1 ms. Its ACK is back two delays later.
"""

import pytest

from engine.worlds.simulated.tcp.congestion import CongestionWindow
from engine.worlds.simulated.tcp.connection import TcpConnection
from engine.worlds.simulated.tcp.path import LossyPath
from engine.worlds.simulated.tcp.rack import TIMER_MIN_S
from engine.worlds.simulated.tcp.round_trip import RoundTripTime
from engine.worlds.simulated.tcp.sender import TcpSender
from tests.support.tcp_cases import HALF, SEGMENT_S, Draws, LosesThese, delivered, path

MS = 0.001


def arrived_ms(segments, *lost, **more):
    return delivered(segments, *lost, **more)[1].arrived_s / MS


def test_three_later_acks_show_a_loss_at_once():
    # segment 2 is lost; the ACK of segment 5 is back at 6 + 100; one more segment and delay
    assert arrived_ms(10, 2, delay_s=0.05) == pytest.approx(106 + 1 + 50)


def test_with_fewer_later_acks_the_sender_waits_for_the_reordering_window():
    # segments 3 and 4 come after the lost one. The ACK of 3 is back at 104 and was sent at 0, as 2 was: a
    # quarter of the round trip of 101 later, and the least time of a timer, 2 is sent again
    expected_ms = 104 + 101 / 4 + TIMER_MIN_S / MS + 1 + 50
    assert arrived_ms(5, 2, delay_s=0.05) == pytest.approx(expected_ms)


def test_segments_that_are_lost_together_are_sent_again_one_after_the_other():
    # 2 and 4 are lost; the third ACK beyond the gap is that of 6, back at 107: both are known to be lost.
    # PRR lets the first go at once. 14 segments are in flight or not sent yet, so the second follows with
    # the next ACK, 1 ms later, when the link is free again
    assert arrived_ms(14, 2, 4, delay_s=0.05) == pytest.approx(107 + 2 + 50, abs=1.0)


def test_each_lost_segment_is_sent_again_once():
    round_trip = RoundTripTime()
    round_trip.start(0.101)
    lossy = LossyPath(path(0.05, HALF), LosesThese(2, 4), 14, 14)
    sender = TcpSender(CongestionWindow(), round_trip, lossy)
    sender.run()
    assert sender.transmissions == 14 + 2


def test_proportional_rate_reduction_paces_what_is_sent_again():
    # 2 to 5 of a window of 20 are lost. The ACK of 8, back at 109, shows it: 20 - 5 - 4 = 11 are in flight,
    # and ssthresh is 10. It lets 2 go; those of 9 and 10 let none go, until 9 are in flight; those of 11, 12
    # and 13, at 112, 113 and 114, let one go each
    tcp = TcpConnection()
    tcp.congestion.ssthresh = tcp.congestion.cwnd = 20.0
    delivery = tcp.deliver(20, path(0.05, HALF), LosesThese(2, 3, 4, 5))
    assert delivery.arrived_s / MS == pytest.approx(114 + 1 + 50)


def test_in_a_recovery_the_time_out_runs_from_the_first_segment_that_is_missing():
    # 2 and 4 are sent again at 107 and after, and lost again (transmissions 14 and 15). ACKs of the others
    # took 101, 102 and then 104 each. The time-out sends 2, and its ACK 4
    srtt_ms = 101.0
    for sample_ms in (101, 102, *[104] * 10):
        srtt_ms += (sample_ms - srtt_ms) / 8
    timeout_ms = 107 + srtt_ms + 200
    assert arrived_ms(14, 2, 4, 14, 15, delay_s=0.05) == pytest.approx(timeout_ms + 101 + 51)


def test_a_tail_that_is_lost_is_found_by_a_probe_after_two_round_trips():
    # 8 and 9 are lost. ACKs of 0 to 7 are back at 21 to 28 ms; they left at 0, 0, 0, 0, 1, 2, 3, 4
    srtt_ms = 21.0
    for sample_ms in (21, 22, 23, 24, 24, 24, 24, 24):
        srtt_ms += (sample_ms - srtt_ms) / 8
    probe_ms = 28 + 2 * srtt_ms + TIMER_MIN_S / MS
    # the probe is segment 9; its ACK is back 21 ms later and shows that 8 is lost, which then takes 11
    assert arrived_ms(10, 8, 9, delay_s=0.01) == pytest.approx(probe_ms + 21 + 11)


def test_a_probe_that_repairs_the_loss_halves_the_window_when_something_later_is_acknowledged():
    # of two segments the first one's ACK is lost, and the second itself: the probe sends that again
    first_loss, no_more = 1 - 2**-1.5, 1 - 2**-50
    tcp = TcpConnection()
    tcp.congestion.cwnd = 16.0
    delivery = tcp.deliver(2, path(0.01, HALF, 0.1), Draws(first_loss, 0.0, no_more, 0.9))
    assert delivery.arrived_s / MS == pytest.approx(2 * 21 + TIMER_MIN_S / MS + 1 + 10)
    assert tcp.congestion.cwnd == 16
    tcp.deliver(1, path(0.01), Draws())
    assert tcp.congestion.cwnd == tcp.congestion.ssthresh == 8


def test_a_single_segment_is_not_probed_but_waits_for_the_time_out():
    # the round trip is 101: RTTVAR 50.5, and 4 times that is more than 200
    assert arrived_ms(1, 0, delay_s=0.05) == pytest.approx(101 + 4 * 50.5 + 1 + 50)


def test_every_further_time_out_waits_twice_as_long():
    # the first after 1 + 200 ms, then 402, 804
    assert arrived_ms(1, 0) == pytest.approx(201 + 1)
    assert arrived_ms(1, 0, 1) == pytest.approx(201 + 402 + 1)
    assert arrived_ms(1, 0, 1, 2) == pytest.approx(201 + 402 + 804 + 1)


def test_no_time_out_is_longer_than_two_minutes():
    # 201 ms doubled nine times is 102.9 s; the eleventh time-out would be 205.8 s
    doubled_ms = sum(201 * 2**power for power in range(10))
    assert arrived_ms(1, *range(11)) == pytest.approx(doubled_ms + 120_000 + 1)
    assert arrived_ms(1, *range(12)) == pytest.approx(doubled_ms + 2 * 120_000 + 1)


def test_an_acknowledgement_ends_the_doubling():
    # a window of one: segment 0 is lost and sent again at 201; its ACK is back at 202, when 1 goes and is
    # lost. Its time-out is not a doubled one
    assert arrived_ms(2, 0, 2, cwnd=1.0) == pytest.approx(202 + 201 + 1)


def test_after_a_time_out_all_that_is_unacknowledged_is_sent_again():
    # all three and the probe (segment 2 again) are lost: after the time-out 0 goes alone, its ACK lets two go
    tcp, delivery = delivered(3, 0, 1, 2, 3)
    probe_ms = 2 * 1 + TIMER_MIN_S / MS  # nothing was acknowledged since 0
    timeout_ms = probe_ms + 201
    assert delivery.arrived_s / MS == pytest.approx(timeout_ms + 1 + 2)
    assert tcp.congestion.ssthresh == 10


def test_a_retransmission_that_is_lost_too_is_reported():
    assert not delivered(10, 2, delay_s=0.05)[1].retransmission_was_lost
    assert delivered(10, 2, 10, delay_s=0.05)[1].retransmission_was_lost


def test_the_window_limits_what_is_in_flight():
    # a window of 2: segments 0 and 1 go at 0; their ACKs at 101 and 102 make it 4, and so on
    # round 2: 2, 3 at 101, 4, 5 at 102 (on the link until 105); round 3: the rest at 202
    assert arrived_ms(8, delay_s=0.05, cwnd=2.0) == pytest.approx(202 + 2 + 50)


@pytest.mark.parametrize(("segments", "cwnd"), [(4, 5), (3, 4)])
def test_a_window_grows_by_one_after_a_round_trip_in_which_it_was_full(segments, cwnd):
    tcp = TcpConnection()
    tcp.congestion.cwnd = tcp.congestion.ssthresh = 4.0
    tcp.deliver(segments, path(0.05), Draws())
    assert tcp.congestion.cwnd == cwnd


def test_a_message_behind_shows_a_loss_as_more_segments_of_the_same_message_would():
    # the last of 5 segments is lost; the third segment of the next message shows it
    assert arrived_ms(5, 4, delay_s=0.05, followed=True) == pytest.approx(8 + 100 + 1 + 50)


def test_the_time_out_learns_from_round_trips_that_vary():
    steady, varying = TcpConnection(), TcpConnection()
    for turn in range(60):
        steady.deliver(1, path(0.2), Draws())
        varying.deliver(1, path(0.25 if turn % 2 else 0.15), Draws())
    # round trips of 301 and 501 ms: SRTT ends at 401 + a, where a = 7/8 (-a) + 100/8, so a = 100 / 15;
    # every measurement differs from the SRTT before it by 100 + a, and so does RTTVAR
    assert steady.round_trip.timeout_s == pytest.approx(0.401 + 0.2)
    assert varying.round_trip.timeout_s == pytest.approx(0.401 + 0.1 / 15 + 4 * (0.1 + 0.1 / 15), rel=0.001)


def test_an_undisturbed_message_takes_its_segments_and_one_delay():
    delivery = delivered(10, delay_s=0.05)[1]
    assert delivery.left_s == pytest.approx(10 * SEGMENT_S)
    assert delivery.arrived_s == pytest.approx(10 * SEGMENT_S + 0.05)
