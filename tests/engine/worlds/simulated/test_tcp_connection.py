"""A TCP connection over many messages and losses: bounds, published formulas and repeatability."""

import math
from random import Random

import pytest

from engine.worlds.simulated.tcp.connection import TcpConnection
from engine.worlds.simulated.tcp.round_trip import RTO_MIN_S
from tests.support.tcp_cases import SEGMENT_S, delivered, path


def test_a_loss_halves_the_window_and_a_time_out_leaves_one_segment():
    assert delivered(20, 2, cwnd=16.0)[0].congestion.ssthresh == 8
    timed_out, _ = delivered(3, 2, cwnd=16.0)
    assert timed_out.congestion.ssthresh == 8
    assert timed_out.congestion.cwnd < 8


def test_no_message_is_faster_than_without_losses_and_none_vanishes():
    random = Random(5)
    for _ in range(300):
        segments, delay_s = random.randint(1, 80), random.choice((0.0, 0.005, 0.1))
        lossy = path(delay_s, random.choice((0.01, 0.1, 0.5)), random.choice((0.0, 0.1)))
        tcp = TcpConnection()
        tcp.congestion.cwnd = float(random.randint(1, 40))
        result = tcp.deliver(segments, lossy, random, random.random() < 0.5)
        assert result.left_s >= segments * SEGMENT_S - 1e-9
        assert result.arrived_s >= segments * SEGMENT_S + delay_s - 1e-9
        assert math.isfinite(result.arrived_s)
        assert tcp.congestion.cwnd >= 1


@pytest.mark.parametrize("loss_frac", [0.002, 0.005, 0.01])
def test_long_transfers_keep_to_the_rate_of_mathis(loss_frac):
    # Mathis et al. 1997, equation 3: sqrt(3 / (2 p)) segments per round trip if each is acknowledged
    segment_s, delay_s = 1e-6, 0.05
    tcp = TcpConnection()
    tcp.deliver(2_000, path(delay_s, loss_frac, segment_s=segment_s), Random(1))  # past the first slow start
    segments = round(150 / loss_frac)
    result = tcp.deliver(segments, path(delay_s, loss_frac, segment_s=segment_s), Random(2))
    window = segments / result.arrived_s * 2 * delay_s
    assert window == pytest.approx(math.sqrt(1.5 / loss_frac), rel=0.15)


def test_single_segments_wait_as_long_as_their_expected_number_of_time_outs():
    # time-outs of 1, 2, 4, … × 200 ms have probabilities p, p², p³, …: in all p / (1 - 2 p) × 200 ms
    loss_frac, count = 0.1, 10_000
    total_s = 0.0
    for seed in range(count):
        total_s += TcpConnection().deliver(1, path(0.0, loss_frac), Random(seed)).arrived_s - SEGMENT_S
    round_trip_s = SEGMENT_S
    expected_s = loss_frac / (1 - 2 * loss_frac) * (RTO_MIN_S + round_trip_s)
    assert total_s / count == pytest.approx(expected_s, rel=0.1)


def test_lost_acknowledgements_cost_little_because_the_next_ones_tell_the_same():
    result = TcpConnection().deliver(400, path(0.01, 0.0, 0.2), Random(3))
    ideal_s = TcpConnection().deliver(400, path(0.01), Random(3)).arrived_s
    assert ideal_s <= result.arrived_s < 1.1 * ideal_s


def test_the_same_seed_loses_the_same_segments_and_another_seed_others():
    def arrivals(seed):
        tcp, random = TcpConnection(), Random(seed)
        return [tcp.deliver(30, path(0.01, 0.05), random).arrived_s for _ in range(20)]

    assert arrivals(1) == arrivals(1)
    assert arrivals(1) != arrivals(2)
