"""Queues emulations: one at a time per host by default, since runs on the same cores would slow each other.

Each run holds a numbered ticket, and a seat while it goes on: names that the kernel frees with the last
process that holds them (`emulator/host/abstract_names.py`). A run starts when no lower ticket is without a
seat, and fewer lower ones are held than runs may go on at once; these have disjoint shares of the cores, one
per seat. Only names of this user, of root and of the group `edgeloom` count: anybody can take some.

A run whose outputs are being compared at its end needs its seat no more: no clock waits for that. It gives
both names back and holds a third, for which only those wait who measure this machine.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import secrets
import socket
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import NamedTuple

from emulator.host import abstract_names
from emulator.host.places import queue_name
from engine.domain.errors import HostError

POLL_S = 0.1
INHERITED = "LOOM_TURN"
"""In a session's environment: the files of the turn that it has inherited."""
RUNS_AT_ONCE = "LOOM_RUNS_AT_ONCE"
GROUP = "edgeloom"
"""Users in this group take turns with one another; without it every user does with root alone."""

MOST_STEP = 1_000_000
TICKET = re.compile(r"ticket-(\d{1,15})")
COMPARISON = re.compile(r"comparison-(\d{1,15})/\w+")
SEAT = re.compile(r"seat-(\d{1,6})-of-(\d{1,6})/(\d{1,15})/(\d{1,10})/(\d{1,12})/([a-z]{1,20})/\w+")


class Turn(NamedTuple):
    """A process that inherits `descriptors` holds the turn. The run alone may use `cores`. `give_back` lets
    the next one begin, once no other process has the descriptors.
    """

    descriptors: tuple[int, ...]
    cores: frozenset[int]
    give_back: Callable[[], None] = lambda: None


class Holder(NamedTuple):
    """Who has one seat of this machine: a user's process, since when in seconds since 1970, and for what.

    Nobody waits for one that does not `count`.
    """

    user: int | None
    pid: int
    since_s: float
    purpose: str
    counts: bool

    def __str__(self) -> str:
        since = time.strftime("%H:%M", time.localtime(self.since_s))
        return f"a {self.purpose} of {name_of(self.user)} (process {self.pid}) since {since}"


class Wait(NamedTuple):
    """Before a turn: how many runs must end first, and who has the seats now."""

    ahead: int
    holders: tuple[Holder, ...]

    def __str__(self) -> str:
        runs = "1 run" if self.ahead == 1 else f"{self.ahead} runs"
        return f"{runs} ahead on this machine" + "".join(f", {holder}" for holder in self.holders)


@contextmanager
def turn(
    queue: str,
    waiting: Callable[[Wait], None],
    give_up: Callable[[], None] = lambda: None,
    alone: bool = False,
    purpose: str = "run",
    beside_comparisons: bool = False,
) -> Iterator[Turn]:
    """Wait for this run's turn in the queue of that name, then hold it until the block ends.

    `waiting` is called whenever what must end first changes. `give_up` is called while waiting and may raise.
    A turn `alone` takes every seat, so that no run goes on beside it. `purpose` is one word, for others who
    wait. `beside_comparisons`: it may begin while the outputs of a run that is over are compared. Raises
    `HostError` for a bad LOOM_RUNS_AT_ONCE.
    """
    seats = shares(os.sched_getaffinity(0), runs_at_once())
    wanted = len(seats) if alone else 1
    number, ticket = _draw(queue)
    with ticket, ExitStack() as mine:
        told: Wait | None = None
        while (compared := not beside_comparisons and bool(_matches(queue, COMPARISON))) or not (
            held := _seated(queue, number, wanted, len(seats), purpose)
        ):
            wait = Wait(_ahead(queue, number) + wanted - len(seats), holders(queue, counting=True))
            if compared:
                wait = wait._replace(ahead=max(1, wait.ahead))
            if wait.ahead > 0 and wait != told:  # else only somebody before us has still to sit down
                waiting(wait)
                told = wait
            give_up()
            time.sleep(POLL_S)
        descriptors = [mine.enter_context(seat).fileno() for seat in held.values()]
        cores = frozenset[int]().union(*(seats[index] for index in held))

        def give_back() -> None:
            if ticket.fileno() < 0:
                return
            mine.enter_context(_hold_new(f"{queue}/comparison-{number}"))
            for name in (ticket, *held.values()):
                name.close()

        yield Turn((ticket.fileno(), *descriptors), cores, give_back)


def inherited() -> tuple[int, ...]:
    """In a session: the files of the turn in which it was started, until they are given back."""
    return tuple(map(int, os.environ.get(INHERITED, "").split()))


def give_back_inherited() -> None:
    """In a session: let go of the turn in which it was started."""
    for descriptor in inherited():
        os.close(descriptor)
    os.environ.pop(INHERITED, None)


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
    """The numbers that are held in this queue and count, in order."""
    return sorted(int(found[1]) for found in _matches(queue, TICKET))


def holders(queue: str = "", counting: bool = False) -> tuple[Holder, ...]:
    """Who emulates on this machine now, or those of them who count; one with several seats is listed once."""
    queue = queue or queue_name()
    found = {
        Holder(user, int(match[4]), float(match[5]), match[6], counts)
        for match, user, counts in _named(queue, SEAT)
        if counts or not counting
    }
    return tuple(sorted(found, key=lambda one: one.since_s))


def name_of(user: int | None) -> str:
    """The name of this user, as far as this machine knows it."""
    if user is None:
        return "an unknown user"
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def counts(user: int | None) -> bool:
    """Whether names of this user are to be believed. Where the kernel does not tell whose they are, all."""
    if user in (None, 0, os.geteuid()):
        return True
    try:
        account = pwd.getpwuid(user)
        return grp.getgrnam(GROUP).gr_gid in os.getgrouplist(account.pw_name, account.pw_gid)
    except KeyError:  # no such user, or no such group
        return False


def _named(queue: str, pattern: re.Pattern[str]) -> list[tuple[re.Match[str], int | None, bool]]:
    """The names of this queue that match: each with its user, and whether it counts."""
    found = abstract_names.held(f"{queue}/")
    matches = [(pattern.fullmatch(one.name.removeprefix(f"{queue}/")), one.user) for one in found]
    trusted = {user: counts(user) for user in {user for match, user in matches if match}}
    return [(match, user, trusted[user]) for match, user in matches if match]


def _matches(queue: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """The names of this queue that match and count."""
    return [match for match, _, is_trusted in _named(queue, pattern) if is_trusted]


def _draw(queue: str) -> tuple[int, socket.socket]:
    """A new ticket, with a higher number than all others that count."""
    step = 1
    while True:
        number = max(tickets(queue), default=0) + step
        if (ticket := abstract_names.hold(f"{queue}/ticket-{number}")) is not None:
            return number, ticket
        step += secrets.randbelow(MOST_STEP)  # somebody may hold many that do not count


def _ahead(queue: str, own: int) -> int:
    """How many seats are taken, or will be by those with a lower ticket who stand."""
    seats = [int(seat[3]) for seat in _matches(queue, SEAT)]
    return len(seats) + sum(number < own and number not in seats for number in tickets(queue))


def _seated(queue: str, number: int, wanted: int, count: int, purpose: str) -> dict[int, socket.socket]:
    """The `wanted` seats of `count` for the ticket `number`, by their index; {} if it is not its turn."""
    seats = _matches(queue, SEAT)
    lower = {one for one in tickets(queue) if one < number}
    taken = {int(seat[1]) for seat in seats if int(seat[2]) == count}
    free = [index for index in range(count) if index not in taken]
    if lower - {int(seat[3]) for seat in seats} or len(lower) + wanted > count or len(free) < wanted:
        return {}
    mine = {index: _hold_seat(f"{queue}/seat-{index}-of-{count}", number, purpose) for index in free[:wanted]}
    now = [int(seat[1]) for seat in _matches(queue, SEAT) if int(seat[2]) == count]
    if all(now.count(index) == 1 for index in mine):
        return mine
    for seat in mine.values():  # a ticket that was drawn meanwhile chose the same: the lower one goes first
        seat.close()
    return {}


def _hold_seat(name: str, number: int, purpose: str) -> socket.socket:
    """A new name for this seat: nobody else can have taken it before."""
    return _hold_new(f"{name}/{number}/{os.getpid()}/{time.time():.0f}/{purpose}")


def _hold_new(name: str) -> socket.socket:
    """A name of this process that begins so."""
    holder = abstract_names.hold(f"{name}/{secrets.token_hex(8)}")
    assert holder is not None, "nobody guesses such a name"
    return holder
