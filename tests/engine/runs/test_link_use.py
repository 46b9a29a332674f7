"""The live use of links, worked by hand: full frames of 1514 bytes carry 1448 bytes of payload."""

import pytest

from engine.domain.network import LinkState
from engine.runs.link_use import LinkMeter


def state(sent_bytes, link=0, forward=True, probe_ends=0):
    return LinkState(link, forward, sent_bytes, 1e8, 0.9e8, up=True, probe_ends=probe_ends)


def test_ten_full_frames_in_a_second_are_their_payload_in_bits():
    meter = LinkMeter()
    meter.sample(1.0, [state(1000)])
    (found,) = meter.sample(2.0, [state(1000 + 15140)])
    assert found.bit_per_s == pytest.approx(10 * 1448 * 8)
    (found,) = meter.sample(4.0, [state(1000 + 2 * 15140)])
    assert found.bit_per_s == pytest.approx(5 * 1448 * 8)  # as many in twice the time


def test_the_first_sample_has_no_rate():
    (found,) = LinkMeter().sample(3.0, [state(10**9)])
    assert found.bit_per_s == 0.0


def test_two_samples_at_the_same_time_give_no_rate():
    meter = LinkMeter()
    meter.sample(1.0, [state(0)])
    (found,) = meter.sample(1.0, [state(5000)])
    assert found.bit_per_s == 0.0


def test_directions_and_links_are_counted_apart():
    meter = LinkMeter()
    meter.sample(0.0, [state(0), state(0, forward=False), state(0, link=1)])
    found = meter.sample(1.0, [state(1514), state(3028, forward=False), state(0, link=1)])
    assert [(s.link, s.forward) for s in found] == [(0, True), (0, False), (1, True)]
    assert [s.bit_per_s for s in found] == pytest.approx([1448 * 8, 2 * 1448 * 8, 0.0])


def test_what_was_asked_for_and_measured_is_passed_on():
    (found,) = LinkMeter().sample(0.0, [state(0)])
    assert (found.set_bit_per_s, found.measured_bit_per_s, found.up) == (1e8, 0.9e8, True)


def test_bytes_of_a_measurement_are_no_use_of_the_link():
    meter = LinkMeter()
    frames = 1514
    meter.sample(0.0, [state(0)])
    meter.sample(1.0, [state(10 * frames)])
    used = []
    # begun; still going on; ended since the last sample; then ten frames of the run in a second
    for now_s, sent, ends in [(2.0, 500, 1), (3.0, 900, 1), (4.0, 1000, 2), (5.0, 1010, 2)]:
        (found,) = meter.sample(now_s, [state(sent * frames, probe_ends=ends)])
        used.append(found.bit_per_s)
    assert used == pytest.approx([10 * 1448 * 8] * 4)


def test_a_measurement_between_two_samples_is_left_out_too():
    meter = LinkMeter()
    meter.sample(0.0, [state(0)])
    (found,) = meter.sample(1.0, [state(10**6, probe_ends=2)])
    assert found.bit_per_s == 0.0
