"""A real device without a supervisor process: its clock, the messages it handles and those it sends."""

import pytest
import torch

from engine.domain.cluster import ClusterSpec
from engine.domain.network import PairMeasurement
from engine.domain.scenario import SetDelay, SetRate, SlowDevice
from engine.program.frames import FRAME_HEADER_BYTES, FrameHeader
from engine.runs.predict import prepare
from engine.worlds.common.programs import Program
from engine.worlds.real.connections import Connections, Incoming
from engine.worlds.real.device import RealDevice
from engine.worlds.real.tasks import Clock
from engine.worlds.real.watchdog import silence_limits
from tests.support.fake_devices import small_spec


class Supervisor:
    """`told` is what it will be told next; `heard` what the device has sent."""

    def __init__(self):
        self.orders, self.heard = [], []

    def has_message(self):
        return False

    def receive(self):
        return self.orders.pop(0) if self.orders else None

    def send(self, message):
        self.heard.append(message)


@pytest.fixture
def make():
    made = []

    def device(paced=True, held=frozenset(), **more):
        prepared = prepare(small_spec(silence_s=3.0, **more))
        connections = Connections(0, "127.0.0.1")
        found = RealDevice(
            0, prepared.spec, prepared.plan, lambda item: None, None, paced, held, connections, Supervisor()
        )
        found.set_clock(Clock(100.0, 4.0))
        made.append(found)
        return found

    yield device
    for found in made:
        for sock in (found.connections.listener, found.connections._woken, found.connections._waker):
            sock.close()


def test_the_watchdogs_limits_grow_with_the_dilation(make):
    assert make().watchdog.limits == silence_limits(3.0, 4.0)
    assert make().watchdog.limits.suspect_after_s == 12.0


def test_operations_are_paced_with_the_dilation_and_native_ones_are_not(make):
    assert make().compute_pacer.plan(100.0, 0.5) == (100.0, 102.0)
    assert make(paced=False).compute_pacer.plan(100.0, 0.5) == (100.0, 100.0)


def test_a_device_that_was_frozen_is_not_late_for_what_was_due_meanwhile(make):
    device = make()
    order = {"type": "change", "change": {"kind": "join_device", "at_s": 1.0, "device": "d1"}}
    device.handle_message(order)
    assert device.compute_pacer.resumed_s == device.disk_pacer.resumed_s == 0.0  # another one goes on
    device.handle_message({**order, "change": {**order["change"], "device": "d0"}})
    assert device.compute_pacer.resumed_s > 0.0 and device.disk_pacer.resumed_s > 0.0


async def waits(handle):
    await handle


def test_a_device_waits_for_peers_since_the_time_at_which_its_program_began_to(make):
    device = make()
    assert device._awaited() == {}
    for begun_s, peer, tag in ((2.0, 1, "x"), (1.0, 1, "y"), (5.0, 2, "x")):
        device.start(Program(0, waits(device.recv(peer, tag)), begun_s))
    assert device._awaited() == {1: 104.0, 2: 120.0}  # wall: 100 + 4 × virtual
    device.halt()
    assert device._awaited() == {}


def test_a_message_that_no_program_waits_for_is_not_awaited(make):
    device = make()
    device.recv(1, "x")
    assert device._awaited() == {}


def test_a_suspected_peer_is_reported_unless_it_has_failed_already(make):
    device = make()
    device.watchdog.suspect(1)
    assert device.control.heard == [{"type": "suspect", "rank": 1, "last_byte_s": None}]
    device.handle_message({"type": "lost", "rank": 2, "killed_s": None})
    device.watchdog.suspect(2)
    assert len(device.control.heard) == 1


def set_delays(device, delay_s):
    for link in device.cluster.links:
        change = SetDelay(at_s=0.0, link=link.name, delay_s=delay_s)
        device.handle_message({"type": "change", "change": change.model_dump(mode="json")})


def learns_when(device, monkeypatch, until_s):
    """Run `device`, whose program waits for d1, until wall time `until_s`; when it learned of d1's end."""
    now_s, learned = [100.0], []
    monkeypatch.setattr("engine.worlds.real.loop.time.monotonic", lambda: now_s[0])
    monkeypatch.setattr(device, "_lose", lambda rank, at_s: learned.append((rank, at_s)))
    monkeypatch.setattr(device.watchdog, "check", lambda at_s: None)
    device._wait = lambda timeout_s: ([], [])
    while now_s[0] < until_s:
        device._next()
        now_s[0] += 0.25
    return learned


def test_a_device_learns_of_a_killed_one_after_the_delay_of_the_path_from_it(make, monkeypatch):
    device = make()
    set_delays(device, 0.5)  # a virtual second over two links, and D = 4
    device.start(Program(0, waits(device.recv(1, "x")), 0.0))
    device.control.orders.append({"type": "lost", "rank": 1, "killed_s": 0.25})
    assert learns_when(device, monkeypatch, 110.0) == [(1, 100.0 + 4 * 1.25)]


@pytest.mark.parametrize("early", ["halt", "join"])
def test_a_halt_and_a_join_do_not_wait_for_what_a_device_would_learn_later(make, monkeypatch, early):
    device = make()
    set_delays(device, 0.5)
    device.start(Program(0, waits(device.recv(1, "x")), 0.0))
    device.handle_message({"type": "lost", "rank": 1, "killed_s": 0.25})
    assert device.failed == set()
    learned = []
    monkeypatch.setattr(device, "_lose", lambda rank, at_s: learned.append(rank))
    if early == "halt":
        device.halt()
    else:
        change = {"kind": "join_device", "at_s": 1.0, "device": "d1"}
        device.handle_message({"type": "change", "change": change})
    assert learned == [1]
    assert not device.due


def test_a_halt_before_the_loss_of_a_peer_is_known_resumes_no_abandoned_program(make):
    device = make()
    set_delays(device, 0.5)
    device.start(Program(0, waits(device.recv(1, "x")), 0.0))
    device.handle_message({"type": "lost", "rank": 1, "killed_s": 0.25})
    device.halt()
    assert device.failed == {1} and not device.live and not device.due


def test_a_change_is_known_to_the_device(make):
    device = make()
    slower = SlowDevice(at_s=0.0, device="d0", factor=2.0)
    before = device.cluster_now.devices[0].flop_per_s
    device.handle_message({"type": "change", "change": slower.model_dump(mode="json")})
    assert device.cluster_now.devices[0].flop_per_s == before / 2
    link = device.cluster.links[0].name
    rate = SetRate(at_s=0.0, link=link, bit_per_s=1e6)
    device.handle_message({"type": "change", "change": rate.model_dump(mode="json")})
    assert device.paths.rates[0, True] == 1e6


def arrival(sent_s, due_s, arrived_s, size=800):
    header = FrameHeader(0, size, (0, 0), sent_s, due_s, "uint8", (size,), "x")
    return Incoming(1, header, bytearray(size), arrived_s)


def test_a_paced_message_is_usable_no_earlier_than_an_idle_path_could_bring_it(make):
    device = make()
    device.paths.changed_s = 0.0
    assert device._usable_s(arrival(101.0, 103.0, 102.0)) == 103.0
    assert device._usable_s(arrival(101.0, 103.0, 104.0)) == 104.0
    assert make(paced=False)._usable_s(arrival(101.0, 0.0, 102.0)) == 102.0, "nobody models its path"
    slowed = make(paced=False)
    slowed.paths.changed_s = 0.0
    assert slowed._usable_s(arrival(101.0, 103.0, 102.0)) == 103.0, "its sender says when it may be used"


def test_a_message_that_was_under_way_when_a_link_changed_counts_from_its_arrival(make):
    device = make()
    device.paths.changed_s = 101.5
    assert device._usable_s(arrival(101.0, 103.0, 102.0)) == 102.0
    device.paths.given = {(1, 0): PairMeasurement(1, 0, 1e9, 0.0, 0.0)}
    assert device._usable_s(arrival(101.0, 103.0, 102.0)) == 103.0, "a network that nobody shapes"


def test_a_device_holds_messages_for_the_delay_that_the_network_cannot_make(make):
    links = [{"a": f"d{i}", "b": "s1", "bit_per_s": 1e8, "delay_s": (i + 1) * 1e-3} for i in range(3)]
    cluster = ClusterSpec.model_validate(small_spec().cluster.model_dump() | {"links": links})
    device = make(held=frozenset({0, 1}), cluster=cluster)
    assert device._usable_s(arrival(101.0, 0.0, 102.0)) == pytest.approx(102.0 + 4 * (0.001 + 0.002))


def test_waiting_for_a_message_of_the_supervisor_returns_it(make):
    device = make()
    device.control.orders.append({"type": "exit"})
    assert device.wait_for_message() == {"type": "exit"}


class TakesAtOnce:
    """The kernel's end of a connection whose buffer always has room; `headers` are those of its messages."""

    def __init__(self):
        self.headers = []

    def write(self, header, note, payload, done):
        self.headers.append(header)
        done(header.sent_s)


async def sends_to_both(device):
    for peer in (1, 2):
        await device.send(torch.zeros(800, dtype=torch.uint8), peer, "x")


@pytest.mark.parametrize(
    ("changed_s", "takes_s"), [(0.0, 0.5 + (FRAME_HEADER_BYTES + 800) * 8 / 1e8), (101, 0)]
)
def test_a_paced_sender_goes_on_when_its_message_has_left_by_the_model_of_device_and_link(
    make, monkeypatch, changed_s, takes_s
):
    cluster = small_spec().cluster
    costly = cluster.devices[0].model_copy(update={"message_overhead_s": 0.5})
    device = make(cluster=cluster.model_copy(update={"devices": (costly, *cluster.devices[1:])}))
    device.paths.changed_s = changed_s  # what was under way then has left when the kernel has it
    device.connections.sending = {1: TakesAtOnce(), 2: TakesAtOnce()}
    device.start(Program(0, sends_to_both(device), 0.0))
    learns_when(device, monkeypatch, 110.0)
    (second,) = device.connections.sending[2].headers
    assert second.sent_s == pytest.approx(100.0 + 4 * takes_s)


def drawn_slow(make, **more):
    """d0, whose own link has 8,000 bit/s in a network that nobody shapes; it is to have ten times as much."""
    links = [{"a": f"d{i}", "b": "s1", "bit_per_s": 1e6 if i else 8000.0, "delay_s": 0.0} for i in range(3)]
    cluster = ClusterSpec.model_validate(small_spec().cluster.model_dump() | {"links": links})
    device = make(cluster=cluster, **more)
    pairs = ((0, 1), (1, 0), (0, 2), (2, 0))
    device.paths.given = {pair: PairMeasurement(*pair, 1e9, 0.0, 0.0) for pair in pairs}
    link = device.cluster.links[0].name
    change = SetRate(at_s=0.0, link=link, bit_per_s=80_000.0).model_dump(mode="json")
    return device, {"type": "change", "change": change}


def known(message, changes):
    return message._replace(header=message.header._replace(changes=changes))


def test_where_nobody_shapes_the_network_the_rest_of_a_message_is_due_at_the_rate_of_now(make, monkeypatch):
    """Virtual times: due at 12.5 s and 15 s, and from 2.5 s on ten times as fast: at 3.5 s and 3.75 s."""
    device, order = drawn_slow(make)
    monkeypatch.setattr("engine.worlds.real.loop.time.monotonic", lambda: 100.0 + 4 * 2.5)
    for due_s in (12.5, 15.0):
        device._accept(arrival(101.0, 100.0 + 4 * due_s, 101.0))
    told = known(arrival(109.9, 100.0 + 4 * 3.9, 110.0), 1)  # its sender heard of the change before
    device._accept(told)
    device.handle_message(order)
    device._accept(arrival(101.0, 100.0 + 4 * 17.5, 110.0))  # this one comes late, and was sent before
    due_s = [(at_s - 100.0) / 4 for at_s, _, _ in sorted(device.due)]
    assert due_s == pytest.approx([3.5, 3.75, 3.9, 4.0])


def test_where_nobody_shapes_the_network_a_message_starts_when_those_before_have_left_by_the_rate_of_now(
    make, monkeypatch
):
    device, order = drawn_slow(make)
    now_s = [100.0]
    monkeypatch.setattr("engine.worlds.real.loop.time.monotonic", lambda: now_s[0])
    device.connections.sending = {1: TakesAtOnce(), 2: TakesAtOnce()}
    size = FRAME_HEADER_BYTES + 9888  # 80,000 bits: 10 s, and a second at the new rate
    x = torch.zeros(9888, dtype=torch.uint8)
    device.current = Program(0, None, 0.0)
    device.send(x, 1, "x"), device.send(x, 1, "x")
    assert device.departed_s[1] == pytest.approx(2 * size * 8 / 8000, abs=0.01)
    now_s[0] = 100.0 + 4 * 2.0
    device.handle_message(order)
    assert device.departed_s[1] == pytest.approx(2.0 + 1.8, abs=0.01)
    assert sorted(alarm[1] for alarm in device.alarms) == pytest.approx([2.8, 3.8], abs=0.01)
    device.current.now_s = 2.0
    device.send(x, 1, "x")
    assert [header.changes for header in device.connections.sending[1].headers] == [0, 0, 1]
    third = device.connections.sending[1].headers[2]
    assert third.due_s == pytest.approx(100.0 + 4 * (2.0 + 1.8 + 1.0), abs=0.01)
    device.send(x, 2, "x")  # 80,000 bits share the link until they are through
    fourth = device.connections.sending[2].headers[0]
    assert fourth.due_s == pytest.approx(100.0 + 4 * (2.0 + 2.0), abs=0.01)


def test_what_a_message_costs_to_stage_is_virtual_time(make):
    cluster = small_spec().cluster
    staging = cluster.devices[0].model_copy(update={"staging_byte_per_s": 1e6})
    device = make(cluster=cluster.model_copy(update={"devices": (staging, *cluster.devices[1:])}))
    expected_s = 102.0 + 4 * (FRAME_HEADER_BYTES + 800) / 1e6
    assert device._usable_s(arrival(101.0, 0.0, 102.0)) == pytest.approx(expected_s)


def test_what_the_receiver_spends_on_a_message_is_virtual_time(make):
    cluster = small_spec().cluster
    costly = cluster.devices[0].model_copy(update={"receive_overhead_s": 0.5, "byte_overhead_s": 1e-3})
    device = make(cluster=cluster.model_copy(update={"devices": (costly, *cluster.devices[1:])}))
    expected_s = 102.0 + 4 * (0.5 + (FRAME_HEADER_BYTES + 800) * 1e-3)
    assert device._usable_s(arrival(101.0, 0.0, 102.0)) == pytest.approx(expected_s)


def test_messages_from_before_the_last_new_plan_are_dropped(make):
    device = make()
    device.start(Program(0, waits(device.recv(1, "x")), 0.0))
    device.epoch = 1
    old = arrival(101.0, 1e9, 102.0)
    new = old._replace(header=old.header._replace(epoch=1))
    device.early += [old, new]
    device._next()
    assert [item for _, _, item in device.due] == [new]
    device.halt()
