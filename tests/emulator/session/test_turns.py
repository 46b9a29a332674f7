"""One emulation at a time: tickets, seats, and processes that ended without releasing them."""

import grp
import os
import pwd
import queue
import re
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from emulator.host import abstract_names
from emulator.host.abstract_names import hold
from emulator.session import turns
from emulator.session.turns import RUNS_AT_ONCE, Turn, Wait, holders, shares, tickets, turn
from engine.domain.errors import HostError


@pytest.fixture
def name() -> str:
    """Of a queue that no other test has."""
    return f"edgeloom-test-{uuid.uuid4().hex}"


class Waiter(threading.Thread):
    """Somebody who wants a turn; remembers how many were ahead."""

    def __init__(self, queue_name: str, alone: bool = False, beside_comparisons: bool = False):
        super().__init__()
        self.how: dict[str, Any] = {"alone": alone, "beside_comparisons": beside_comparisons}
        self.queue_name = queue_name
        self.waits: queue.SimpleQueue[Wait] = queue.SimpleQueue()
        self.has_it = threading.Event()
        self.release = threading.Event()
        self.turn = Turn((), frozenset())

    def run(self) -> None:
        with turn(self.queue_name, self.waits.put, **self.how) as self.turn:
            self.has_it.set()
            self.release.wait()

    def ahead(self) -> int:
        return self.waits.get(timeout=600).ahead


def test_the_first_does_not_wait_and_the_others_come_in_order(name: str) -> None:
    waiters = [Waiter(name) for _ in range(3)]
    waiters[0].start()
    waiters[0].has_it.wait()
    for ahead, waiter in enumerate(waiters[1:], start=1):
        waiter.start()
        assert waiter.ahead() == ahead
    assert not waiters[1].has_it.is_set()
    waiters[0].release.set()
    waiters[1].has_it.wait()
    while waiters[2].ahead() != 1:  # it also hears that nobody has the seat for a moment
        pass
    assert not waiters[2].has_it.is_set()
    waiters[1].release.set()
    waiters[2].has_it.wait()
    waiters[2].release.set()
    for waiter in waiters:
        waiter.join()
    assert tickets(name) == []


def test_while_outputs_are_compared_the_next_run_begins_and_whoever_measures_waits(name: str) -> None:
    run, measurement = Waiter(name, beside_comparisons=True), Waiter(name)
    with turn(name, lambda wait: pytest.fail(str(wait))) as mine:
        mine.give_back()
        mine.give_back()  # it is told again and again how far the comparison is
        run.start()
        run.has_it.wait()
        run.release.set()
        run.join()
        measurement.start()
        assert measurement.ahead() == 1
        assert not measurement.has_it.is_set()
    measurement.has_it.wait()
    measurement.release.set()
    measurement.join()
    assert abstract_names.held(f"{name}/") == []


def test_a_killed_process_does_not_block_the_queue(name: str) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        with turn(name, lambda ahead: None):
            os.write(write, b"x")
            signal.pause()
    os.read(read, 1)
    waiter = Waiter(name)
    waiter.start()
    assert waiter.ahead() == 1
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    waiter.has_it.wait()
    waiter.release.set()
    waiter.join()


def test_a_run_that_is_cancelled_leaves_the_queue(name: str) -> None:
    first = Waiter(name)
    first.start()
    first.has_it.wait()

    def give_up() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), turn(name, lambda ahead: None, give_up):
        raise AssertionError("it is not our turn")
    assert len(tickets(name)) == 1
    first.release.set()
    first.join()


def test_two_at_once_have_cores_of_their_own_and_the_third_waits_for_one_of_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUNS_AT_ONCE, "2")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3, 4})
    first, second, third = waiters = [Waiter(name) for _ in range(3)]
    for waiter in (first, second):
        waiter.start()
        waiter.has_it.wait()
    third.start()
    assert third.ahead() == 1
    assert not third.has_it.is_set()
    second.release.set()
    third.has_it.wait()
    assert [waiter.turn.cores for waiter in waiters] == [{0, 1}, {2, 3, 4}, {2, 3, 4}]
    for waiter in waiters:
        waiter.release.set()
        waiter.join()
    assert first.waits.empty() and second.waits.empty()


def test_who_lets_another_sit_down_first_is_not_told_that_a_run_is_ahead(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUNS_AT_ONCE, "2")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    standing = abstract_names.hold(f"{name}/ticket-1")
    assert standing is not None
    with turn(name, lambda wait: pytest.fail(str(wait)), standing.close) as mine:
        assert mine.cores == {0}


def test_a_turn_alone_waits_for_all_runs_and_no_run_goes_on_beside_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUNS_AT_ONCE, "2")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    first, alone, later = Waiter(name), Waiter(name, alone=True), Waiter(name)
    first.start()
    first.has_it.wait()
    alone.start()
    assert alone.ahead() == 1 and not alone.has_it.is_set()
    first.release.set()
    alone.has_it.wait()
    assert alone.turn.cores == {0, 1}
    later.start()
    assert later.ahead() == 1 and not later.has_it.is_set()
    alone.release.set()
    later.has_it.wait()
    later.release.set()
    for waiter in (first, alone, later):
        waiter.join()


def test_shares_are_even_and_none_is_empty() -> None:
    assert shares({3, 5}, 1) == [{3, 5}]
    assert shares({0, 1, 2, 3}, 4) == [{0}, {1}, {2}, {3}]
    with pytest.raises(HostError, match="LOOM_RUNS_AT_ONCE is 3, and this machine has 2 cores"):
        shares({0, 1}, 3)


@pytest.mark.parametrize("text", ["0", "two", "-1", ""])
def test_a_bad_number_of_runs_at_once_is_refused(
    text: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUNS_AT_ONCE, text)
    with pytest.raises(HostError, match="expected a number from 1 on"), turn(name, lambda ahead: None):
        raise AssertionError("there is no turn to have")


STRANGER = 65534
"""The number of `nobody`."""


@pytest.fixture
def squatter(name: str) -> Iterator[Callable[..., None]]:
    """`squatter(user, *names)`: a process of this user that takes such names in the queue."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    processes: list[int] = []

    def squat(user: int, *names: str) -> None:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
                kept = [hold(f"{name}/{one}") for one in names]
                os.write(write, b"x" if all(kept) else b"-")
                signal.pause()
            finally:  # what fails here must not go on as a second process of tests
                os._exit(1)
        os.close(write)
        processes.append(pid)
        assert os.read(read, 1) == b"x"
        os.close(read)

    yield squat
    for pid in processes:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.root
def test_names_that_a_stranger_takes_hold_nobody_up(name: str, squatter: Callable[..., None]) -> None:
    """Ticket 0 was before everybody, the seat was the only one, and the next tickets were in use."""
    squatter(
        STRANGER,
        "ticket-0",
        *(f"ticket-{number}" for number in range(1, 20)),
        "seat-0-of-1",
        "seat-0-of-1/0/7/1700000000/run/0",
    )
    with turn(name, lambda wait: pytest.fail(str(wait))) as mine:
        assert mine.cores == os.sched_getaffinity(0)
        (own, other) = sorted(holders(name), key=lambda one: one.counts, reverse=True)
    assert (own.user, own.pid, own.purpose, own.counts) == (os.geteuid(), os.getpid(), "run", True)
    assert (other.user, other.pid, other.since_s, other.counts) == (STRANGER, 7, 1_700_000_000.0, False)


@pytest.mark.root
def test_users_of_the_group_wait_for_one_another_and_hear_for_whom(
    name: str, squatter: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = grp.getgrgid(pwd.getpwuid(STRANGER).pw_gid).gr_name
    monkeypatch.setattr(turns, "GROUP", group)
    squatter(STRANGER, "ticket-1", "seat-0-of-1/1/7/1700000000/calibration/0")
    waiter = Waiter(name)
    waiter.start()
    wait = waiter.waits.get(timeout=600)
    assert wait.ahead == 1
    assert re.fullmatch(
        r"1 run ahead on this machine, a calibration of nobody \(process 7\) since \d\d:\d\d", str(wait)
    )
    monkeypatch.setattr(turns, "GROUP", "no-such-group")
    waiter.has_it.wait()
    waiter.release.set()
    waiter.join()


def test_a_seat_that_two_take_at_the_same_moment_goes_to_the_lower_ticket(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first has looked, and takes its seat only when the second has one."""
    second, takes = Waiter(name), turns._hold_seat

    def late(*arguments: Any) -> Any:
        if threading.current_thread() is not second and second.ident is None:
            second.start()
            second.has_it.wait(timeout=600)
        return takes(*arguments)

    real = turns._matches
    monkeypatch.setattr(turns, "_hold_seat", late)
    monkeypatch.setattr(
        turns,
        "_matches",
        lambda queue, pattern: [
            match
            for match in real(queue, pattern)
            if threading.current_thread() is not second or "ticket-1" not in match[0]
        ],
    )
    with turn(name, lambda wait: second.release.set()):
        assert second.release.is_set(), "the seat was taken, so it waited for the other's end"
    second.join()


def test_where_the_kernel_does_not_say_whose_a_name_is_every_name_counts(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> Iterator[Any]:
        raise OSError("no sock_diag")
        yield

    assert abstract_names.users_are_told()
    monkeypatch.setattr(abstract_names, "_told_by_the_kernel", refused)
    assert not abstract_names.users_are_told()
    with turn(name, lambda wait: None):
        assert tickets(name) == [1]
        assert [(one.user, one.counts) for one in holders(name)] == [(None, True)]
