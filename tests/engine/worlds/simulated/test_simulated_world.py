"""The simulated world's clock, links and failures, with programs small enough to work out by hand."""

import gc

import pytest

from engine.domain.errors import Deadlock, PeerFailed, PlanError
from engine.domain.scenario import DropDevice, FreezeDevice, LinkDown, LinkUp, SetRate
from engine.program.frames import FRAME_HEADER_BYTES, NOTE_BYTES
from tests.support.message_programs import PAYLOAD, RATE, receiver, run, sender, star, world_of


def test_a_message_takes_overhead_plus_size_over_rate_plus_every_delay():
    world, _ = world_of(star(delay_s=0.25, overhead_s=0.125))
    times = {}
    run(world, (0, lambda c: sender(c, 1, ["m"])), (1, lambda c: receiver(c, [(0, "m")], times)))
    assert times[1, "m"] == pytest.approx(0.125 + 1.0 + 2 * 0.25)


def test_messages_of_one_pair_keep_their_order_and_follow_each_other():
    world, _ = world_of(star())
    times = {}
    run(world, (0, lambda c: sender(c, 1, "pq")), (1, lambda c: receiver(c, [(0, "p"), (0, "q")], times)))
    assert times == {(1, "p"): pytest.approx(1.0), (1, "q"): pytest.approx(2.0)}


def test_two_senders_to_one_receiver_share_its_link_equally():
    world, _ = world_of(star())
    times = {}
    run(
        world,
        (0, lambda c: sender(c, 2, ["p"])),
        (1, lambda c: sender(c, 2, ["q"])),
        (2, lambda c: receiver(c, [(0, "p"), (1, "q")], times)),
    )
    assert times == {(2, "p"): pytest.approx(2.0), (2, "q"): pytest.approx(2.0)}


def test_a_slow_sender_leaves_the_rest_of_a_shared_link_to_the_fast_one():
    # max-min: 2 Mbit/s for a, the other 6 of 8 for b; b's megabyte is through after 8/6 s
    world, _ = world_of(star(rates={"a": 2e6}))
    times = {}
    run(
        world,
        (0, lambda c: sender(c, 2, ["p"])),
        (1, lambda c: sender(c, 2, ["q"])),
        (2, lambda c: receiver(c, [(1, "q"), (0, "p")], times)),
    )
    assert times[2, "q"] == pytest.approx(8 / 6)
    assert times[2, "p"] == pytest.approx(4.0)


def test_a_rate_change_in_the_middle_holds_for_the_rest_of_the_message():
    change = SetRate(at_s=0.5, link="a--s1", bit_per_s=RATE / 4)
    world, trace = world_of(star(), [change])
    times = {}
    run(world, (0, lambda c: sender(c, 1, ["m"])), (1, lambda c: receiver(c, [(0, "m")], times)))
    assert times[1, "m"] == pytest.approx(0.5 + 0.5 * 4)
    assert [m.time_s for m in trace if getattr(m, "name", "") == "link_changed"] == [0.5]


def test_the_other_direction_keeps_its_rate():
    change = SetRate(at_s=0.0, link="a--s1", bit_per_s=RATE / 4, direction="backward")
    world, _ = world_of(star(), [change])
    times = {}
    run(world, (0, lambda c: sender(c, 1, ["m"])), (1, lambda c: receiver(c, [(0, "m")], times)))
    assert times[1, "m"] == pytest.approx(1.0)


def test_a_message_waits_for_a_link_that_comes_back():
    world, _ = world_of(star(), [LinkDown(at_s=0.5, link="b--s1"), LinkUp(at_s=3.5, link="b--s1")])
    times = {}
    run(world, (0, lambda c: sender(c, 1, ["m"])), (1, lambda c: receiver(c, [(0, "m")], times)))
    assert times[1, "m"] == pytest.approx(4.0)


def test_a_device_behind_a_link_that_stays_down_has_failed_after_the_stated_silence():
    world, _ = world_of(star(), [LinkDown(at_s=0.5, link="b--s1")], silence_s=5.0)
    with pytest.raises(PeerFailed, match="b failed") as lost:
        run(world, (1, lambda c: sender(c, 0, ["m"])), (0, lambda c: receiver(c, [(1, "m")], {})))
    assert lost.value.time_s == pytest.approx(5.5)


def test_losing_a_device_that_others_wait_for_names_it_and_when_they_know():
    world, _ = world_of(star(), [DropDevice(at_s=0.25, device="b")])
    with pytest.raises(PeerFailed, match="b failed") as lost:
        run(world, (1, lambda c: sender(c, 0, ["m"])), (0, lambda c: receiver(c, [(1, "m")], {})))
    assert lost.value.device == "b"
    assert lost.value.time_s == pytest.approx(0.25)


def test_a_program_may_catch_the_failure_of_a_peer_and_continue():
    world, _ = world_of(star(), [DropDevice(at_s=0.25, device="b")])
    times = {}

    async def tries_another(ctx):
        try:
            await ctx.recv(1, "m")
        except PeerFailed as lost:
            times["lost"] = ctx.now_s, lost.device, ctx.failed
            await ctx.recv(2, "m")
            times["got"] = ctx.now_s

    run(
        world,
        (1, lambda c: sender(c, 0, ["m"])),
        (2, lambda c: sender(c, 0, ["m"])),
        (0, lambda c: tries_another(c)),
    )
    assert times["lost"] == (pytest.approx(0.25), "b", {1})
    assert times["got"] == pytest.approx(1.0, abs=0.3)


def test_a_note_travels_with_its_message_and_counts_its_bytes():
    world, trace = world_of(star())
    got = {}

    async def notes(ctx):
        ctx.send(PAYLOAD, 1, "m", note=(3, -1))

    async def reads(ctx):
        got["note"], got["tensor"] = await ctx.recv_noted(0, "m")

    run(world, (0, lambda c: notes(c)), (1, lambda c: reads(c)))
    assert got == {"note": (3, -1), "tensor": PAYLOAD}
    sent = next(item for item in trace if getattr(item, "kind", "") == "send")
    assert sent.bytes - sent.payload_bytes == FRAME_HEADER_BYTES + 2 * NOTE_BYTES


def test_losing_a_bystander_changes_nothing():
    world, trace = world_of(star(), [DropDevice(at_s=0.25, device="c")])
    times = {}
    run(world, (0, lambda c: sender(c, 1, ["m"])), (1, lambda c: receiver(c, [(0, "m")], times)))
    assert times[1, "m"] == pytest.approx(1.0)
    assert any(getattr(m, "name", "") == "device_lost" and m.device == "c" for m in trace)


def test_a_message_that_is_never_sent_is_a_deadlock_that_names_who_waits_for_what():
    world, _ = world_of(star())
    with pytest.raises(Deadlock, match="b for recv m from a"):
        run(world, (1, lambda c: receiver(c, [(0, "m")], {})))


def test_a_spawned_program_overlaps_its_parent_and_gives_its_result():
    world, _ = world_of(star())
    seen = {}

    async def child(ctx):
        await ctx.recv(0, "p")
        return ctx.now_s

    async def parent(ctx):
        handle = ctx.spawn(child(ctx))
        await ctx.recv(2, "q")
        seen["parent"] = ctx.now_s
        seen["child"] = await handle

    run(
        world,
        (0, lambda c: sender(c, 1, ["p"])),
        (2, lambda c: sender(c, 1, ["q"])),
        (1, lambda c: parent(c)),
    )
    assert seen == {"parent": pytest.approx(2.0), "child": pytest.approx(2.0)}


def test_two_runs_of_the_same_programs_give_the_same_trace():
    traces = []
    for _ in range(2):
        world, trace = world_of(star(delay_s=0.01, overhead_s=0.001))
        run(
            world,
            (0, lambda c: sender(c, 2, "pqr")),
            (1, lambda c: sender(c, 2, "xyz")),
            (2, lambda c: receiver(c, [(0, "p"), (1, "x"), (0, "q"), (1, "y"), (0, "r"), (1, "z")], {})),
        )
        traces.append(trace)
    assert traces[0] == traces[1]


def test_a_frozen_device_that_is_needed_late_is_declared_failed_too():
    """The device is not in the plan, and no message was sent to it until after the silence limit."""
    world, trace = world_of(star(), [FreezeDevice(at_s=0.1, device="c")], silence_s=0.5)

    async def asks_late(ctx):
        await ctx.recv(1, "m")  # arrives after one second
        ctx.send(PAYLOAD, 2, "question")
        await ctx.recv(2, "answer")

    with pytest.raises(PeerFailed, match="c failed"):
        run(
            world,
            (1, lambda c: sender(c, 0, ["m"])),
            (0, asks_late),
            (2, lambda c: receiver(c, [(0, "question")], {})),
        )
    assert [mark.facts["how"] for mark in trace if getattr(mark, "name", "") == "loss_detected"] == ["frozen"]


@pytest.mark.parametrize("enabled", [True, False])
def test_a_run_leaves_the_garbage_collector_as_it_was_also_when_it_fails(enabled):
    async def fails(ctx):
        assert not gc.isenabled()
        raise PlanError("no")

    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(PlanError, match="no"):
            run(world_of(star())[0], (0, fails))
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
