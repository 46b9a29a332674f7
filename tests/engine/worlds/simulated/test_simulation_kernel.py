"""The simulation kernel: the order of actions, programs that wait, and how a run ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.errors import Cancelled, PeerFailed, PlanError
from engine.worlds.common.programs import Handle, Program
from engine.worlds.simulated.kernel import (
    ACTIONS_BETWEEN_STOP_CHECKS,
    FAULT,
    LAST,
    NORMAL,
    Operation,
    SimulationKernel,
)


class PlainHost:
    """Runs its programs at once."""

    def __init__(self):
        self.handles = []

    def run_program(self, program, handle):
        self.handles.append(handle)
        return program.step()


class CurrentHost:
    """Knows which program it runs, as a device does."""

    current = None

    def run_program(self, program, handle):
        self.current = program
        return program.step()


HOST = CurrentHost()


class UnwillingHost:
    """Runs nothing, as a frozen device."""

    def run_program(self, program, handle):
        return False


def run_until_idle(kernel, **more):
    kernel.run(is_over=lambda: False, when_idle=lambda: False, **more)


def start(kernel, coroutine, host=None, rank=0):
    program = Program(rank, coroutine, kernel.now_s)
    kernel.start(program, host or PlainHost())
    return program


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.5, 2.5000001]), st.sampled_from([FAULT, NORMAL, LAST])))
)
def test_actions_run_by_time_then_priority_then_the_order_in_which_they_were_scheduled(entries):
    kernel, ran = SimulationKernel(), []
    for serial, (time_s, priority) in enumerate(entries):
        kernel.schedule(time_s, lambda entry=(time_s, priority, serial): ran.append(entry), priority)
    run_until_idle(kernel)
    assert ran == sorted((*entry, serial) for serial, entry in enumerate(entries))


def test_a_fault_comes_first_and_a_last_action_last_at_the_same_time():
    assert FAULT < NORMAL < LAST


def test_the_clock_shows_the_time_of_the_action_that_runs():
    kernel, seen = SimulationKernel(), []
    for time_s in (3.0, 1.0, 2.0):
        kernel.schedule(time_s, lambda: seen.append(kernel.now_s))
    run_until_idle(kernel)
    assert seen == [1.0, 2.0, 3.0]
    assert kernel.now_s == 3.0


def test_an_action_that_is_scheduled_for_now_runs_before_time_moves_on():
    kernel, ran = SimulationKernel(), []

    def first():
        ran.append("first")
        kernel.schedule(kernel.now_s, lambda: ran.append("now, last"), LAST)
        kernel.schedule(kernel.now_s, lambda: ran.append("now"))

    kernel.schedule(1.0, first)
    kernel.schedule(1.0, lambda: ran.append("second"))
    kernel.schedule(1.5, lambda: ran.append("later"))
    run_until_idle(kernel)
    assert ran == ["first", "second", "now", "now, last", "later"]


def test_an_action_in_the_past_is_refused():
    kernel = SimulationKernel()
    kernel.schedule(2.0, lambda: kernel.schedule(1.0, lambda: None))
    with pytest.raises(ValueError, match=r"scheduled for 1.0 s, but it is 2.0 s"):
        run_until_idle(kernel)


def test_a_step_without_actions_is_an_error():
    with pytest.raises(IndexError):
        SimulationKernel().step()


def test_a_run_ends_when_it_is_over_though_actions_are_left():
    kernel, ran = SimulationKernel(), []
    for time_s in (1.0, 2.0, 3.0):
        kernel.schedule(time_s, lambda: ran.append(kernel.now_s))
    kernel.run(is_over=lambda: len(ran) == 2, when_idle=lambda: False)
    assert ran == [1.0, 2.0]


def test_an_idle_run_continues_with_what_when_idle_schedules_until_it_returns_false():
    kernel, ran = SimulationKernel(), []

    def when_idle():
        kernel.schedule(kernel.now_s + 1.0, lambda: ran.append(kernel.now_s))
        return len(ran) < 2

    kernel.run(is_over=lambda: False, when_idle=when_idle)
    assert ran == [1.0, 2.0]


def test_a_run_that_should_stop_is_cancelled_at_the_next_check():
    kernel, ran = SimulationKernel(), []
    for index in range(ACTIONS_BETWEEN_STOP_CHECKS + 1):
        kernel.schedule(float(index), lambda: ran.append(None))
    with pytest.raises(Cancelled) as cancelled:
        run_until_idle(kernel, should_stop=lambda: True)
    assert len(ran) == ACTIONS_BETWEEN_STOP_CHECKS
    assert cancelled.value.time_s == ACTIONS_BETWEEN_STOP_CHECKS - 1


def test_cancelled_actions_never_run_and_the_others_keep_their_order():
    kernel, ran = SimulationKernel(), []
    for time_s in (5.0, 4.0, 3.0, 2.0, 1.0):
        kernel.schedule(time_s, lambda: ran.append(kernel.now_s), FAULT)
        kernel.schedule(time_s, lambda: ran.append("cancelled"))
    kernel.cancel_actions(keep_priority=FAULT)
    run_until_idle(kernel)
    assert ran == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_programs_that_wait_for_one_handle_are_resumed_in_the_order_they_came():
    kernel, handle, got = SimulationKernel(), Handle(), []

    async def waits(name):
        got.append((name, await handle))

    for name in "abc":
        start(kernel, waits(name))
    kernel.schedule(2.0, lambda: kernel.finish(handle, "value"))
    run_until_idle(kernel)
    assert got == [("a", "value"), ("b", "value"), ("c", "value")]
    assert (handle.done, handle.time_s) == (True, 2.0)
    assert not kernel.programs


def test_a_host_learns_which_handle_a_program_has_waited_for():
    kernel, handle, host = SimulationKernel(), Handle(), PlainHost()

    async def waits():
        await handle

    start(kernel, waits(), host)
    kernel.schedule(1.0, lambda: kernel.finish(handle, None))
    run_until_idle(kernel)
    assert host.handles == [None, handle]


def test_the_result_of_a_program_goes_to_the_program_that_waits_for_it():
    kernel, handle, got = SimulationKernel(), Handle(), []

    async def child():
        await handle
        return 42

    async def parent():
        got.append(await start(kernel, child()).handle)

    start(kernel, parent())
    kernel.schedule(1.0, lambda: kernel.finish(handle, None))
    run_until_idle(kernel)
    assert got == [42]


async def fails(error):
    raise error


def test_the_failure_of_a_peer_goes_to_the_program_that_waits_for_the_one_it_ended():
    kernel, got = SimulationKernel(), []

    async def parent(child):
        try:
            await child.handle
        except PeerFailed as error:
            got.append(error)

    error, handle = PeerFailed("gone"), Handle()

    async def child():
        await handle
        raise error

    start(kernel, parent(start(kernel, child())))
    kernel.schedule(1.0, lambda: kernel.finish(handle, None))
    run_until_idle(kernel)
    assert got == [error]


def test_the_failure_of_a_peer_that_no_program_waits_for_ends_the_run():
    kernel = SimulationKernel()
    start(kernel, fails(PeerFailed("gone")))
    with pytest.raises(PeerFailed, match="gone"):
        run_until_idle(kernel)


def test_any_other_error_ends_the_run_even_if_a_program_waits():
    kernel, handle = SimulationKernel(), Handle()

    async def child():
        await handle
        raise PlanError("full")

    async def parent(child):
        await child.handle

    start(kernel, parent(start(kernel, child())))
    kernel.schedule(1.0, lambda: kernel.finish(handle, None))
    with pytest.raises(PlanError, match="full"):
        run_until_idle(kernel)


def test_a_program_that_its_host_does_not_run_stays_among_the_programs():
    kernel, ran = SimulationKernel(), []

    async def notes():
        ran.append(True)

    program = start(kernel, notes(), UnwillingHost())
    run_until_idle(kernel)
    assert list(kernel.programs) == [program] and not ran
    program.close()


def test_a_closed_program_is_never_resumed_and_its_device_alone_is_closed():
    kernel, handle, got = SimulationKernel(), Handle(), []

    async def waits(rank):
        await handle
        got.append(rank)

    for rank in (0, 1, 1):
        start(kernel, waits(rank), rank=rank)
    kernel.schedule(1.0, lambda: kernel.close_programs(rank=1))
    kernel.schedule(2.0, lambda: kernel.finish(handle, None))
    run_until_idle(kernel)
    assert got == [0]


def test_closing_all_programs_runs_their_finally_blocks_in_the_order_of_their_start():
    kernel, handle, closed = SimulationKernel(), Handle(), []

    async def waits(name):
        try:
            await handle
        finally:
            closed.append(name)

    for name in "abcd":
        start(kernel, waits(name))
    run_until_idle(kernel)
    kernel.close_programs()
    assert closed == ["a", "b", "c", "d"]
    assert not kernel.programs


# running ahead


def operation(kernel, name, seconds, log):
    """An operation of `seconds` from now, which writes its end into `log`."""
    end_s = kernel.now_s + seconds
    begun = Operation(kernel, HOST, name, end_s, name, lambda name: log.append((name, kernel.now_s)), name)
    kernel.begin(begun)
    return begun


def counting(kernel):
    """The number of times that the kernel takes something from its heap."""
    steps, step = [], kernel.step
    kernel.step = lambda: (steps.append(kernel.now_s), step())
    return steps


def chain(kernel, log, *lengths_s):
    async def program():
        for number, seconds in enumerate(lengths_s):
            assert await operation(kernel, f"op{number}", seconds, log) == f"op{number}"

    return program()


def test_a_program_runs_ahead_through_its_operations_while_nothing_else_is_due():
    kernel, log = SimulationKernel(), []
    steps = counting(kernel)
    start(kernel, chain(kernel, log, 1.0, 2.0, 3.0), HOST)
    run_until_idle(kernel)
    assert log == [("op0", 1.0), ("op1", 3.0), ("op2", 6.0)]
    assert HOST.current.now_s == 6.0
    assert len(steps) == 1, "only the start of the program is taken from the heap"


@pytest.mark.parametrize(("due_s", "place"), [(0.5, 0), (1.0, 0), (2.0, 1), (3.0, 1), (9.0, 3)])
def test_what_is_due_before_an_operation_ends_comes_first(due_s, place):
    kernel, log = SimulationKernel(), []
    kernel.schedule(due_s, lambda: log.append(("due", kernel.now_s)))
    start(kernel, chain(kernel, log, 1.0, 2.0, 3.0), HOST)
    run_until_idle(kernel)
    expected = [("op0", 1.0), ("op1", 3.0), ("op2", 6.0)]
    expected.insert(place, ("due", due_s))
    assert log == expected


def test_programs_that_wait_for_one_handle_all_see_its_time_before_any_runs_ahead():
    kernel, log, handle = SimulationKernel(), [], Handle()

    async def program(name):
        await handle
        log.append((name, kernel.now_s))
        await operation(kernel, f"{name}'s", 1.0, log)

    for name in "abc":
        start(kernel, program(name), HOST)
    kernel.schedule(2.0, lambda: (kernel.nothing_follows(), kernel.finish(handle, None)))
    run_until_idle(kernel)
    assert log == [("a", 2.0), ("b", 2.0), ("c", 2.0), ("a's", 3.0), ("b's", 3.0), ("c's", 3.0)]


def test_no_program_runs_ahead_of_an_action_that_has_more_to_do():
    kernel, log, first, second = SimulationKernel(), [], Handle(), Handle()

    async def program(handle, name):
        await handle
        await operation(kernel, name, 1.0, log)

    start(kernel, program(first, "first"), HOST)
    start(kernel, program(second, "second"), HOST)
    kernel.schedule(2.0, lambda: (kernel.finish(first, None), kernel.finish(second, None)))
    run_until_idle(kernel)
    assert log == [("first", 3.0), ("second", 3.0)]


def test_an_operation_that_others_wait_for_too_resumes_all_of_them():
    kernel, log = SimulationKernel(), []
    shared = []

    async def begins():
        shared.append(operation(kernel, "shared", 1.0, log))
        await shared[0]
        log.append(("begins", kernel.now_s))

    async def joins():
        await shared[0]
        log.append(("joins", kernel.now_s))

    start(kernel, begins(), HOST)
    start(kernel, joins(), HOST)
    run_until_idle(kernel)
    assert log == [("shared", 1.0), ("begins", 1.0), ("joins", 1.0)]


def test_an_operation_in_the_past_is_refused():
    kernel = SimulationKernel()
    kernel.schedule(2.0, lambda: operation(kernel, "late", -1.0, []))
    with pytest.raises(ValueError, match=r"would end at 1.0 s, but it is 2.0 s"):
        run_until_idle(kernel)


def test_operations_that_run_ahead_count_as_actions_and_are_watched():
    kernel, log, seen = SimulationKernel(), [], []
    lengths_s = [1.0] * (ACTIONS_BETWEEN_STOP_CHECKS + 1)
    start(kernel, chain(kernel, log, *lengths_s), HOST)
    with pytest.raises(Cancelled):
        run_until_idle(kernel, should_stop=lambda: True, check_time=seen.append)
    assert len(log) == ACTIONS_BETWEEN_STOP_CHECKS
    assert seen[:4] == [0.0, 1.0, 2.0, 3.0]
