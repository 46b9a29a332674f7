"""Devices that fail in the simulated world: what becomes of messages to them, and what is announced."""

import pytest

from engine.domain.errors import PeerFailed
from engine.worlds.simulated.kernel import FAULT
from tests.support.message_programs import PAYLOAD, star

A, B, C, D = 0, 1, 2, 3
SILENCE_S = 0.5
SEEN_S = 0.01
"""From the end of a device in `slow_star` until its peers see that: the delay of two links."""


def slow_star(names="abc"):
    return star(names, delay_s=SEEN_S / 2)


def marks(trace, *names):
    found = [item for item in trace if getattr(item, "name", "") in names and hasattr(item, "facts")]
    return [(mark.name, pytest.approx(mark.time_s), mark.device) for mark in found]


def detected(trace):
    """(device, how, time, since when) of every failure that was announced."""
    found = [item for item in trace if getattr(item, "name", "") == "loss_detected"]
    return [
        (mark.device, mark.facts["how"], pytest.approx(mark.time_s), pytest.approx(mark.facts["since_s"]))
        for mark in found
    ]


async def waits_for(ctx, src, lost, tag="m"):
    """Note what becomes of a message from `src`."""
    try:
        await ctx.recv(src, tag)
        lost[ctx.rank] = None
    except PeerFailed as error:
        lost[ctx.rank] = (error.device, pytest.approx(ctx.now_s))


async def idles_until(ctx, time_s, dst=C):
    """Keep device `ctx` busy with messages of a second each until after `time_s`."""
    while ctx.now_s < time_s:
        await ctx.send(PAYLOAD, dst, "idle")


def at(world, change):
    """Apply `change`. In a scenario, a device whose first change is to join would be absent at first."""
    world.kernel.schedule(change.at_s, lambda: world.faults.apply(change), FAULT)


def received(trace):
    return [item for item in trace if getattr(item, "kind", "") == "recv"]
