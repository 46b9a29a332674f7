"""Queues emulations: one at a time per host by default, since runs on the same cores would slow each other.

Each run holds a numbered ticket file, locked as long as its process lives. A run starts when fewer lower
tickets are locked than runs may go on at once; the kernel unlocks the ticket of a run that crashes. Runs that
go on at the same time have disjoint shares of the cores, each a locked `seat` file.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from engine.domain.errors import HostError

POLL_S = 0.1
RUNS_AT_ONCE = "LOOM_RUNS_AT_ONCE"
TURNS = "turns"
"""The directory of the tickets, in the state directory."""


class Turn(NamedTuple):
    """A process that inherits `descriptors` holds the turn. The run alone may use `cores`."""

    descriptors: tuple[int, ...]
    cores: frozenset[int]


@contextmanager
def turn(
    directory: Path, waiting: Callable[[int], None], give_up: Callable[[], None] = lambda: None
) -> Iterator[Turn]:
    """Wait for this run's turn, then hold it until the block ends.

    `waiting(ahead)` is called whenever the number of runs that must end first changes and is not 0.
    `give_up` is called while waiting and may raise. Raises `HostError` for a bad LOOM_RUNS_AT_ONCE.
    """
    cores = os.sched_getaffinity(0)
    seats = shares(cores, runs_at_once())
    directory.mkdir(parents=True, exist_ok=True, mode=0o755)
    ticket, path = _draw(directory)
    held = [ticket]
    try:
        seen = 0
        while (ahead := _ahead(directory, path) + 1 - len(seats)) > 0:
            if ahead != seen:
                waiting(ahead)
                seen = ahead
            give_up()
            time.sleep(POLL_S)
        while (
            taken := _lock_share(directory, len(seats))
        ) is None:  # its last holder has not unlocked it yet
            give_up()
            time.sleep(POLL_S)
        number, seat = taken
        held.append(seat)
        yield Turn(tuple(held), seats[number])
    finally:
        path.unlink(missing_ok=True)
        for descriptor in held:
            os.close(descriptor)


def runs_at_once() -> int:
    """How many runs this host does at once; raises `HostError` unless it is a positive number."""
    text = os.environ.get(RUNS_AT_ONCE, "1")
    if not text.isdecimal() or int(text) < 1:
        raise HostError(f"{RUNS_AT_ONCE} is {text!r}, expected a number from 1 on: set it, or leave it out.")
    return int(text)


def shares(cores: Collection[int], count: int) -> list[frozenset[int]]:
    """`cores` in `count` parts whose sizes differ by one at most. Raises `HostError` if a part is empty."""
    every = sorted(cores)
    if count > len(every):
        raise HostError(
            f"{RUNS_AT_ONCE} is {count}, and this machine has {len(every)} cores: set at most {len(every)}."
        )
    bounds = [index * len(every) // count for index in range(count + 1)]
    return [frozenset(every[start:stop]) for start, stop in pairwise(bounds)]


def _lock_share(directory: Path, count: int) -> tuple[int, int] | None:
    """The first free seat of `count`: its number and its locked file. None if there is none."""
    for number in range(count):
        seat = os.open(directory / f"seat-{number}-of-{count}", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(seat, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(seat)
        else:
            return number, seat
    return None


def _draw(directory: Path) -> tuple[int, Path]:
    """A new ticket, locked, with a higher number than all others."""
    with (directory / "counter").open("a+") as counter:
        fcntl.flock(counter, fcntl.LOCK_EX)
        counter.seek(0)
        number = int(counter.read() or 0) + 1
        path = directory / f"ticket-{number:09d}"
        ticket = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(ticket, fcntl.LOCK_EX)
        counter.truncate(0)
        counter.write(str(number))
        counter.flush()
    return ticket, path


def remove_dead_tickets(directory: Path) -> None:
    """Those of runs that were killed; the next run would remove them too."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o755)
    with (directory / "counter").open("a+") as counter:
        fcntl.flock(counter, fcntl.LOCK_EX)  # nobody is between making a ticket and locking it
        _ahead(directory, directory / "ticket-x")


def _ahead(directory: Path, own: Path) -> int:
    """The number of lower tickets that are locked. Removes tickets whose run has ended."""
    count = 0
    for path in sorted(directory.glob("ticket-*")):
        if path.name >= own.name:
            break
        try:
            with path.open("r+") as other:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
        except BlockingIOError:
            count += 1
        except FileNotFoundError:
            continue  # its run ended just now
    return count
