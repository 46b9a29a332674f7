"""Devices that share the cores of one host: processor sharing, worked out by hand."""

import pytest

from engine.domain.host_times import RuntimeCosts
from engine.worlds.simulated.cores import SharedCores
from engine.worlds.simulated.kernel import SimulationKernel
from engine.worlds.simulated.world import SimulatedWorld
from tests.engine.worlds.simulated.test_simulated_device import adds_one_after_the_other, spans
from tests.support.message_programs import run, star, world_of


def ends(works, slowdown):
    """When each (start, seconds alone) ends."""
    kernel, found = SimulationKernel(), {}
    cores = SharedCores(kernel, slowdown)
    for number, (start_s, duration_s) in enumerate(works):

        def begin(number=number, duration_s=duration_s):
            cores.begin(duration_s, lambda: found.update({number: kernel.now_s}))

        kernel.schedule(start_s, begin)
    kernel.run(is_over=lambda: False, when_idle=lambda: False)
    return [found[number] for number in range(len(works))]


def one_core(computing):
    return float(computing)


def test_one_operation_takes_its_own_time():
    assert ends([(1.0, 2.0)], one_core) == [3.0]


def test_two_operations_on_one_core_take_twice_as_long_and_end_together():
    assert ends([(0.0, 1.0), (0.0, 1.0)], one_core) == [pytest.approx(2.0)] * 2


def test_an_operation_that_begins_later_slows_the_first_from_then_on():
    # the first has 1 s left at 1.0 and needs 2 s for it; then the second has 0.5 s left and the core alone
    assert ends([(0.0, 2.0), (1.0, 1.5)], one_core) == [pytest.approx(3.0), pytest.approx(3.5)]


def test_two_cores_share_only_among_three():
    slowdown = RuntimeCosts(slowdown=(1.0, 1.0, 1.5)).slowdown_of
    # three at 2/3 of their speed: the shortest ends at 1.5, and two have 1 s left, each on a core
    assert ends([(0.0, 1.0), (0.0, 2.0), (0.0, 2.0)], slowdown) == [
        pytest.approx(1.5),
        pytest.approx(2.5),
        pytest.approx(2.5),
    ]


def on_host(slowdown):
    plain, trace = world_of(star())
    return SimulatedWorld(plain.spec, plain.plan, trace.append, host=RuntimeCosts(slowdown=slowdown)), trace


def test_devices_of_one_host_slow_each_other_down_and_one_alone_does_not():
    alone, alone_trace = on_host((1.0, 1.7))
    run(alone, (0, adds_one_after_the_other(2)))
    together, trace = on_host((1.0, 1.7))
    run(together, (0, adds_one_after_the_other(2)), (1, adds_one_after_the_other(2)))
    one_s = spans(alone_trace, "compute")[0].end_s
    assert spans(alone_trace, "compute")[1].end_s == pytest.approx(2 * one_s)
    assert [(span.start_s, span.end_s) for span in spans(trace, "compute")] == [
        (pytest.approx(turn * 1.7 * one_s), pytest.approx((turn + 1) * 1.7 * one_s)) for turn in (0, 0, 1, 1)
    ]


def test_operations_of_one_device_do_not_share_but_wait_for_each_other():
    world, trace = on_host((1.0, 1.7))

    async def at_once(ctx):
        from tests.engine.worlds.simulated.test_simulated_device import add

        for handle in [add(ctx), add(ctx)]:
            await handle

    run(world, (0, at_once))
    first, second = spans(trace, "compute")
    assert second.start_s == first.end_s
    assert second.end_s == pytest.approx(2 * first.end_s)
