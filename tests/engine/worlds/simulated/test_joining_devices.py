"""Devices that come back: with empty memory, their links, and into runs that can plan again."""

import pytest

from engine.domain.scenario import (
    DropDevice,
    FreezeDevice,
    JoinDevice,
    LinkDown,
)
from engine.worlds.simulated.faults import DeviceJoined
from tests.support.faults import (
    SEEN_S,
    SILENCE_S,
    A,
    B,
    C,
    D,
    at,
    detected,
    idles_until,
    marks,
    slow_star,
    waits_for,
)
from tests.support.message_programs import chain, receiver, run, sender, star, world_of


def joined_into(world, first=None):
    """Run `world` with a program on device a until a device joins; returns when, and what was said."""
    events = []

    def recover(event):
        events.append((str(event), pytest.approx(world.now_s)))
        return [(A, idles_until(world.devices[A], world.now_s + 1.0))]

    world.run([(A, first or idles_until(world.devices[A], 5.0))], recover=recover)
    return events


def test_a_device_that_is_back_before_its_end_was_seen_is_announced_as_it_joins_and_once():
    back_s = 0.25 + SEEN_S / 2
    world, trace = world_of(
        slow_star(), [DropDevice(at_s=0.25, device="b"), JoinDevice(at_s=back_s, device="b")]
    )
    assert joined_into(world) == [(f"b joined at {back_s:.3f} s.", back_s)]
    assert detected(trace) == [("b", "killed", back_s, 0.25)]
    assert marks(trace, "device_joined") == [("device_joined", back_s, "b")]
    assert world.faults.failed == set()


def test_a_device_that_fails_again_before_its_first_end_was_seen_is_announced_for_the_second():
    again_s = 0.25 + SEEN_S * 0.6
    changes = [
        DropDevice(at_s=0.25, device="b"),
        JoinDevice(at_s=0.25 + SEEN_S / 2, device="b"),
        DropDevice(at_s=again_s, device="b"),
    ]
    world, trace = world_of(slow_star(), changes)
    joined_into(world)
    assert detected(trace)[1:] == [("b", "killed", again_s + SEEN_S, again_s)]
    assert world.faults.failed == {B}


def test_a_device_that_has_not_left_cannot_join():
    world, trace = world_of(star(), [])
    at(world, JoinDevice(at_s=0.5, device="b"))
    assert joined_into(world) == []
    assert world.devices[B].ledger.resident
    assert marks(trace, "device_joined") == []


def test_a_dropped_device_takes_its_links_with_it_and_brings_them_back():
    cluster = chain("abc")
    changes = [DropDevice(at_s=0.25, device="b"), JoinDevice(at_s=1.25, device="b")]
    world, _ = world_of(cluster, changes, holders=(A, C), silence_s=5.0)
    times = {}
    programs = {
        A: lambda: sender(world.devices[A], C, ["m"]),
        C: lambda: receiver(world.devices[C], [(A, "m")], times),
    }

    def recover(event):
        return [(rank, make()) for rank, make in programs.items()]

    world.run([(rank, make()) for rank, make in programs.items()], recover=recover)
    # sent at 0 and held up at b from 0.25 on; sent again when b has joined, it takes 1 s
    assert times == {(C, "m"): pytest.approx(2.25)}


def test_a_link_that_was_taken_down_stays_down_when_its_device_joins():
    changes = [
        LinkDown(at_s=0.1, link="b--s1"),
        DropDevice(at_s=0.2, device="b"),
        JoinDevice(at_s=0.3, device="b"),
    ]
    world, trace = world_of(star(), changes, silence_s=SILENCE_S)

    def recover(event):
        a = world.devices[A]
        return [] if B in a.failed else [(A, sender(a, B, ["m"])), (C, waits_for(world.devices[C], B, {}))]

    world.run([(A, idles_until(world.devices[A], 5.0))], recover=recover)
    device, how, _, since_s = detected(trace)[-1]
    assert (device, how, since_s) == ("b", "unreachable", 0.1)


def test_a_device_that_joins_interrupts_a_run_that_can_plan_again_and_no_other():
    join = JoinDevice(at_s=0.5, device="b")
    world, trace = world_of(star(), [DropDevice(at_s=0.1, device="b"), join], holders=(0,))
    events = []

    def recover(event):
        events.append((type(event), str(event), world.now_s))
        a, b = world.devices[A], world.devices[B]
        return [(A, sender(a, B, ["again"])), (B, receiver(b, [(A, "again")], {}))]

    world.run([(A, idles_until(world.devices[A], 1.0))], recover=recover)
    assert events == [(DeviceJoined, "b joined at 0.500 s.", 0.5)]
    arrived = [item for item in trace if getattr(item, "kind", "") == "recv"]
    assert [(span.name, span.end_s) for span in arrived] == [("again", pytest.approx(1.5))]
    world, trace = world_of(star(), [DropDevice(at_s=0.1, device="b"), join], holders=(0,))
    run(world, (A, lambda c: sender(c, C, ["m"])), (C, lambda c: receiver(c, [(A, "m")], {})))
    assert marks(trace, "device_joined") == [("device_joined", 0.5, "b")]
    assert B in world.devices[A].failed  # without a new plan nothing can use it


def test_a_device_that_joins_has_empty_memory_and_is_known_to_all_again():
    world, _ = world_of(star(), [DropDevice(at_s=0.1, device="b"), JoinDevice(at_s=0.5, device="b")])
    for device in world.devices:
        device.memory["known"] = True  # what a strategy keeps from pass to pass
    assert len(joined_into(world)) == 1
    assert not world.devices[B].ledger.resident and not world.devices[B].memory
    assert world.devices[A].ledger.resident and world.devices[A].memory
    assert [device.failed for device in world.devices] == [frozenset()] * 3
    assert world.devices[A].cluster_now.devices[B].role != "terminal"


def test_after_a_recovery_a_device_that_is_still_frozen_is_announced_if_the_new_plan_needs_it():
    changes = [FreezeDevice(at_s=0.1, device="c"), DropDevice(at_s=1.0, device="b")]
    world, trace = world_of(slow_star("abcd"), changes, holders=(A, B), silence_s=SILENCE_S)
    needs_c = world_of(slow_star("abcd"), holders=(A, C))[0].plan

    def recover(event):
        if world.plan is needs_c:
            return []
        world.plan = needs_c
        # something always happens, so the run is never idle
        return [(A, receiver(world.devices[A], [(C, "m")], {})), (D, idles_until(world.devices[D], 5.0, A))]

    world.run([(A, receiver(world.devices[A], [(B, "m")], {}))], recover=recover)
    announced_s = 1.0 + SEEN_S
    assert detected(trace) == [
        ("b", "killed", announced_s, 1.0),
        ("c", "frozen", announced_s + SILENCE_S, 0.1),
    ]


def test_a_recovery_starts_no_program_on_a_device_that_has_failed_and_is_not_announced_yet():
    changes = [DropDevice(at_s=1.0, device="b"), DropDevice(at_s=1.0 + SEEN_S / 2, device="c")]
    world, _ = world_of(slow_star(), changes)
    started = []

    async def starts(ctx):
        started.append(ctx.rank)

    def recover(event):
        return [(rank, starts(world.devices[rank])) for rank in (A, C)]

    world.run([(A, receiver(world.devices[A], [(B, "m")], {}))], recover=recover)
    assert started == [A]


def test_a_frozen_device_that_was_given_up_starts_with_empty_memory():
    world, trace = world_of(star(), [FreezeDevice(at_s=0.25, device="b")], silence_s=SILENCE_S)
    at(world, JoinDevice(at_s=0.25 + SILENCE_S + 0.1, device="b"))
    assert world.devices[B].ledger.resident
    joined_into(world)
    assert detected(trace) == [("b", "frozen", 0.25 + SILENCE_S, 0.25)]
    assert not world.devices[B].ledger.resident
