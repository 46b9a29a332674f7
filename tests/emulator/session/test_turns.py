"""One emulation at a time: tickets, seats, and processes that ended without releasing them."""

import os
import queue
import signal
import threading
import uuid

import pytest

from emulator.session.turns import RUNS_AT_ONCE, Turn, shares, tickets, turn
from engine.domain.errors import HostError


@pytest.fixture
def name() -> str:
    """Of a queue that no other test has."""
    return f"edgeloom-test-{uuid.uuid4().hex}"


class Waiter(threading.Thread):
    """Somebody who wants a turn; remembers how many were ahead."""

    def __init__(self, queue_name: str, alone: bool = False):
        super().__init__()
        self.alone = alone
        self.queue_name = queue_name
        self.ahead: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.has_it = threading.Event()
        self.release = threading.Event()
        self.turn = Turn((), frozenset())

    def run(self) -> None:
        with turn(self.queue_name, self.ahead.put, alone=self.alone) as self.turn:
            self.has_it.set()
            self.release.wait()


def test_the_first_does_not_wait_and_the_others_come_in_order(name: str) -> None:
    waiters = [Waiter(name) for _ in range(3)]
    waiters[0].start()
    waiters[0].has_it.wait()
    for ahead, waiter in enumerate(waiters[1:], start=1):
        waiter.start()
        assert waiter.ahead.get(timeout=600) == ahead
    assert not waiters[1].has_it.is_set()
    waiters[0].release.set()
    waiters[1].has_it.wait()
    assert waiters[2].ahead.get(timeout=600) == 1
    assert not waiters[2].has_it.is_set()
    waiters[1].release.set()
    waiters[2].has_it.wait()
    waiters[2].release.set()
    for waiter in waiters:
        waiter.join()
    assert all(waiter.ahead.empty() for waiter in waiters)
    assert tickets(name) == []


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
    assert waiter.ahead.get(timeout=600) == 1
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
    assert third.ahead.get(timeout=600) == 1
    assert not third.has_it.is_set()
    second.release.set()
    third.has_it.wait()
    assert [waiter.turn.cores for waiter in waiters] == [{0, 1}, {2, 3, 4}, {2, 3, 4}]
    for waiter in waiters:
        waiter.release.set()
        waiter.join()
    assert first.ahead.empty() and second.ahead.empty()


def test_a_turn_alone_waits_for_all_runs_and_no_run_goes_on_beside_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUNS_AT_ONCE, "2")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    first, alone, later = Waiter(name), Waiter(name, alone=True), Waiter(name)
    first.start()
    first.has_it.wait()
    alone.start()
    assert alone.ahead.get(timeout=600) == 1 and not alone.has_it.is_set()
    first.release.set()
    alone.has_it.wait()
    assert alone.turn.cores == {0, 1}
    later.start()
    assert later.ahead.get(timeout=600) == 1 and not later.has_it.is_set()
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
