"""Links that let their first bytes through at once, worked out by hand.

At a payload of 8 Mbit/s (1 byte per µs) frames have 8.364641 Mbit/s. The bucket holds a frame of 1,514 bytes
and 120 µs, 125.47 bytes: 1,639 in whole bytes, of which 1,448 / 1,514 are payload.
"""

from itertools import permutations

import pytest

from engine.domain.scenario import LinkDown, LinkUp
from engine.domain.token_bucket import burst_payload_bytes
from engine.worlds.simulated.buckets import TokenBuckets
from tests.support.message_programs import RATE, star
from tests.support.network_scene import Scene

A, B, C = 0, 1, 2
BUCKET_BYTES = 1639 * 1448 / 1514
US = 1e-6


def scene(**more):
    made = Scene(star(**more))
    made.network.buckets = TokenBuckets(made.network.shared)
    return made


def test_a_full_bucket_holds_a_frame_and_some_time():
    assert RATE == 8e6
    assert burst_payload_bytes(RATE) == pytest.approx(BUCKET_BYTES)
    assert burst_payload_bytes(1e9 * 1448 / 1514) == pytest.approx((19 * 1514 + 15000) * 1448 / 1514)


def test_a_message_of_one_segment_passes_an_idle_link_at_once():
    assert scene().send("m", A, B, 1448).run().arrived == {"m": 0.0}


def test_of_a_longer_message_what_the_bucket_does_not_hold_takes_its_time():
    arrived = scene().send("m", A, B, 10_000).run().arrived
    assert arrived["m"] == pytest.approx((10_000 - BUCKET_BYTES) * US)


def test_a_message_right_after_another_finds_the_bucket_empty():
    made = scene().send("first", A, B, 10_000).send("second", A, B, 1000)
    arrived = made.run().arrived
    assert arrived["second"] == pytest.approx((11_000 - BUCKET_BYTES) * US)


def test_messages_that_fit_together_pass_together():
    made = scene().send("first", A, B, 700).send("second", A, C, 700)
    assert made.run().arrived == {"first": 0.0, "second": 0.0}


def test_a_bucket_fills_at_the_rate_of_its_link_up_to_its_size():
    made = scene().send("first", A, B, 10_000)
    left_s = (10_000 - BUCKET_BYTES) * US
    made.send("soon", A, B, 1000, at_s=left_s + 400 * US).send("late", A, B, 2000, at_s=1.0)
    arrived = made.run().arrived
    assert arrived["soon"] == pytest.approx(left_s + 1000 * US)
    assert arrived["late"] == pytest.approx(1.0 + (2000 - BUCKET_BYTES) * US)


def test_of_two_senders_to_one_receiver_only_one_finds_the_receivers_bucket_full():
    made = scene().send("first", A, C, 1500).send("second", B, C, 1500)
    arrived = made.run().arrived
    assert arrived["first"] == 0.0
    assert arrived["second"] == pytest.approx((3000 - BUCKET_BYTES) * US)


def test_where_all_send_to_all_every_link_has_its_bucket_once():
    # four ways from device to device share no link, and nobody finds more than these eight buckets full
    made = scene(names="abcd")
    routes = [made.network._route(*pair) for pair in permutations(range(4), 2)]
    taken = [made.network.buckets.take(0.0, route, 2000) for route in routes]
    assert sorted(taken) == [0.0] * 8 + [pytest.approx(BUCKET_BYTES)] * 4


def test_a_bucket_does_not_fill_while_a_message_takes_what_comes_in():
    made = scene().send("first", A, B, 10_000).send("second", A, B, 1000, at_s=5e-3)
    assert made.run().arrived["second"] == pytest.approx((11_000 - BUCKET_BYTES) * US)


def test_a_message_waits_while_its_link_is_down_and_then_finds_a_full_bucket():
    made = scene()
    link = made.network.cluster.links[0].name
    made.change(LinkDown(at_s=0.5, link=link))
    made.change(LinkUp(at_s=2.0, link=link))
    assert made.send("m", A, B, 1448, at_s=1.0).run().arrived == {"m": 2.0}


def test_ideal_links_have_no_buckets():
    assert Scene(star()).send("m", A, B, 1000).run().arrived == {"m": pytest.approx(1000 * US)}


def test_a_message_that_passes_at_once_over_a_link_that_loses_packets_arrives_after_its_delay_or_later():
    cluster = star(delay_s=0.01)
    links = [link.model_copy(update={"loss_frac": 0.3}) for link in cluster.links]
    made = Scene(cluster.model_copy(update={"links": tuple(links)}))
    made.network.buckets = TokenBuckets(made.network.shared)
    for number in range(20):
        made.send(f"m{number}", A, B, 1000, at_s=float(number))
    arrived = made.run().arrived
    late = [arrived[f"m{number}"] - number for number in range(20)]
    assert min(late) == pytest.approx(0.02)
    assert max(late) > 0.1
