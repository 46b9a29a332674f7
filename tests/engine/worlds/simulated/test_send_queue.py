"""Messages of one device to several, worked by hand: links of 8 Mbit/s carry a byte in a microsecond.

A segment is 1,448 bytes. The first message on an idle link has ten of them ahead of the others.
"""

import pytest

from engine.domain.scenario import LinkDown, SetRate
from engine.worlds.simulated.kernel import FAULT
from tests.support.message_programs import RATE, star
from tests.support.network_scene import Scene

A, B, C, D = 0, 1, 2, 3
MICROSECOND = 1e-6


def scene_of(*messages):
    """A scene with a star of four, and messages (name, dst, bytes) that A sends at once."""
    scene = Scene(star("abcd"))
    for name, dst, size_bytes in messages:
        scene.send(name, A, dst, size_bytes)
    return scene


def arrivals_us(scene):
    return {name: pytest.approx(at_s / MICROSECOND) for name, at_s in scene.run().arrived.items()}


def test_messages_of_less_than_a_segment_leave_one_after_the_other():
    scene = scene_of(("b", B, 700), ("c", C, 700), ("d", D, 700))
    assert arrivals_us(scene) == {"b": 700, "c": 1400, "d": 2100}


def test_messages_of_two_segments_leave_one_after_the_other():
    scene = scene_of(("b", B, 2000), ("c", C, 2000), ("d", D, 2000))
    assert arrivals_us(scene) == {"b": 2000, "c": 4000, "d": 6000}


def test_the_first_of_longer_messages_goes_ahead_and_the_others_take_turns():
    scene = scene_of(("b", B, 4344), ("c", C, 4344), ("d", D, 4344))
    assert arrivals_us(scene) == {"b": 4344, "c": 3 * 4344, "d": 3 * 4344}


def test_a_long_message_has_ten_segments_ahead_and_shares_after_them():
    # 30,000 bytes each: 14,480 alone, the other 15,520 at half the rate
    scene = scene_of(("b", B, 30_000), ("c", C, 30_000))
    assert arrivals_us(scene) == {"b": 14_480 + 2 * 15_520, "c": 60_000}


def test_a_long_message_that_another_link_holds_up_shares_from_the_start():
    # c's message has half of b's link: so a's link could not send ten segments of its first message at once
    scene = Scene(star("abcd"))
    scene.send("cb", C, B, 30_000)
    scene.send("ab", A, B, 30_000, at_s=MICROSECOND)
    scene.send("ad", A, D, 30_000, at_s=MICROSECOND)
    assert arrivals_us(scene) == {"cb": 59_999, "ab": 60_001, "ad": 60_001}


def test_messages_of_more_than_64_kib_share_from_the_start():
    scene = scene_of(("b", B, 70_000), ("c", C, 70_000))
    assert arrivals_us(scene) == {"b": 140_000, "c": 140_000}


def test_a_short_message_waits_for_ten_segments_of_a_long_one():
    # 14,480 bytes of b go alone, then 700 of each
    scene = scene_of(("b", B, 30_000), ("c", C, 700))
    assert arrivals_us(scene) == {"b": 30_700, "c": 14_480 + 1400}


def test_a_short_message_waits_for_two_segments_of_each_long_one_that_waits():
    # b until 2,000, two segments of c until 4,896; then d and the other 1,104 bytes of c share
    scene = scene_of(("b", B, 2000), ("c", C, 4000), ("d", D, 500))
    assert arrivals_us(scene) == {"b": 2000, "d": 4896 + 2 * 500, "c": 6500}


def test_a_long_message_waits_for_the_short_ones_before_it():
    scene = scene_of(("b", B, 100), ("c", C, 300), ("d", D, 5000))
    assert arrivals_us(scene) == {"b": 100, "c": 400, "d": 5400}


def test_the_rest_of_a_long_transfer_shares_with_a_short_message_at_once():
    # at 50 ms the queue of the first segments is long gone
    scene = scene_of(("b", B, 100_000))
    scene.send("c", A, C, 1000, at_s=0.05)
    assert arrivals_us(scene) == {"b": 101_000, "c": 52_000}


def test_on_a_busy_link_even_a_message_of_ten_segments_has_two_of_them_ahead_of_a_short_one():
    # c shares with b from 50,000 on; d waits for two segments of c until 52,896, then all three share:
    # d until 52,896 + 3 * 700 = 54,996; c had 1,448 and 700 bytes by then, so the other 2,852 take 5,704
    scene = scene_of(("b", B, 100_000))
    scene.send("c", A, C, 5000, at_s=50_000 * MICROSECOND)
    scene.send("d", A, D, 700, at_s=50_001 * MICROSECOND)
    assert arrivals_us(scene) == {"b": 105_700, "c": 60_700, "d": 54_996}


def test_a_message_on_a_link_that_is_idle_again_leaves_at_once():
    scene = scene_of(("b", B, 700))
    scene.send("c", A, C, 700, at_s=0.001)
    assert arrivals_us(scene) == {"b": 700, "c": 1700}


def test_devices_do_not_wait_for_each_other_and_share_the_receivers_link():
    scene = scene_of(("ab", B, 700))
    scene.send("cb", C, B, 700)
    assert arrivals_us(scene) == {"ab": 1400, "cb": 1400}


def test_a_link_that_is_slower_further_on_does_not_hold_up_the_next_message():
    # a's link has carried b at 1,200 us; b's own link takes 4 us a byte
    scene = Scene(star("abcd", rates={"b": RATE / 4}))
    scene.send("b", A, B, 1200)
    scene.send("c", A, C, 900)
    assert arrivals_us(scene) == {"b": 4800, "c": 1200 + 900}


def test_a_message_on_a_link_that_has_carried_the_one_before_leaves_at_once():
    scene = Scene(star("abcd", rates={"b": RATE / 4}))
    scene.send("b", A, B, 1200)
    scene.send("c", A, C, 900, at_s=2000 * MICROSECOND)
    assert arrivals_us(scene) == {"b": 4800, "c": 2900}


def test_messages_of_all_to_all_take_no_longer_than_their_links_need():
    # the link to d carries 3,000 bytes, and so does the link from it, one message after the other
    scene = Scene(star("abcd"))
    for src in (A, B, C):
        scene.send(f"{src}d", src, D, 1000)
    for dst in (A, B, C):
        scene.send(f"d{dst}", D, dst, 1000)
    arrived = arrivals_us(scene)
    assert (arrived["0d"], arrived["d0"], arrived["d2"]) == (3000, 1000, 3000)


def test_after_a_change_of_a_link_nothing_waits_in_the_queue():
    # at 500 us b has 200 bytes left, and c joins it: 400 us for those, 500 for the rest of c
    scene = scene_of(("b", B, 700), ("c", C, 700))
    scene.change(SetRate(at_s=500 * MICROSECOND, link="d--s1", bit_per_s=RATE / 2))
    assert arrivals_us(scene) == {"b": 900, "c": 1400}


def test_a_message_to_a_device_out_of_reach_does_not_hold_up_the_others():
    scene = scene_of()
    scene.change(LinkDown(at_s=0.0, link="b--s1"))
    scene.send("b", A, B, 700, at_s=MICROSECOND)
    scene.send("c", A, C, 700, at_s=MICROSECOND)
    assert arrivals_us(scene) == {"c": 1 + 700 + 700}


def test_a_message_that_is_dropped_while_it_waits_never_enters_the_links():
    scene = scene_of(("b", B, 700), ("c", C, 700))
    scene.kernel.schedule(500 * MICROSECOND, lambda: scene.network.drop_messages_of(C), FAULT)
    assert arrivals_us(scene) == {"b": 700}
    assert not scene.network.shared.flows


def test_after_clear_a_message_waits_for_none_that_were_dropped():
    scene = scene_of(("b", B, 14_480), ("c", C, 700))
    scene.kernel.schedule(500 * MICROSECOND, scene.network.clear, FAULT)
    scene.send("d", A, D, 700, at_s=600 * MICROSECOND)
    assert arrivals_us(scene) == {"d": 1300}


def test_short_messages_beside_a_long_one_do_not_make_a_link_faster():
    scene = Scene(star("abcd"))
    scene.send("b", A, B, 100_000)
    for number in range(20):
        scene.send(f"s{number}", A, (C, D)[number % 2], 1000, at_s=(50_000 + 1100 * number) * MICROSECOND)
    assert max(scene.run().arrived.values()) == pytest.approx(120_000 * MICROSECOND)
