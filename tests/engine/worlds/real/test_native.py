"""A device at native speed: short operations run at once, long ones in the compute thread."""

import time

import pytest
import torch

from engine.domain.trace import Mark, Span
from engine.ops.core import Add
from engine.ops.cost import NATIVE_INLINE_FLOPS
from engine.runs.predict import prepare
from engine.worlds.common.programs import Program
from engine.worlds.real import native
from engine.worlds.real.connections import Connections
from engine.worlds.real.device_process import TraceWriter
from engine.worlds.real.native import NativeDevice
from engine.worlds.real.tasks import Clock
from tests.support.fake_devices import small_spec


class Heard:
    """A supervisor that says nothing, and keeps what it is sent."""

    def __init__(self):
        self.messages = []

    def receive(self):
        return None

    def send(self, message):
        self.messages.append(message)


@pytest.fixture
def trace():
    return []


@pytest.fixture
def device(trace):
    prepared = prepare(small_spec())
    connections = Connections(0, "127.0.0.1")
    made = NativeDevice(
        0, prepared.spec, prepared.plan, trace.append, None, False, frozenset(), connections, Heard()
    )
    made.set_clock(Clock(time.monotonic(), 1.0))
    made.ledger.memory_bytes = 4e9
    made.turned_s = float("inf")  # the loop has just had its turn
    made.current = Program(0, None, 0.0)
    yield made
    for sock in (connections.listener, connections._woken, connections._waker):
        sock.close()


def test_a_short_operation_is_done_at_once_and_the_program_has_moved_on_to_its_end(device, trace):
    x = torch.ones(1, 2, 4)
    handle = device.compute(Add(), x, x)
    assert handle.done and handle.value.tolist() == (2 * x).tolist()
    (span,) = trace
    assert (span.kind, span.flops) == ("compute", 8)
    assert 0 <= span.start_s <= span.end_s == handle.time_s == device.now_s
    assert device.compute_pacer.stats().operations == 1
    assert not device.due and not device.outstanding


def test_an_operation_of_many_flops_goes_to_the_compute_thread(device, trace):
    x = torch.empty(1, 2, NATIVE_INLINE_FLOPS // 2, device="meta")
    handle = device.compute(Add(), x, x)
    assert not handle.done and not trace
    assert device.compute_tasks.qsize() == device.computing == 1
    small = device.compute(Add(), torch.ones(1, 1, 4), torch.ones(1, 1, 4))
    assert not small.done, "operations of one device end in their order"
    assert device.compute_tasks.qsize() == 2


def test_while_bytes_wait_to_be_sent_operations_go_to_the_compute_thread(device, monkeypatch):
    monkeypatch.setattr(Connections, "is_writing", True)
    assert not device.compute(Add(), torch.ones(1, 1, 4), torch.ones(1, 1, 4)).done
    assert device.compute_tasks.qsize() == 1


def test_the_loop_gets_a_turn_when_a_program_has_computed_for_long(device, trace):
    device.turned_s = time.monotonic() - 2 * native.TURN_S
    handle = device.compute(Add(), torch.ones(1, 1, 4), torch.ones(1, 1, 4))
    assert not handle.done and len(device.due) == 1
    device.live.add(device.current)
    device._next()
    assert handle.done and trace[0].kind == "compute"
    assert device.turned_s > time.monotonic() - native.TURN_S


def test_spans_are_held_until_the_program_has_ended_and_marks_are_not():
    control = Heard()
    writer = TraceWriter(control, holds=True)
    writer.emit(Span("d0", "compute", "add", 0, 0.0, 1.0))
    writer.emit(Mark(1.0, "token_emitted", "d0"))
    writer.flush()
    assert [item["type"] for message in control.messages for item in message["items"]] == ["mark"]
    writer.finish()
    assert [item["type"] for message in control.messages for item in message["items"]] == ["mark", "span"]
    writer.finish()
    assert len(control.messages) == 2
