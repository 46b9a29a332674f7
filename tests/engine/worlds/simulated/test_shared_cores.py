"""Devices that share the cores of one host: processor sharing, worked out by hand."""

import pytest

from engine.domain.host_times import RuntimeCosts
from engine.worlds.simulated.cores import SharedCores, Threads
from engine.worlds.simulated.kernel import SimulationKernel
from engine.worlds.simulated.world import SimulatedWorld
from tests.engine.worlds.simulated.test_simulated_device import add, adds_one_after_the_other, spans
from tests.support.message_programs import PAYLOAD, receiver, run, sender, star, world_of


def ends(works, slowdown):
    """When each (start, seconds alone), or (start, seconds alone, core), ends."""
    kernel, found = SimulationKernel(), {}
    cores = SharedCores(kernel, slowdown)
    for number, (start_s, duration_s, *core) in enumerate(works):

        def begin(number=number, duration_s=duration_s, core=core):
            cores.begin(duration_s, lambda: found.update({number: kernel.now_s}), *core)

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


def test_work_that_is_bound_to_a_core_shares_that_core_alone():
    # two on core 0 at half their speed, one on core 1; memory takes 1.1 times as long while both cores work
    slowdown = RuntimeCosts(slowdown=(1.0, 1.1, 1.5, 2.0)).slowdown_of
    # core 1 ends at 1.1, when core 0 has done 0.5 s of each of its two, which then take 1 s more together
    found = ends([(0.0, 1.0, 0), (0.0, 1.0, 0), (0.0, 1.0, 1)], slowdown)
    assert found == [pytest.approx(2.1), pytest.approx(2.1), pytest.approx(1.1)]


@pytest.mark.parametrize(
    ("workers", "cores", "found"),
    [(4, 2, [0, 1, 0, 1]), (2, 2, [0, 1]), (1, 2, [None]), (3, 2, [None] * 3), (2, 0, [None] * 2)],
)
def test_devices_are_bound_to_cores_as_their_processes_are(workers, cores, found):
    host = RuntimeCosts(cores=cores)
    assert [host.core_of(rank, range(workers)) for rank in range(workers)] == found
    assert host.core_of(9, range(workers)) is None, "it computes nothing"


def on_host(slowdown, cluster=None, **costs):
    plain, trace = world_of(cluster or star())
    host = RuntimeCosts(slowdown=slowdown, **costs)
    world = SimulatedWorld(plain.spec, plain.plan, trace.append, host=host)
    world.network.buckets = None  # they have tests of their own
    return world, trace


def as_two_ended(cluster, overhead_s):
    """`cluster` with messages that cost so many seconds at each end."""
    costs = {"message_overhead_s": overhead_s, "receive_overhead_s": overhead_s}
    return cluster.model_copy(
        update={"devices": tuple(device.model_copy(update=costs) for device in cluster.devices)}
    )


def listener(rank):
    return rank, lambda ctx: receiver(ctx, [(0, "m")], {})


async def sends_to_both(ctx):
    ctx.send(PAYLOAD, 1, "m")
    ctx.send(PAYLOAD, 2, "m")


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
        for handle in [add(ctx), add(ctx)]:
            await handle

    run(world, (0, at_once))
    first, second = spans(trace, "compute")
    assert second.start_s == first.end_s
    assert second.end_s == pytest.approx(2 * first.end_s)


def test_a_message_is_work_of_both_its_ends_and_what_is_no_work_passes_by_itself():
    # 2 ms at each end, half of it work: 2 x (1 + 1) ms, and 1 s on the link
    cluster = as_two_ended(star(), 2e-3)
    world, trace = on_host((1.0, 1.0), cluster, message_work_frac=0.5)
    run(world, (0, lambda ctx: sender(ctx, 1, ["m"])), (1, lambda ctx: receiver(ctx, [(0, "m")], {})))
    (arrived,) = spans(trace, "recv")
    assert arrived.end_s == pytest.approx(1.0 + 4e-3)


def test_messages_of_one_device_to_two_are_sent_one_after_the_other():
    # the links carry each message for a second; the second one leaves after the work on the first
    world, trace = on_host((1.0, 1.0), as_two_ended(star(), 2e-3), message_work_frac=1.0)
    run(world, (0, sends_to_both), *(listener(rank) for rank in (1, 2)))
    # both share the sender's link from 4 ms on: the first has 2 ms less to go
    first, second = sorted(span.end_s for span in spans(trace, "recv"))
    assert second - first == pytest.approx(2e-3)
    assert second == pytest.approx(2e-3 + 2.0 + 2e-3)


def test_an_operation_waits_for_the_messages_that_its_device_is_sending():
    world, trace = on_host((1.0, 1.0), as_two_ended(star(), 2e-3), message_work_frac=1.0)

    async def sends_and_computes(ctx):
        ctx.send(PAYLOAD, 1, "m")
        await add(ctx)

    run(world, (0, sends_and_computes), listener(1))
    assert spans(trace, "compute")[0].start_s == pytest.approx(2e-3)


def test_messages_slow_the_operations_of_other_devices_down():
    alone, alone_trace = on_host((1.0, 2.0), as_two_ended(star(), 2e-3), message_work_frac=1.0)
    run(alone, (2, adds_one_after_the_other(1)))
    together, trace = on_host((1.0, 2.0), as_two_ended(star(), 2e-3), message_work_frac=1.0)
    run(together, (0, lambda ctx: sender(ctx, 1, ["m"])), (2, adds_one_after_the_other(1)), listener(1))
    (one,), (slowed,) = spans(alone_trace, "compute"), spans(trace, "compute")
    assert slowed.end_s == pytest.approx(min(2 * one.end_s, one.end_s + 2e-3))


def test_a_long_operation_leaves_the_main_thread_free_for_messages():
    threads = Threads(SharedCores(SimulationKernel(), one_core))
    assert threads.for_operation(handed_over=False) is threads.main
    assert threads.for_operation(handed_over=True) is threads.compute
    threads.compute.run(1.0, lambda start_s: None)
    assert threads.for_operation(handed_over=False) is threads.compute  # in their order


def test_bytes_on_a_link_slow_the_operations_of_other_devices_down_and_not_their_message():
    # one core: what the kernel does for the message's bytes takes 2 ms of it from the operation
    alone, alone_trace = on_host((1.0, 2.0))
    run(alone, (2, adds_one_after_the_other(1)))
    sent, sent_trace = on_host((1.0, 2.0))
    run(sent, (0, lambda ctx: sender(ctx, 1, ["m"])), listener(1))
    (message,) = spans(sent_trace, "recv")
    together, trace = on_host((1.0, 2.0), link_byte_s=2e-3 / message.bytes)
    run(together, (0, lambda ctx: sender(ctx, 1, ["m"])), (2, adds_one_after_the_other(1)), listener(1))
    (one,), (slowed,) = spans(alone_trace, "compute"), spans(trace, "compute")
    assert slowed.end_s == pytest.approx(min(2 * one.end_s, one.end_s + 2e-3))
    assert spans(trace, "recv")[0].end_s == message.end_s


def test_a_message_wakes_an_idle_core_and_finds_a_busy_one_awake():
    kernel, found = SimulationKernel(), {}
    cores = SharedCores(kernel, one_core)
    device, neighbour = Threads(cores, 0, wakeup_s=1.0), Threads(cores, 0)

    def receive(name):
        device.receive(0.5, lambda start_s: found.update({name: kernel.now_s}))

    kernel.schedule(0.0, lambda: receive("first"))  # wakes up until 1.0
    kernel.schedule(1.0, lambda: receive("second"))  # while the first is read, until 1.5
    kernel.schedule(4.0, lambda: neighbour.main.run(0.2, lambda start_s: None))
    kernel.schedule(
        4.1, lambda: receive("third")
    )  # 0.1 s of the neighbour's is left: both take twice as long
    kernel.run(is_over=lambda: False, when_idle=lambda: False)
    assert found == {"first": pytest.approx(1.5), "second": pytest.approx(2.0), "third": pytest.approx(4.7)}
