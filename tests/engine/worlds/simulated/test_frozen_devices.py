"""Devices that freeze: announced after a silence, by whom they are needed, and never twice."""

import pytest

from engine.domain.scenario import (
    DropDevice,
    FreezeDevice,
    JoinDevice,
)
from tests.support.faults import (
    SEEN_S,
    SILENCE_S,
    A,
    B,
    at,
    detected,
    idles_until,
    marks,
    slow_star,
    waits_for,
)
from tests.support.message_programs import PAYLOAD, receiver, run, sender, star, world_of


def test_a_frozen_device_of_the_plan_is_announced_after_the_silence():
    world, trace = world_of(star(), [FreezeDevice(at_s=0.25, device="b")], silence_s=SILENCE_S)
    lost = {}
    run(world, (A, lambda c: waits_for(c, B, lost)), (B, lambda c: sender(c, A, ["m"])))
    assert lost == {A: ("b", 0.25 + SILENCE_S)}
    assert detected(trace) == [("b", "frozen", 0.25 + SILENCE_S, 0.25)]


def test_a_frozen_device_that_was_sent_something_is_announced_after_the_silence():
    changes = [FreezeDevice(at_s=0.25, device="b")]
    world, trace = world_of(star(), changes, holders=(A,), silence_s=SILENCE_S)
    lost = {}

    async def asks(ctx):
        ctx.send(PAYLOAD, B, "question")
        await waits_for(ctx, B, lost)

    run(world, (A, asks), (B, lambda c: receiver(c, [(A, "question")], {})))
    assert lost == {A: ("b", 0.25 + SILENCE_S)}
    assert detected(trace) == [("b", "frozen", 0.25 + SILENCE_S, 0.25)]


def test_a_frozen_device_that_no_device_needs_is_not_announced():
    world, trace = world_of(star(), [FreezeDevice(at_s=0.1, device="c")], silence_s=SILENCE_S)
    run(world, (A, lambda c: sender(c, B, ["m", "n"])), (B, lambda c: receiver(c, [(A, "m"), (A, "n")], {})))
    assert detected(trace) == []
    assert marks(trace, "device_frozen") == [("device_frozen", 0.1, "c")]


def test_a_frozen_device_that_thaws_in_time_continues_from_then_on():
    world, trace = world_of(star(), [FreezeDevice(at_s=0.25, device="b")], silence_s=5.0)
    at(world, JoinDevice(at_s=1.5, device="b"))
    times = {}

    async def answers(ctx):
        await ctx.recv(A, "question")
        times["continues"] = ctx.now_s
        ctx.send(PAYLOAD, A, "m")

    async def asks(ctx):
        ctx.send(PAYLOAD, B, "question")
        await ctx.recv(B, "m")
        times["answered"] = ctx.now_s

    run(world, (A, asks), (B, answers))
    # the question is there at 1.0, while b is frozen
    assert times == {"continues": pytest.approx(1.5), "answered": pytest.approx(2.5)}
    assert detected(trace) == []
    assert marks(trace, "device_joined") == [("device_joined", 1.5, "b")]
    assert world.devices[B].ledger.resident  # its memory is as it was


def test_a_device_that_freezes_again_is_given_the_whole_silence_again():
    changes = [FreezeDevice(at_s=0.1, device="b"), FreezeDevice(at_s=0.45, device="b")]
    world, trace = world_of(star(), changes, silence_s=SILENCE_S)
    at(world, JoinDevice(at_s=0.4, device="b"))
    lost = {}
    run(world, (A, lambda c: waits_for(c, B, lost)), (B, lambda c: receiver(c, [(A, "never")], {})))
    assert detected(trace) == [("b", "frozen", 0.45 + SILENCE_S, 0.45)]
    assert lost == {A: ("b", 0.45 + SILENCE_S)}


def test_a_frozen_device_that_is_killed_is_announced_once():
    changes = [FreezeDevice(at_s=0.1, device="b"), DropDevice(at_s=0.2, device="b")]
    world, trace = world_of(slow_star(), changes, silence_s=SILENCE_S)
    lost = {}

    async def asks(ctx):
        await waits_for(ctx, B, lost)
        await idles_until(ctx, 2.0)

    run(world, (A, asks))
    assert detected(trace) == [("b", "killed", 0.2 + SEEN_S, 0.2)]
