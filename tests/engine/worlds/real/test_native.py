"""A device at native speed: short operations run at once, long ones in the compute thread."""

import math
import struct
import time
from dataclasses import dataclass
from itertools import pairwise

import pytest
import torch

from engine.domain.errors import OutOfMemory
from engine.domain.trace import Mark, Span
from engine.ops.core import Add
from engine.ops.cost import NATIVE_INLINE_FLOPS
from engine.ops.kv_cache import PutRows
from engine.ops.layers import Layers
from engine.ops.torch_kernels.dispatch import FUNCTIONS
from engine.program.frames import FrameHeader
from engine.runs.predict import prepare
from engine.worlds.common.programs import Program
from engine.worlds.real import native
from engine.worlds.real.connections import Connections, Incoming
from engine.worlds.real.native import NativeDevice
from engine.worlds.real.tasks import Clock, run_task
from engine.worlds.real.trace_writer import TraceWriter
from tests.support.fake_devices import small_spec


class Heard:
    """A supervisor that keeps what it is sent, and wants no sign of life. `orders` are what it says next."""

    sent_s = math.inf

    def __init__(self):
        self.messages, self.orders = [], []

    def has_message(self):
        return bool(self.orders)

    def receive(self):
        return self.orders.pop(0) if self.orders else None

    def send(self, message):
        self.messages.append(message)


@dataclass(frozen=True)
class Double:
    """Doubles its input. It costs what an addition costs."""

    layer: int
    name = "double"
    cache = None

    def slices(self, model):
        return ()

    def cost(self, model, inputs, cached):
        return Add().cost(model, inputs, cached)


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
    made.model = made.model.model_copy(update={"num_layers": 3})
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
    assert not trace, "the trace is written later"
    device.settle()
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
    x = torch.ones(1, 1, 4)
    before_s = time.monotonic()
    device.turned_s = before_s - 2 * native.TURN_S
    assert device.compute(Add(), x, x).done, "the loop has nothing to do"
    assert device.turned_s >= before_s, "which counts as its turn"
    device.turned_s -= 2 * native.TURN_S
    device.control.orders.append({"type": "status", "question": 1})
    handle = device.compute(Add(), x, x)
    assert not handle.done and len(device.due) == 1
    device.live.add(device.current)
    device._next()
    device.settle()
    assert handle.done and [span.kind for span in trace] == ["compute", "compute"]
    assert [message["type"] for message in device.control.messages] == ["status"]


@pytest.fixture
def arriving(device, monkeypatch):
    """What the device finds when it polls: lists of messages of device 1, the first list first."""
    turns = []
    device.polls = True
    monkeypatch.setattr(Connections, "poll", lambda self: (turns.pop(0), []) if turns else ([], []))
    monkeypatch.setattr(native, "POLL_S", 60.0)
    return turns


def message(tag, number=0.0, epoch=0):
    header = FrameHeader(0, 4, (0, 1), 0.0, 0.0, "float32", (1,), tag, epoch=epoch)
    return Incoming(1, header, bytearray(struct.pack("<f", number)), time.monotonic())


def running(device, program):
    """`program` after its first step on `device`."""
    started = Program(0, program, device.now_s)
    device.live.add(started)
    device._resume(started)
    return started


async def received(ctx, tag):
    return float(await ctx.recv(1, tag))


def test_a_message_that_comes_soon_is_found_within_the_program_that_waits_for_it(device, trace, arriving):
    arriving += [[], [message("other", 2.0)], [message("wanted", 3.0)]]
    program = running(device, received(device, "wanted"))
    assert program.handle.value == 3.0 and not device.live, "the program never left"
    assert [len(queue) for queue in device.arrived.values()] == [0, 1], "the other message is kept"
    device.settle()
    assert [span.kind for span in trace if isinstance(span, Span)] == ["recv", "recv", "wait"]


def test_a_message_of_an_earlier_plan_is_no_answer_to_a_program_that_looks_for_one(device, arriving):
    device.epoch = 1
    arriving += [[message("wanted", 2.0, epoch=0)], [message("wanted", 3.0, epoch=1)]]
    assert running(device, received(device, "wanted")).handle.value == 3.0


@pytest.mark.parametrize("why", ["no core", "held delays", "another program", "computing"])
def test_a_program_leaves_the_main_thread_where_polling_would_keep_it_from_other_work(device, arriving, why):
    device.polls = why != "no core"
    device.holds_messages = why == "held delays"
    device.outstanding = int(why == "computing")
    if why == "another program":
        device.live.add(Program(0, None, 0.0))
    arriving.append([message("wanted", 3.0)])
    program = running(device, received(device, "wanted"))
    assert program in device.live and len(arriving) == 1, "nobody has looked"
    program.close()


def test_the_ledger_knows_all_that_was_computed_whenever_it_is_asked(device, trace):
    """By hand: 2 inputs and 1 output of 2·4 float32 numbers each are 96 bytes beside the weights."""
    x = torch.ones(1, 2, 4)
    before = device.ledger.peak_bytes
    device.compute(Add(), x, x)
    device.at(3, 5)
    assert not trace and device._ledger.peak_bytes == before
    assert device.ledger.peak_bytes == max(before, device._ledger.weights_bytes + 96)
    span, mark = trace
    assert (span.request, span.token, mark.name) == (-1, -1, "memory")
    assert mark.facts["peak_bytes"] == device.ledger.peak_bytes


def test_memory_that_overflows_ends_the_run_when_the_operation_is_entered(device):
    device.ledger.memory_bytes = device.ledger.weights_bytes + 95
    x = torch.ones(1, 2, 4)
    device.compute(Add(), x, x)
    with pytest.raises(OutOfMemory, match="add"):
        device.settle()


def test_releasing_a_cache_is_entered_in_its_order_and_settles_nothing(device, trace):
    """By hand: the cache grows by one row of 16 bytes in one layer."""
    device._ledger.enter(PutRows(0, "r0"), 0, 1, 16)
    device.compute(Add(), torch.ones(1, 2, 4), torch.ones(1, 2, 4))
    device.release("r0")
    assert not trace and device._ledger.kv_bytes == 16
    device.at(1, 0)
    assert device.ledger.kv_bytes == 0
    assert trace[-1].facts["kv_bytes"] == 0


def test_layers_are_computed_one_after_the_other_until_one_has_to_wait(device, trace, monkeypatch):
    """Doubled three times; before the second, a message of the supervisor wants a turn of the loop."""

    monkeypatch.setitem(FUNCTIONS, Double, lambda op, model, weights, caches, x: 2 * x)

    def run(coroutine):
        program = Program(0, coroutine, 0.0)
        device.start(program)
        for _ in range(3):
            device._next()
        return program.handle.value

    layers, x = Layers((Double(0), Double(1), Double(2))), torch.ones(1, 2, 4)
    assert torch.equal(run(device.compute_layers(layers, x)), 8 * x)
    device.control.orders.append({"type": "status", "question": 1})
    device.turned_s = 0.0
    assert torch.equal(run(device.compute_layers(layers, x)), 8 * x)
    device.settle()
    spans = [item for item in trace if isinstance(item, Span)]
    assert [span.layer for span in spans] == [0, 1, 2] * 2
    assert all(before.end_s <= span.start_s + 1e-9 for before, span in pairwise(spans))
    assert [message["type"] for message in device.control.messages] == ["status"]


def test_layers_of_many_flops_are_handed_over_together_until_another_operation_waits(
    device, trace, monkeypatch
):
    """Three layers double an input; an addition that comes during the second is computed before the third."""

    def double(op, model, weights, caches, x):
        if op.layer == 1 and not given:
            given.append(device.compute(Add(), x, x))
        return 2 * x

    monkeypatch.setitem(FUNCTIONS, Double, double)
    monkeypatch.setattr(native, "hands_over", lambda flops, paced: True)
    given, x = [], torch.ones(1, 2, 4)
    program = Program(0, device.compute_layers(Layers((Double(0), Double(1), Double(2))), x), 0.0)
    device.start(program)
    tasks = []
    while device.outstanding:
        tasks.append(device.compute_tasks.get_nowait())
        device.done.append(run_task(tasks[-1]))
        device._next()
        device._next()
    assert [len(task.facts.get("chain", ((),))[0]) for task in tasks] == [3, 0, 1]
    assert torch.equal(program.handle.value, 8 * x) and torch.equal(given[0].value, 4 * x)
    device.settle()
    spans = [(span.name, span.layer) for span in trace if isinstance(span, Span)]
    assert spans == [("double", 0), ("double", 1), ("add", -1), ("double", 2)]


def test_layers_that_were_handed_over_end_when_their_program_is_abandoned(device, monkeypatch):
    ran = []
    monkeypatch.setitem(FUNCTIONS, Double, lambda op, model, weights, caches, x: ran.append(op.layer) or x)
    monkeypatch.setattr(native, "hands_over", lambda flops, paced: True)
    layers = Layers((Double(0), Double(1)))
    device.start(Program(0, device.compute_layers(layers, torch.ones(1, 2, 4)), 0.0))
    device.live.clear()
    run_task(device.compute_tasks.get())
    assert ran == [0]


def test_what_waits_for_the_trace_is_bounded(device, trace, monkeypatch):
    monkeypatch.setattr(native, "MOST_NOTED", 3)
    x = torch.ones(1, 2, 4)
    for _ in range(9):
        device.compute(Add(), x, x)
    assert len(trace) == 8 and len(device.noted) == 1


def test_workers_are_bound_to_cores_where_each_gets_one_or_all_cores_get_as_many(monkeypatch):
    bound = []
    monkeypatch.setattr(native, "granted_frac", lambda: 1.0)
    monkeypatch.setattr(native.os, "sched_getaffinity", lambda pid: {4, 7})
    monkeypatch.setattr(native.os, "sched_setaffinity", lambda pid, cores: bound.append(cores))
    assert native.keep_a_core(2, (1, 2)) and bound == [{7}]
    assert native.keep_a_core(0, (0,)) and bound == [{7}], "a single one may use all"
    assert not native.keep_a_core(0, (0, 1, 2)) and bound == [{7}], "one core would have two"
    assert not native.keep_a_core(0, (1, 2)) and bound == [{7}], "a source that computes nothing"
    assert not any(native.keep_a_core(rank, (0, 1, 2, 3)) for rank in range(4)), "none has a core alone"
    monkeypatch.setattr(native, "granted_frac", lambda: 0.5)
    assert not native.keep_a_core(0, (0,)), "what it polls would be taken off its quota"
    assert bound[1:] == [{4}, {7}, {4}, {7}]


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
