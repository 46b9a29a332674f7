"""A simulated device: what it does one after the other, what at once, and what freezing and halting do."""

import pytest

from engine.domain.plan import Slice
from engine.domain.scenario import DropDevice, FreezeDevice, JoinDevice, SlowDevice
from engine.domain.trace import Span
from engine.ops.core import Add
from engine.ops.cost import NATIVE_INLINE_FLOPS
from engine.ops.tensors import Meta
from engine.worlds.simulated.kernel import FAULT
from engine.worlds.simulated.world import SimulatedWorld
from tests.support.message_programs import run, star, world_of

ROWS = Meta((1, 1000, 8))
HELD = Slice(layer=0, part="attention", axis="heads", start=0, stop=2)


def spans(trace, kind):
    return [item for item in trace if isinstance(item, Span) and item.kind == kind]


def add(ctx):
    return ctx.compute(Add(), ROWS, ROWS)


def time_of_one_add():
    world, trace = world_of(star())
    run(world, (0, adds_one_after_the_other(1)))
    (span,) = spans(trace, "compute")
    return span.end_s


def adds_one_after_the_other(count):
    async def program(ctx):
        for _ in range(count):
            await add(ctx)

    return program


def test_operations_of_one_device_run_one_after_the_other_even_if_they_are_asked_for_at_once():
    world, trace = world_of(star())

    async def asks_at_once(ctx):
        for handle in [add(ctx), add(ctx), add(ctx)]:
            await handle

    run(world, (0, asks_at_once))
    one_s = time_of_one_add()
    assert one_s > 0
    assert [(span.start_s, span.end_s) for span in spans(trace, "compute")] == [
        (pytest.approx(turn * one_s), pytest.approx((turn + 1) * one_s)) for turn in range(3)
    ]


def test_operations_of_two_devices_run_at_once():
    world, trace = world_of(star())
    run(world, (0, adds_one_after_the_other(1)), (1, adds_one_after_the_other(1)))
    assert [(span.device, span.start_s) for span in spans(trace, "compute")] == [("a", 0.0), ("b", 0.0)]


def test_the_disk_reads_one_slice_after_the_other_at_its_rate_while_the_processor_computes():
    world, trace = world_of(star())

    async def loads_and_computes(ctx):
        handles = [
            ctx.load(HELD),
            ctx.load(HELD.model_copy(update={"part": "norm1", "axis": "all"})),
            add(ctx),
        ]
        for handle in handles:
            await handle

    run(world, (0, loads_and_computes))
    first, second = spans(trace, "load")
    disk_byte_per_s = world.devices[0].device.disk_byte_per_s
    assert (first.start_s, first.end_s) == (0.0, pytest.approx(first.bytes / disk_byte_per_s))
    assert second.start_s == first.end_s
    assert second.end_s == pytest.approx((first.bytes + second.bytes) / disk_byte_per_s)
    assert spans(trace, "compute")[0].start_s == 0.0


def test_a_slow_device_takes_as_many_times_as_long_from_then_on():
    one_s = time_of_one_add()
    world, trace = world_of(star(), [SlowDevice(at_s=one_s * 1.5, device="a", factor=4.0)])
    run(world, (0, adds_one_after_the_other(3)))
    took_s = [span.end_s - span.start_s for span in spans(trace, "compute")]
    # the second one had begun when its device became slow
    assert took_s == [pytest.approx(one_s), pytest.approx(one_s), pytest.approx(4 * one_s)]


def test_a_frozen_device_starts_nothing_until_it_thaws():
    one_s = time_of_one_add()
    world, trace = world_of(star(), [FreezeDevice(at_s=one_s * 0.5, device="a")])
    thaw = JoinDevice(at_s=one_s * 10, device="a")
    world.kernel.schedule(thaw.at_s, lambda: world.faults.apply(thaw), FAULT)
    run(world, (0, adds_one_after_the_other(2)))
    assert [span.start_s for span in spans(trace, "compute")] == [0.0, pytest.approx(10 * one_s)]


def test_halted_programs_leave_neither_processor_nor_disk_busy():
    world, trace = world_of(star(), [DropDevice(at_s=0.5, device="b")])
    after = []

    async def asks_for_much(ctx):
        ctx.load(HELD)
        for _ in range(10_000):
            add(ctx)
        await ctx.recv(1, "m")

    async def goes_on(ctx):
        after.append(ctx.now_s)
        await add(ctx)

    world.run([(0, asks_for_much(world.devices[0]))], recover=lambda event: [(0, goes_on(world.devices[0]))])
    assert time_of_one_add() * 10_000 > 0.5
    last = spans(trace, "compute")[-1]
    assert last.start_s == after[0] == pytest.approx(0.5)


class Supposes:
    """A decision that depends on data."""

    def __call__(self, *inputs):
        raise AssertionError("there are no numbers to decide by")

    def prior(self, *inputs):
        return "supposed"


@pytest.mark.parametrize(
    ("decisions", "answer"),
    [({}, "supposed"), ({("a", "which"): "recorded"}, "recorded"), ({("b", "which"): "other"}, "supposed")],
)
def test_a_decision_is_the_recorded_one_of_this_device_or_else_the_supposed_one(decisions, answer):
    plain, _ = world_of(star())
    trace, got = [], []
    world = SimulatedWorld(plain.spec, plain.plan, trace.append, decisions)

    async def decides(ctx):
        got.append(ctx.decide("which", Supposes()))

    run(world, (0, decides))
    assert got == [answer]
    assert [m.facts for m in trace if getattr(m, "name", "") == "decided"] == [
        {"decision": "which", "answer": answer}
    ]


def test_the_runtime_adds_its_time_to_every_operation_and_hand_over_to_long_ones():
    cluster = star()
    costs = {"dispatch_s": 0.5, "handover_s": 0.25, "memory_bytes": 2e9}
    costly = [device.model_copy(update=costs) for device in cluster.devices]
    world, trace = world_of(cluster.model_copy(update={"devices": tuple(costly)}))
    long = Meta((1, NATIVE_INLINE_FLOPS // 8, 8))

    async def one_of_each(ctx):
        await add(ctx)
        await ctx.compute(Add(), long, long)

    run(world, (0, one_of_each))
    short_span, long_span = spans(trace, "compute")
    assert short_span.end_s - short_span.start_s == pytest.approx(time_of_one_add() + 0.5, abs=1e-12)
    assert long_span.end_s - long_span.start_s == pytest.approx(
        0.5 + 0.25 + 20e-6 + 3 * 4 * NATIVE_INLINE_FLOPS / 1e9, abs=1e-12
    )
