"""Queues emulations: one at a time per host by default, since runs on the same cores would slow each other.

Each run holds a numbered ticket, and a seat while it goes on: names in the kernel's abstract namespace of
Unix sockets. All users of the host see and may take such names, none is a file that one could plant or lock
others out with, and the kernel frees a name with the last process that holds it. A run starts when fewer
lower tickets are held than runs may go on at once; these have disjoint shares of the cores, one per seat.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from engine.domain.errors import HostError

POLL_S = 0.1
RUNS_AT_ONCE = "LOOM_RUNS_AT_ONCE"
SOCKETS = Path("/proc/self/net/unix")


class Turn(NamedTuple):
    """A process that inherits `descriptors` holds the turn. The run alone may use `cores`."""

    descriptors: tuple[int, ...]
    cores: frozenset[int]


@contextmanager
def turn(
    queue: str,
    waiting: Callable[[int], None],
    give_up: Callable[[], None] = lambda: None,
    alone: bool = False,
) -> Iterator[Turn]:
    """Wait for this run's turn in the queue of that name, then hold it until the block ends.

    `waiting(ahead)` is called whenever the number of runs that must end first changes and is not 0.
    `give_up` is called while waiting and may raise. A turn `alone` takes every seat, so that no run goes on
    beside it. Raises `HostError` for a bad LOOM_RUNS_AT_ONCE.
    """
    seats = shares(os.sched_getaffinity(0), runs_at_once())
    wanted = len(seats) if alone else 1
    number, ticket = _draw(queue)
    with ticket, ExitStack() as mine:
        seen = 0
        while (ahead := _ahead(queue, number) + wanted - len(seats)) > 0:
            if ahead != seen:
                waiting(ahead)
                seen = ahead
            give_up()
            time.sleep(POLL_S)
        held: dict[int, socket.socket] = {}
        while len(held) < wanted:
            if (free := _free_seat(queue, len(seats))) is not None:
                index, seat = free
                held[index] = mine.enter_context(seat)
                continue
            if not seen:  # its last holder has not freed it yet
                seen = 1
                waiting(seen)
            give_up()
            time.sleep(POLL_S)
        cores = frozenset[int]().union(*(seats[index] for index in held))
        yield Turn((ticket.fileno(), *(seat.fileno() for seat in held.values())), cores)


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


def tickets(queue: str) -> list[int]:
    """The numbers that are held in this queue, in order."""
    pattern = re.compile(rf"@{re.escape(queue)}/ticket-(\d{{1,15}})$", re.MULTILINE)
    return sorted({int(number) for number in pattern.findall(SOCKETS.read_text(errors="replace"))})


def _draw(queue: str) -> tuple[int, socket.socket]:
    """A new ticket, with a higher number than all others."""
    while True:
        number = max(tickets(queue), default=0) + 1
        if (ticket := _hold(f"{queue}/ticket-{number}")) is not None:
            return number, ticket


def _ahead(queue: str, own: int) -> int:
    """How many lower tickets are held."""
    return sum(number < own for number in tickets(queue))


def _free_seat(queue: str, count: int) -> tuple[int, socket.socket] | None:
    """The first free seat of `count` and what holds it. None if there is none."""
    for index in range(count):
        if (seat := _hold(f"{queue}/seat-{index}-of-{count}")) is not None:
            return index, seat
    return None


def _hold(name: str) -> socket.socket | None:
    """A socket that holds this name, or None if another process holds it."""
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(f"\0{name}")
    except OSError as error:
        holder.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return holder
