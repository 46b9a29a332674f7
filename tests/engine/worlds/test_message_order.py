"""Messages of one sender and tag are used in the order in which they were sent, in both worlds, whatever else
a device does between them. Messages arrive by schedules drawn at random.
"""

import math
import time
from collections import defaultdict, deque
from itertools import count
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import RunError
from engine.domain.scenario import SetDelay, SetLoss
from engine.ops.core import Add
from engine.ops.tensors import Meta
from engine.program.frames import FrameHeader
from engine.runs.predict import prepare
from engine.worlds.common.wire_tensors import bytes_of
from engine.worlds.real import native
from engine.worlds.real.connections import Incoming
from engine.worlds.real.device import RealDevice
from engine.worlds.real.native import NativeDevice
from engine.worlds.real.tasks import Clock, run_task
from tests.support import message_programs
from tests.support.fake_devices import small_spec

PEERS, TAGS = (1, 2), ("x", "y")
LINKS = [{"a": f"d{i}", "b": "s1", "bit_per_s": 1e8, "delay_s": 0.01} for i in range(3)]
BYTE_S = 1e-6
"""What a receiver spends on a byte (virtual): a large message takes longer to be usable than a small one."""

SCHEDULES = 40
"""Drawn schedules of each kind of device."""

DILATION = 1e-4
"""Whatever is due in virtual time is due at once."""


class Wire:
    """The connections of a device to which `coming` is sent. Each look at them finds a drawn number of
    messages of each peer, from the front; no second look in turn finds nothing. There is no compute thread:
    what it would do is done at a look.
    """

    has_peers, is_writing, is_moving_much = True, False, False

    def __init__(self, coming, random):
        self.coming, self.random, self.was_empty, self.device = coming, random, False, None

    def poll(self):
        while self.device is not None and not self.device.compute_tasks.empty():
            self.device.done.append(run_task(self.device.compute_tasks.get()))
        left = [peer for peer, messages in self.coming.items() if messages]
        least = int(self.was_empty and bool(left))
        found = []
        for _ in range(self.random.randint(least, 4)):
            if left := [peer for peer in left if self.coming[peer]]:
                found.append(self.coming[self.random.choice(left)].popleft())
        self.was_empty = not found
        return found, []

    def wait(self, timeout_s):
        return self.poll()

    def last_byte_s(self, peer):
        return time.monotonic()

    def ping(self, peer):
        return None


class Changing:
    """A supervisor that changes the delay of a link now and then."""

    sent_s = math.inf

    def __init__(self, random):
        self.random = random

    def has_message(self):
        return self.random.random() < 0.2

    def receive(self):
        if self.random.random() < 0.8:
            return None
        delay_s = self.random.choice((0.0, 0.01, 0.1))
        change = SetDelay(at_s=0.0, link="d1--s1", delay_s=delay_s)
        return {"type": "change", "change": change.model_dump(mode="json")}

    def send(self, message):
        return None


def incoming(src, tag, sequence, rows):
    payload = torch.full((rows,), float(sequence))
    size, now_s = payload.numel() * 4, time.monotonic()
    header = FrameHeader(0, size, (0, 0), now_s, now_s, "float32", (rows,), tag, sequence=sequence)
    return Incoming(src, header, bytearray(bytes_of(payload)), now_s)


def device_of(kind, held, connections, control):
    cluster = ClusterSpec.model_validate(small_spec().cluster.model_dump() | {"links": LINKS})
    costly = cluster.devices[0].model_copy(update={"byte_overhead_s": BYTE_S})
    cluster = cluster.model_copy(update={"devices": (costly, *cluster.devices[1:])})
    prepared = prepare(small_spec(cluster=cluster))
    paced, links = kind is RealDevice, frozenset(range(3)) if held else frozenset()
    device = kind(
        0, prepared.spec, prepared.plan, lambda item: None, None, paced, links, connections, control
    )
    device.ledger.memory_bytes, connections.device = 4e9, device
    device.polls = True
    device.set_clock(Clock(time.monotonic(), DILATION))
    return device


async def reader(ctx, receives, random, got):
    """Receives from (peer, tag) after (peer, tag); some are started some steps before they are awaited."""
    started, x = deque(), torch.ones(1, 1, 2)
    for peer, tag in receives:
        started.append((peer, tag, ctx.recv(peer, tag)))
        if random.random() < 0.3:
            await ctx.compute(Add(), x, x)
        while started and random.random() < 0.8:
            await first_of(started, got)
    while started:
        await first_of(started, got)


async def first_of(started, got):
    peer, tag, handle = started.popleft()
    got[peer, tag].append(int((await handle)[0]))


async def several(ctx, shares, random, got):
    """Reads each share in a program of its own, at the same time."""
    for handle in [ctx.spawn(reader(ctx, share, random, got)) for share in shares[1:]]:
        shares[0].append(handle)
    receives = [item for item in shares[0] if isinstance(item, tuple)]
    await reader(ctx, receives, random, got)
    for item in shares[0][len(receives) :]:
        await item


def drawn(seed):
    """What is sent (peer, tag, rows) by the schedule `seed`, and the rest of its chance.

    Not by hypothesis: the wall clock takes part in a schedule, so that not every failure comes again, which
    hypothesis would call flaky in place of saying it.
    """
    random = Random(seed)
    number = random.randint(1, 24)
    sent = [(random.choice(PEERS), random.choice(TAGS), random.randint(1, 2000)) for _ in range(number)]
    return sent, random


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("kind", [NativeDevice, RealDevice])
@pytest.mark.parametrize("alone", [False, True])
def test_a_real_device_takes_messages_in_their_order(kind, held, alone, monkeypatch):
    monkeypatch.setattr(native, "TURN_S", 0.0)  # a program that computes always looks
    for seed in range(SCHEDULES):
        sent, random = drawn(seed)
        coming, numbers, shares = {peer: deque() for peer in PEERS}, defaultdict(count), [[], []]
        for peer, tag, rows in sent:
            coming[peer].append(incoming(peer, tag, next(numbers[peer, tag]), rows))
            shares[0 if alone else TAGS.index(tag)].append((peer, tag))
        device, got = device_of(kind, held, Wire(coming, random), Changing(random)), defaultdict(list)
        assert device.run(several(device, shares, random, got), time.monotonic()) == "finished", seed
        assert sum(map(len, got.values())) == len(sent), seed
        assert all(found == list(range(len(found))) for found in got.values()), seed


@given(
    sent=st.lists(st.tuples(st.integers(1, 100_000), st.sampled_from([0.0, 1e-3, 0.1])), max_size=12),
    changes=st.lists(
        st.tuples(
            st.integers(0, 1000),
            st.sampled_from([None, 0.0, 0.05, 0.01]),
            st.sampled_from([0.0, 0.3]),
        ),
        max_size=4,
    ),
)
def test_simulated_messages_arrive_in_their_order(sent, changes):
    cluster = message_programs.star("ab", delay_s=0.2, rates={"a": 1e8, "b": 1e8})
    costly = cluster.devices[1].model_copy(update={"byte_overhead_s": BYTE_S})
    cluster = cluster.model_copy(update={"devices": (cluster.devices[0], costly)})
    scenario = tuple(
        SetDelay(at_s=at_ms / 1e3, link="b--s1", delay_s=delay_s)
        if delay_s is not None
        else SetLoss(at_s=at_ms / 1e3, link="b--s1", loss_frac=loss_frac)
        for at_ms, delay_s, loss_frac in changes
    )
    world, _ = message_programs.world_of(cluster, scenario)
    got = []

    async def send(ctx):
        for index, (size, pause_s) in enumerate(sent):
            ctx.send(Meta((1, size)), 1, "x", note=(index,))
            await ctx.until(ctx.now_s + pause_s)

    async def receive(ctx):
        for _ in sent:
            (index,), _ = await ctx.recv_noted(0, "x")
            got.append(index)

    message_programs.run(world, (0, send), (1, receive))
    assert got == list(range(len(sent)))


@pytest.mark.parametrize("sequence", [0, 2])
def test_a_message_that_is_not_the_next_of_its_tag_ends_the_run_in_one_sentence(sequence):
    device = device_of(NativeDevice, False, Wire({}, None), None)
    device._deliver(incoming(1, "x", 0, 1), 0.0)
    device._deliver(incoming(2, "x", 0, 1), 0.0)
    with pytest.raises(
        RunError, match=rf"^d0 got message {sequence} of 'x' from d1 .*message 1 is next: .*\.$"
    ):
        device._deliver(incoming(1, "x", sequence, 1), 0.0)


def test_a_new_plan_counts_from_the_start():
    device = device_of(NativeDevice, False, Wire({}, None), None)
    device._deliver(incoming(1, "x", 0, 1), 0.0)
    assert device.number_message(1, "x") == (0, 0)
    device.halt()
    device._deliver(incoming(1, "x", 0, 1), 0.0)
    assert device.number_message(1, "x") == (1, 0), "messages of a pair are counted over all plans"
