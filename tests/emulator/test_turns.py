"""One emulation at a time: tickets, places, and the dead who hold up nobody."""

import os
import queue
import signal
import threading
from pathlib import Path

import pytest

from emulator.turns import turn


class Waiter(threading.Thread):
    """Somebody who wants a turn; remembers how many were ahead."""

    def __init__(self, directory: Path):
        super().__init__()
        self.directory = directory
        self.ahead: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.has_it = threading.Event()
        self.release = threading.Event()

    def run(self) -> None:
        with turn(self.directory, self.ahead.put):
            self.has_it.set()
            self.release.wait()


def test_the_first_does_not_wait_and_the_others_come_in_order(tmp_path: Path) -> None:
    waiters = [Waiter(tmp_path) for _ in range(3)]
    waiters[0].start()
    waiters[0].has_it.wait()
    for ahead, waiter in enumerate(waiters[1:], start=1):
        waiter.start()
        assert waiter.ahead.get(timeout=60) == ahead
    assert not waiters[1].has_it.is_set()
    waiters[0].release.set()
    waiters[1].has_it.wait()
    assert waiters[2].ahead.get(timeout=60) == 1
    assert not waiters[2].has_it.is_set()
    waiters[1].release.set()
    waiters[2].has_it.wait()
    waiters[2].release.set()
    for waiter in waiters:
        waiter.join()
    assert all(waiter.ahead.empty() for waiter in waiters)
    assert list(tmp_path.glob("ticket-*")) == []


def test_a_killed_process_holds_up_nobody(tmp_path: Path) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        with turn(tmp_path, lambda ahead: None):
            os.write(write, b"x")
            signal.pause()
    os.read(read, 1)
    waiter = Waiter(tmp_path)
    waiter.start()
    assert waiter.ahead.get(timeout=60) == 1
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    waiter.has_it.wait()
    waiter.release.set()
    waiter.join()


def test_whoever_gives_up_leaves_the_queue(tmp_path: Path) -> None:
    first = Waiter(tmp_path)
    first.start()
    first.has_it.wait()

    def give_up() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), turn(tmp_path, lambda ahead: None, give_up):
        raise AssertionError("it is not our turn")
    assert len(list(tmp_path.glob("ticket-*"))) == 1
    first.release.set()
    first.join()
