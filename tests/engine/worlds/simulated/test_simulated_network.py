"""The simulated network alone: queues, shared links, changes and losses, worked out by hand.

Messages of 1 MB over links of 8 Mbit/s: one takes a second if it has its links for itself.
"""

from random import Random

import pytest

from engine.domain.cluster import ClusterSpec
from engine.domain.scenario import LinkDown, LinkUp, SetDelay, SetLoss, SetRate
from engine.domain.token_bucket import SEGMENT_BYTES
from engine.worlds.simulated.kernel import FAULT
from engine.worlds.simulated.tcp.round_trip import RTO_MIN_S
from tests.support.message_programs import RATE, star
from tests.support.network_scene import MEGABYTE, Scene

A, B, C = 0, 1, 2


def cluster_of(device=None, link=None, first_link=None, **more):
    """A star with these fields of all devices, all links, and the first link."""
    data = star(**more).model_dump()
    for fields in data["devices"]:
        fields.update(device or {})
    for index, fields in enumerate(data["links"]):
        fields.update(link or {})
        fields.update((first_link or {}) if index == 0 else {})
    return ClusterSpec.model_validate(data)


def test_the_next_message_of_a_pair_starts_when_the_one_before_has_left_not_when_it_has_arrived():
    scene = Scene(star(delay_s=0.25))
    scene.send("first", A, B)
    scene.send("second", A, B)
    scene.run()
    assert scene.departed == {"first": pytest.approx(1.0), "second": pytest.approx(2.0)}
    assert scene.arrived == {"first": pytest.approx(1.5), "second": pytest.approx(2.5)}


def test_the_sender_pays_its_overhead_for_every_message_before_the_links_do():
    scene = Scene(star(overhead_s=0.125))
    scene.send("first", A, B)
    scene.send("second", A, B)
    assert scene.run().arrived == {"first": pytest.approx(1.125), "second": pytest.approx(2.25)}


def test_both_ends_copy_a_message_between_accelerator_and_network():
    scene = Scene(cluster_of(device={"staging_byte_per_s": 4e6}))
    scene.send("m", A, B)
    scene.run()
    assert scene.departed == {"m": pytest.approx(0.25 + 1.0)}
    assert scene.arrived == {"m": pytest.approx(0.25 + 1.0 + 0.25)}


def test_both_ends_pay_for_every_byte_and_the_receiver_for_every_message():
    # 1 MB at 0.25 µs per byte takes 0.25 s at each end, beside 0.125 s to send it and 0.5 s to receive it
    ends = {"message_overhead_s": 0.125, "receive_overhead_s": 0.5, "byte_overhead_s": 0.25e-6}
    scene = Scene(cluster_of(device=ends))
    scene.send("m", A, B)
    scene.run()
    assert scene.departed == {"m": pytest.approx(0.125 + 0.25 + 1.0)}
    assert scene.arrived == {"m": pytest.approx(0.125 + 0.25 + 1.0 + 0.25 + 0.5)}


def test_links_one_after_the_other_take_the_time_of_the_slowest_not_the_sum():
    scene = Scene(star(rates={"b": RATE / 2}))
    scene.send("m", A, B)
    assert scene.run().arrived == {"m": pytest.approx(2.0)}


def test_messages_to_two_receivers_share_the_senders_link():
    scene = Scene(star())
    scene.send("b", A, B)
    scene.send("c", A, C)
    assert scene.run().arrived == {"b": pytest.approx(2.0), "c": pytest.approx(2.0)}


def test_messages_in_opposite_directions_share_nothing():
    scene = Scene(star())
    scene.send("there", A, B)
    scene.send("back", B, A)
    assert scene.run().arrived == {"there": pytest.approx(1.0), "back": pytest.approx(1.0)}


def test_a_message_that_joins_halves_the_rate_and_gives_it_back():
    # 0.5 s alone, then half the rate until the short message of a quarter is through at 1.0; the rest of the
    # long one is 0.25 MB
    scene = Scene(star())
    scene.send("long", A, B)
    scene.send("short", C, B, size_bytes=MEGABYTE // 4, at_s=0.5)
    assert scene.run().arrived == {"short": pytest.approx(1.0), "long": pytest.approx(1.25)}


def test_an_empty_message_arrives_after_the_delay():
    scene = Scene(star(delay_s=0.25))
    scene.send("m", A, B, size_bytes=0)
    assert scene.run().arrived == {"m": pytest.approx(0.5)}


def test_a_new_rate_holds_for_the_rest_of_a_message_and_only_one_way():
    scene = Scene(star())
    scene.send("there", A, B)
    scene.send("back", B, A)
    scene.change(SetRate(at_s=0.5, link="a--s1", bit_per_s=RATE / 2, direction="forward"))
    assert scene.run().arrived == {"there": pytest.approx(1.5), "back": pytest.approx(1.0)}


def test_a_new_delay_holds_for_messages_whose_last_byte_leaves_later():
    scene = Scene(star())
    scene.send("early", A, B)
    scene.send("late", A, B)
    scene.change(SetDelay(at_s=1.5, link="b--s1", delay_s=0.25))
    assert scene.run().arrived == {"early": pytest.approx(1.0), "late": pytest.approx(2.25)}


def test_a_link_that_is_down_stops_its_flows_and_leaves_the_others_alone():
    scene = Scene(star())
    scene.send("stopped", A, B)
    scene.send("free", C, A)
    scene.change(LinkDown(at_s=0.5, link="b--s1"))
    scene.run()
    assert scene.arrived == {"free": pytest.approx(1.0)}
    assert [flow.ends for flow in scene.network.stalled()] == [(A, B)]
    scene.change(LinkUp(at_s=3.0, link="b--s1"))
    scene.run()
    assert scene.arrived["stopped"] == pytest.approx(3.5)
    assert scene.network.stalled() == []


def test_a_link_that_is_down_stops_both_directions():
    scene = Scene(star())
    scene.change(LinkDown(at_s=0.0, link="a--s1"))
    scene.send("from", A, B)
    scene.send("to", C, A)
    scene.run()
    assert scene.arrived == {}
    assert {flow.ends for flow in scene.network.stalled()} == {(A, B), (C, A)}


def test_a_link_that_was_drawn_to_lose_everything_is_down_from_the_start():
    scene = Scene(cluster_of(first_link={"loss_frac": 1.0}))
    scene.send("m", A, B)
    assert scene.run().arrived == {}
    assert [flow.ends for flow in scene.network.stalled()] == [(A, B)]


def test_messages_of_a_failed_device_are_dropped_and_those_to_it_are_named():
    scene, dropped = Scene(star()), []
    for name, src, dst in (("from", B, A), ("to", A, B), ("queued", A, B), ("other", C, A)):
        scene.send(name, src, dst)
    scene.kernel.schedule(0.5, lambda: dropped.extend(scene.network.drop_messages_of(B)), FAULT)
    scene.run()
    assert [message.tag for message in dropped] == ["to", "queued"]
    # b's flow to a has taken half of a's link until 0.5
    assert scene.arrived == {"other": pytest.approx(1.25)}
    assert scene.departed == scene.arrived


def test_a_message_that_is_dropped_while_its_sender_prepares_it_never_enters_the_links():
    scene = Scene(star(overhead_s=0.5))
    scene.send("m", A, B)
    scene.kernel.schedule(0.25, lambda: scene.network.drop_messages_of(B), FAULT)
    scene.run()
    assert (scene.departed, scene.arrived) == ({}, {})
    assert not scene.network.shared.flows


def test_after_clear_nothing_arrives_and_the_links_are_as_before():
    scene = Scene(star())
    scene.change(SetRate(at_s=0.1, link="a--s1", bit_per_s=RATE / 2))
    scene.send("halted", A, B)

    def halt():
        scene.kernel.cancel_actions(keep_priority=FAULT)
        scene.network.clear()
        scene.send("after", A, B, at_s=1.0)

    scene.kernel.schedule(0.5, halt, FAULT)
    scene.run()
    assert scene.arrived == {"after": pytest.approx(3.0)}


def loses_first_segment(seed, src=A, dst=B, number=0, loss_frac=0.5):
    """Whether the only segment of a message is lost: the network's draw, and `LossyPath`'s first gap is 0."""
    return Random(f"{seed} {src} {dst} {number}").random() < loss_frac


SEGMENT_S = SEGMENT_BYTES * 8 / RATE
LOSSY = cluster_of(first_link={"loss_frac": 0.5, "reverse_loss_frac": 0.0})


def seed_where(wanted):
    return next(seed for seed in range(1000) if wanted(seed))


def test_a_message_of_one_segment_that_is_lost_arrives_after_the_time_out():
    once = seed_where(lambda seed: loses_first_segment(seed))
    scene = Scene(LOSSY, once)
    scene.send("m", A, B, size_bytes=SEGMENT_BYTES)
    scene.run()
    timeouts = (scene.arrived["m"] - SEGMENT_S) / (SEGMENT_S + RTO_MIN_S)
    # time-outs double: the sum of 1, 2, 4, … of them
    assert round(timeouts) in {2**n - 1 for n in range(1, 12)}
    assert timeouts == pytest.approx(round(timeouts))
    assert scene.departed["m"] == pytest.approx(SEGMENT_S)


def test_a_message_that_is_not_lost_arrives_as_over_a_link_without_loss():
    never = seed_where(lambda seed: not loses_first_segment(seed))
    scene = Scene(LOSSY, never)
    scene.send("m", A, B, size_bytes=SEGMENT_BYTES)
    assert scene.run().arrived["m"] == pytest.approx(SEGMENT_S)


def test_messages_behind_a_late_one_arrive_after_it_and_in_order():
    late = seed_where(lambda seed: loses_first_segment(seed) and not loses_first_segment(seed, number=1))
    scene = Scene(LOSSY, late)
    arrivals = []
    scene.network.on_arrived = lambda message: arrivals.append((message.tag, scene.kernel.now_s))
    scene.send("late", A, B, size_bytes=SEGMENT_BYTES)
    scene.send("next", A, B, size_bytes=SEGMENT_BYTES, at_s=0.01)
    scene.run()
    assert [name for name, _ in arrivals] == ["late", "next"]
    assert arrivals[0][1] <= arrivals[1][1]


def test_a_message_behind_repairs_a_late_one_before_its_time_out():
    # three segments of the next message and the retransmission; there is no delay
    def only_the_first_is_lost(seed):
        again = Random(f"{seed} {A} {B} 0 again").random() < 0.5
        return loses_first_segment(seed) and not loses_first_segment(seed, number=1) and not again

    scene = Scene(
        LOSSY,
        seed_where(only_the_first_is_lost),
    )
    scene.send("late", A, B, size_bytes=SEGMENT_BYTES)
    scene.send("next", A, B, size_bytes=SEGMENT_BYTES, at_s=0.01)
    assert scene.run().arrived["late"] == pytest.approx(0.01 + 4 * SEGMENT_S)


def test_a_repair_that_is_lost_again_waits_for_a_time_out():
    def lost_twice(seed):
        again = Random(f"{seed} {A} {B} 0 again").random() < 0.5
        return loses_first_segment(seed) and again

    scene = Scene(LOSSY, seed_where(lost_twice))
    scene.send("late", A, B, size_bytes=SEGMENT_BYTES)
    scene.send("next", A, B, size_bytes=SEGMENT_BYTES, at_s=0.01)
    scene.send("one more", A, B, size_bytes=SEGMENT_BYTES, at_s=0.1)  # repairs nothing
    scene.run()
    assert scene.arrived["late"] == pytest.approx(0.01 + 4 * SEGMENT_S + SEGMENT_S + RTO_MIN_S, rel=0.01)


def test_losses_of_one_pair_leave_another_pair_alone():
    changes = SetLoss(at_s=0.0, link="a--s1", loss_frac=0.4)
    scene = Scene(star())
    scene.change(changes)
    for index in range(5):
        scene.send(f"late {index}", A, B)
        scene.send(f"plain {index}", C, B, at_s=1000.0)
    scene.run()
    assert scene.arrived["late 4"] > 5.5
    plain = [scene.arrived[f"plain {index}"] for index in range(5)]
    assert plain == pytest.approx([1001, 1002, 1003, 1004, 1005])
