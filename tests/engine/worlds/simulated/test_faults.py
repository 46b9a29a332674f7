"""Faults of the simulated world: which device fails, which devices are notified, when and of what."""

from itertools import pairwise

import pytest

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PeerFailed
from engine.domain.scenario import (
    DropDevice,
    FreezeDevice,
    LinkDown,
    LinkUp,
    SetDelay,
    SetLoss,
    SetRate,
    SlowDevice,
)
from tests.support.faults import (
    SEEN_S,
    SILENCE_S,
    A,
    B,
    C,
    detected,
    idles_until,
    marks,
    received,
    slow_star,
    waits_for,
)
from tests.support.message_programs import PAYLOAD, RATE, chain, receiver, run, sender, star, world_of

MARKS = ("device_lost", "device_frozen", "device_joined", "device_changed")


def test_a_killed_device_is_announced_when_its_connections_are_seen_closed():
    world, trace = world_of(slow_star(), [DropDevice(at_s=0.25, device="b")])
    lost = {}
    run(world, (A, lambda c: waits_for(c, B, lost)), (B, lambda c: sender(c, A, ["m"])))
    assert lost == {A: ("b", 0.25 + SEEN_S)}
    assert detected(trace) == [("b", "killed", 0.25 + SEEN_S, 0.25)]
    assert marks(trace, "device_lost") == [("device_lost", 0.25, "b")]
    assert world.faults.failed == {B}


def test_all_devices_learn_of_a_failure_and_a_later_receive_fails_at_once():
    world, _ = world_of(slow_star(), [DropDevice(at_s=0.25, device="b")])
    lost = {}

    async def asks_late(ctx):
        await idles_until(ctx, 1.0, dst=A)
        await waits_for(ctx, B, lost)

    run(world, (A, lambda c: waits_for(c, B, lost)), (C, asks_late))
    assert lost == {A: ("b", 0.25 + SEEN_S), C: ("b", 1.0)}
    assert [device.failed for device in world.devices] == [{B}, {B}, {B}]
    assert world.devices[A].cluster_now.devices[B].role == "terminal"


def test_a_send_to_a_device_that_fails_ends_when_the_failure_is_announced():
    world, _ = world_of(slow_star(), [DropDevice(at_s=0.25, device="b")])
    sent = {}

    async def sends(ctx):
        await ctx.send(PAYLOAD, B, "m")
        sent["first"] = ctx.now_s
        await ctx.send(PAYLOAD, B, "n")
        sent["second"] = ctx.now_s

    run(world, (A, sends))
    assert sent == {"first": pytest.approx(0.25 + SEEN_S), "second": pytest.approx(0.25 + SEEN_S)}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([DropDevice(at_s=0.2, device="b"), DropDevice(at_s=0.4, device="b")], ["device_lost"]),
        ([DropDevice(at_s=0.2, device="b"), FreezeDevice(at_s=0.4, device="b")], ["device_lost"]),
        ([FreezeDevice(at_s=0.2, device="b"), FreezeDevice(at_s=0.4, device="b")], ["device_frozen"]),
        ([SlowDevice(at_s=0.2, device="b", factor=2)], ["device_changed"]),
    ],
)
def test_a_device_that_is_away_cannot_leave_again(changes, told):
    world, trace = world_of(star(), changes, silence_s=50.0)
    run(world, (A, lambda c: idles_until(c, 1.0)))
    assert [mark.name for mark in trace if getattr(mark, "device", "") == "b" and mark.name in MARKS] == told


def test_behind_a_device_that_is_dropped_the_other_end_of_a_message_cannot_be_reached():
    world, trace = world_of(chain("abc"), [DropDevice(at_s=0.25, device="b")], silence_s=SILENCE_S)
    lost = {}
    run(world, (A, lambda c: waits_for(c, C, lost)), (C, lambda c: sender(c, A, ["m"])))
    assert detected(trace) == [
        ("b", "killed", 0.25, 0.25),
        ("c", "unreachable", 0.25 + SILENCE_S, 0.25),
    ]


def test_of_two_devices_the_one_that_the_source_does_not_reach_has_failed():
    world, trace = world_of(star(), [LinkDown(at_s=0.25, link="b--s1")], silence_s=SILENCE_S)
    lost = {}
    run(world, (C, lambda c: sender(c, B, ["m"])), (B, lambda c: waits_for(c, C, lost)))
    assert detected(trace) == [("b", "unreachable", 0.25 + SILENCE_S, 0.25)]


@pytest.mark.parametrize(("src", "dst"), [(A, B), (B, A), (B, C)])
def test_of_the_ends_of_a_link_that_stays_down_it_is_not_the_source_that_fails(src, dst):
    world, trace = world_of(star(), [LinkDown(at_s=0.25, link="b--s1")], silence_s=SILENCE_S)
    lost = {}
    run(world, (src, lambda c: sender(c, dst, ["m"])), (dst, lambda c: waits_for(c, src, lost)))
    assert detected(trace) == [("b", "unreachable", 0.25 + SILENCE_S, 0.25)]


def test_in_a_ring_the_source_does_not_fail_where_only_the_way_to_it_is_down():
    # each link is twice as fast in the order of the ring, so that a reaches c over b and c reaches a over d
    links = [{"a": a, "b": b, "bit_per_s": RATE, "reverse_bit_per_s": RATE / 2} for a, b in pairwise("abcda")]
    ring = ClusterSpec.model_validate(star("abcd").model_dump() | {"links": links, "switches": []})
    world, trace = world_of(ring, [LinkDown(at_s=0.25, link="c--d")], silence_s=SILENCE_S)
    lost = {}
    run(world, (C, lambda c: sender(c, A, ["m"])), (A, lambda c: waits_for(c, C, lost)))
    assert detected(trace) == [("c", "unreachable", 0.25 + SILENCE_S, 0.25)]


def test_a_link_that_is_up_again_in_time_costs_no_device():
    changes = [LinkDown(at_s=0.25, link="b--s1"), LinkUp(at_s=0.25 + SILENCE_S * 0.9, link="b--s1")]
    world, trace = world_of(star(), changes, silence_s=SILENCE_S)
    run(world, (A, lambda c: sender(c, B, ["m"])), (B, lambda c: receiver(c, [(A, "m")], {})))
    assert detected(trace) == []
    assert marks(trace, "link_down", "link_up") == [
        ("link_down", 0.25, ""),
        ("link_up", 0.25 + SILENCE_S * 0.9, ""),
    ]


def test_a_message_that_is_sent_over_a_link_that_is_long_down_makes_its_end_fail_after_the_silence():
    world, trace = world_of(star(), [LinkDown(at_s=0.0, link="b--s1")], silence_s=SILENCE_S)
    lost = {}

    async def asks(ctx):
        await idles_until(ctx, 2.0)
        ctx.send(PAYLOAD, B, "question")
        await waits_for(ctx, B, lost)

    run(world, (A, asks))
    assert detected(trace) == [("b", "unreachable", 2.0 + SILENCE_S, 0.0)]


@pytest.mark.parametrize("fault", [DropDevice, FreezeDevice])
def test_a_run_whose_source_fails_ends_with_an_error_that_says_so(fault):
    world, _ = world_of(slow_star(), [fault(at_s=0.25, device="a")], silence_s=SILENCE_S)
    with pytest.raises(PeerFailed, match=r"a failed at .*, and it is the source") as lost:
        run(world, (A, lambda c: waits_for(c, B, {})), (B, lambda c: waits_for(c, A, {})))
    seen_s = SEEN_S if fault is DropDevice else SILENCE_S
    assert lost.value.time_s == pytest.approx(0.25 + seen_s)


def test_changes_of_links_and_speeds_are_marked_with_their_values():
    changes = [
        SetRate(at_s=0.1, link="a--s1", bit_per_s=RATE / 2),
        SlowDevice(at_s=0.2, device="b", factor=3.0),
        SetLoss(at_s=0.3, link="b--s1", loss_frac=0.0, direction="forward"),
    ]
    world, trace = world_of(star(), changes)
    run(world, (A, lambda c: sender(c, C, ["m"])), (C, lambda c: receiver(c, [(A, "m")], {})))
    found = [item for item in trace if getattr(item, "name", "") in ("link_changed", "device_changed")]
    assert [(mark.time_s, mark.name, mark.device, mark.facts) for mark in found] == [
        (0.1, "link_changed", "", {"link": "a--s1", "bit_per_s": RATE / 2, "direction": "both"}),
        (0.2, "device_changed", "b", {"device": "b", "factor": 3.0}),
        (0.3, "link_changed", "", {"link": "b--s1", "loss_frac": 0.0, "direction": "forward"}),
    ]
    # every device plans with the changes
    for device in world.devices:
        assert device.cluster_now.links[0].bit_per_s == RATE / 2
        assert device.cluster_now.devices[B].flop_per_s == pytest.approx(1e9 / 3)


def test_at_the_same_time_a_fault_comes_before_what_programs_do():
    # the message would arrive at 1.0, when its receiver is killed
    world, trace = world_of(star(), [DropDevice(at_s=1.0, device="b")])
    run(world, (A, lambda c: sender(c, B, ["m"])), (B, lambda c: receiver(c, [(A, "m")], {})))
    assert not [item for item in trace if getattr(item, "kind", "") == "recv"]


def test_each_peer_learns_of_a_killed_device_after_the_delay_of_its_own_path():
    nearer = [*star(delay_s=0.02).links[:2], star(delay_s=0.1).links[2]]
    cluster = star().model_copy(update={"links": tuple(nearer)})
    world, trace = world_of(cluster, [DropDevice(at_s=0.25, device="b")])
    lost = {}
    run(world, (A, lambda c: waits_for(c, B, lost)), (C, lambda c: waits_for(c, B, lost)))
    assert lost == {A: ("b", 0.25 + 0.04), C: ("b", 0.25 + 0.12)}
    assert detected(trace) == [("b", "killed", 0.25 + 0.04, 0.25)]


def test_the_source_plans_without_a_device_whose_end_only_a_nearer_peer_has_seen():
    links = (star(delay_s=0.1).links[0], *star(delay_s=0.02).links[1:])
    cluster = star().model_copy(update={"links": links})
    world, _ = world_of(cluster, [DropDevice(at_s=0.25, device="b")])
    known = []

    def recover(event):
        known.append((pytest.approx(world.now_s), world.devices[A].failed))
        return []

    world.run([(C, waits_for_peer(world.devices[C]))], recover=recover)
    assert known == [(0.29, {B})]


def test_a_device_that_fails_unseen_while_others_are_planned_for_another_failure_is_planned_for_when_seen():
    """b is seen to have failed at 0.29, when c has failed, too, which is seen at 0.4."""
    links = (*star(delay_s=0.02).links[:2], star(delay_s=0.1).links[2])
    cluster = star().model_copy(update={"links": links})
    changes = [DropDevice(at_s=0.25, device="b"), DropDevice(at_s=0.28, device="c")]
    world, _ = world_of(cluster, changes)
    known = []

    def recover(event):
        known.append((pytest.approx(world.now_s), set(world.devices[A].failed)))
        return [] if C in world.devices[A].failed else [(A, waits_for_peer(world.devices[A], C))]

    world.run([(A, waits_for_peer(world.devices[A]))], recover=recover)
    assert known == [(0.29, {B}), (0.4, {B, C})]


async def waits_for_peer(ctx, peer=B):
    await ctx.recv(peer, "m")


def test_a_message_that_was_on_its_way_arrives_before_the_end_of_its_sender_is_seen():
    # the message has left at 1.0, and arrives at 2.0; the end of its sender follows it and is seen at 2.5
    world, trace = world_of(star(delay_s=0.5), [DropDevice(at_s=1.5, device="b")])
    run(world, (A, lambda c: waits_for(c, B, {})), (B, lambda c: sender(c, A, ["m"])))
    assert [span.end_s for span in received(trace)] == [pytest.approx(2.0)]


def test_what_a_failed_device_had_sent_is_not_delivered_after_its_failure_was_announced():
    # the message has left at 1.0 and would arrive at 2.0; its sender's end is seen at 1.5 over a shorter way
    shorter = [SetDelay(at_s=1.2, link=f"{name}--s1", delay_s=0.0) for name in "ab"]
    world, trace = world_of(star(delay_s=0.5), [*shorter, DropDevice(at_s=1.5, device="b")])
    lost = {}

    async def asks_late(ctx):
        await idles_until(ctx, 3.0)
        await waits_for(ctx, B, lost)

    run(world, (A, asks_late), (B, lambda c: sender(c, A, ["m"])))
    assert lost == {A: ("b", 3.0)}
    assert not [span for span in received(trace) if span.name == "m"]


def test_what_was_sent_to_a_failed_device_does_not_arrive():
    world, trace = world_of(star(delay_s=0.5), [DropDevice(at_s=1.995, device="b")])

    async def sends(ctx):
        await ctx.send(PAYLOAD, B, "m")
        await idles_until(ctx, 3.0)

    run(world, (A, sends))
    assert not [span for span in received(trace) if span.device == "b"]
