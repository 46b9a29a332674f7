"""The path of a TCP connection: times on the link, losses, and what the receiver acknowledges, by hand."""

from random import Random

import pytest

from engine.worlds.simulated.tcp.path import Ack, LossyPath, PathConditions, Transmission
from tests.support.tcp_cases import HALF, Draws, LosesThese

CONDITIONS = PathConditions(segment_s=1.0, there_s=10.0, back_s=20.0, loss_frac=HALF, ack_loss_frac=0.0)


def carried(lossy_path, *segments_at):
    for serial, (segment, sent_s) in enumerate(segments_at, 1):
        lossy_path.carry(segment, Transmission(serial, sent_s))
    return lossy_path


def test_a_round_trip_is_a_segment_and_both_delays():
    assert CONDITIONS.round_trip_s == 31.0


def test_segments_wait_for_each_other_and_arrive_after_the_delay():
    path = carried(LossyPath(CONDITIONS, LosesThese(), 3, 3), (0, 0.0), (1, 0.0), (2, 5.0))
    # on the link from 0 to 1, 1 to 2, and 5 to 6
    assert [ack.received_s for ack in path.acks] == [31.0, 32.0, 36.0]
    assert (path.left_s, path.arrived_s, path.missing) == (6.0, 16.0, 0)


def test_the_queue_takes_a_segment_when_no_more_than_three_wait():
    path = LossyPath(CONDITIONS, LosesThese(), 9, 9)
    assert path.accepts_s < 0
    carried(path, *((segment, 0.0) for segment in range(5)))
    assert path.accepts_s == 2.0


def test_a_lost_segment_takes_its_time_on_the_link_but_is_neither_received_nor_acknowledged():
    path = carried(LossyPath(CONDITIONS, LosesThese(1), 3, 3), (0, 0.0), (1, 0.0), (2, 0.0))
    assert path.received == [True, False, True]
    assert path.missing == 1
    assert path.acks == type(path.acks)([Ack(31.0, 1), Ack(33.0, 2)])
    assert [segment for segment, _ in path.deliveries] == [0, 2]


def test_the_message_has_left_when_its_last_segment_was_sent_for_the_first_time():
    path = carried(LossyPath(CONDITIONS, LosesThese(1), 2, 2), (0, 0.0), (1, 0.0), (1, 50.0))
    assert (path.left_s, path.arrived_s) == (2.0, 61.0)


def test_segments_of_the_next_message_count_neither_as_missing_nor_as_the_end():
    path = carried(LossyPath(CONDITIONS, LosesThese(), 1, 3), (0, 0.0), (1, 0.0), (2, 0.0))
    assert (path.left_s, path.arrived_s, path.missing) == (1.0, 11.0, 0)
    assert path.received == [True, True, True]


def test_a_segment_that_arrives_twice_is_acknowledged_twice_and_counted_once():
    path = carried(LossyPath(CONDITIONS, LosesThese(), 2, 2), (0, 0.0), (0, 40.0))
    assert path.missing == 1
    assert path.arrived_s == 11.0
    assert [ack.deliveries for ack in path.acks] == [1, 2]


def test_a_lost_acknowledgement_is_covered_by_the_next():
    conditions = CONDITIONS._replace(loss_frac=0.0, ack_loss_frac=0.3)
    path = carried(LossyPath(conditions, Draws(0.9, 0.29, 0.3), 3, 3), (0, 0.0), (1, 0.0), (2, 0.0))
    assert [ack.deliveries for ack in path.acks] == [1, 3]


def test_as_many_segments_are_lost_as_stated():
    count, loss_frac = 20_000, 0.1
    conditions = CONDITIONS._replace(loss_frac=loss_frac)
    path = carried(LossyPath(conditions, Random(1), count, count), *((index, 0.0) for index in range(count)))
    # three standard deviations of a binomial distribution
    assert path.missing / count == pytest.approx(loss_frac, abs=3 * (loss_frac * 0.9 / count) ** 0.5)
