"""What messages that share a device's own link need at least, worked by hand: 1,000 bit/s."""

import pytest

from engine.domain.cluster import ClusterSpec
from engine.domain.network import PairMeasurement
from engine.worlds.common.own_links import OwnLink
from engine.worlds.common.paths import PathTimes


def through_s(*messages):
    """When each (peer, bits, start) is through."""
    link = OwnLink()
    return [link.enter(peer, bits, 1000.0, start_s) for peer, bits, start_s in messages]


def test_a_message_alone_takes_its_size_over_the_rate():
    assert through_s((1, 500.0, 2.0)) == [2.5]


def test_messages_to_several_peers_share_the_rate():
    assert through_s((1, 1000.0, 0.0), (2, 1000.0, 0.0), (3, 1000.0, 1.0)) == [1.0, 2.0, 3.0]


def test_a_small_message_does_not_wait_for_the_whole_of_a_large_one():
    assert through_s((1, 10_000.0, 0.0), (2, 100.0, 0.0)) == [10.0, 0.2]


def test_messages_to_one_peer_go_one_after_the_other():
    assert through_s((1, 1000.0, 0.0), (1, 1000.0, 0.0)) == [1.0, 2.0]


def test_what_is_through_shares_no_more():
    assert through_s((1, 1000.0, 0.0), (2, 500.0, 5.0)) == [1.0, 5.5]


def test_a_message_that_is_known_late_had_the_link_before_the_others():
    """From 3 s to 5 s it went alone, 1,000 of its bits are left, and 100 others share."""
    assert through_s((1, 100.0, 5.0), (2, 3000.0, 3.0)) == pytest.approx([5.1, 6.1])


def star():
    devices = [
        {"name": f"d{i}", "flop_per_s": 1e9, "memory_bytes": 1e9, "memory_byte_per_s": 1e9} for i in range(4)
    ]
    links = [{"a": f"d{i}", "b": "hub", "bit_per_s": 8000.0, "delay_s": 0.0} for i in range(4)]
    document = {
        "name": "star",
        "source": "d0",
        "devices": devices,
        "switches": [{"name": "hub"}],
        "links": links,
    }
    return ClusterSpec.model_validate(document)


def test_what_a_device_sends_to_two_others_shares_its_link_and_what_it_receives_does_not():
    """1,000 bytes are 8,000 bits: one second each."""
    paths = PathTimes(star(), 0)
    assert [paths.departs_s(dst, 1000, 0.0) for dst in (1, 2)] == [1.0, 2.0]
    assert [paths.arrives_s(src, 1000, 1.0) for src in (1, 2, 3)] == [1.0, 2.0, 3.0]
    paths.forget_messages()
    assert paths.departs_s(3, 1000, 0.0) == 1.0


def test_a_network_that_gives_less_than_is_drawn_is_as_slow_as_it_is_there():
    """The first pair has half of the drawn rate and a delay, the second as much as is drawn."""
    paths = PathTimes(star(), 0, given=[PairMeasurement(0, 1, 4000.0, 0.25, 0.0)])
    assert [paths.transfer_s(dst, 1000) for dst in (1, 2)] == [2.0, 1.0]
    assert [paths.delay_s(dst) for dst in (1, 2)] == [0.25, 0.0]
