"""Keeps track of the workers that run: each announces itself every few seconds, and stops taking tasks while
it is refused.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from django.db import connection
from django.dispatch import Signal

from webapp.base import core_wait
from webapp.base.redis import REDIS_ERRORS, why_away
from webapp.jobs import announcement as fleet
from webapp.jobs import release, storage
from webapp.jobs.announcement import Announcement

BEAT_S = 2.0
QUEUES = ("plan", "points", "emulate")
logger = logging.getLogger(__name__)

held: set[str] = set()
"""The jobs whose lease this process renews."""

beat = Signal()
"""Sent at every beat of a worker, by its heartbeat's thread: `queue`, `worker` (its `Identity`), and `slots`,
the number of tasks at once."""


class Identity(NamedTuple):
    """One worker process: Celery's node name, where its process id counts (`home`), the id and its start.

    Hosts and containers may share a name, and ids are used again: only all of it together is unique.
    """

    node: str
    home: str
    pid: int
    started: int

    @property
    def place(self) -> str:
        """What a restart of the process keeps."""
        return f"{self.node}/{self.home}"

    def __str__(self) -> str:
        return f"{self.node}/{self.home}/{self.pid}/{self.started}"


def this_worker(node: str) -> Identity:
    return Identity(node, home(), os.getpid(), started_at(os.getpid()) or 0)


def parse_identity(text: str) -> Identity:
    """The parts of a worker's name, also of one of an earlier version, which had no `home`."""
    node, *place, pid, started = text.rsplit("/", 3)
    return Identity(node, place[0] if place else "", int(pid), int(started))


@cache
def home() -> str:
    """A name for this machine since its last boot, and the namespace of process ids that this
    process is in.
    """
    machine = Path("/etc/machine-id")
    parts = (
        machine.read_text() if machine.exists() else "",
        Path("/proc/sys/kernel/random/boot_id").read_text(),
        str(Path("/proc/self/ns/pid").readlink()),
    )
    return sha256("\n".join(parts).encode()).hexdigest()[:12]


def has_died(worker: str, here: str) -> bool:
    """Whether `worker`, as stored, was a process of `here` (a `home`) and does not run any more.

    Of other homes nothing is known: their leases tell.
    """
    identity = parse_identity(worker) if worker else None
    return identity is not None and identity.home == here and not is_running_here(identity)


def is_running_here(worker: Identity) -> bool:
    """Whether that process of this host still runs, and is not a later one with the same id."""
    return started_at(worker.pid) == worker.started


def started_at(pid: int) -> int | None:
    """Start of a process in clock ticks since boot, None if there is none. Field 22 of /proc/PID/stat."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def waited_s(worker: str, here: str) -> float:
    """The seconds for which that process of this host has waited for a core; 0 of one of another home, of
    which nothing is known.
    """
    identity = parse_identity(worker) if worker else None
    known = identity is not None and identity.home == here and is_running_here(identity)
    return core_wait.waited_s(identity.pid) if identity is not None and known else 0.0


def introduction(worker: Identity, queue: str, slots: int, **more: Any) -> Announcement:
    """What a worker can say at its start; `more` are further fields."""
    return Announcement(
        worker=str(worker),
        place=worker.place,
        node=worker.node,
        pid=worker.pid,
        queue=queue,
        slots=slots,
        version=release.code_version(),
        **more,
    )


def slots(queue: str) -> int:
    """How many tasks the workers of a queue carry out at once, all together. Raises Redis' errors."""
    return sum(one.slots for one in fleet.announced(queue) if not one.refused)


def alive() -> dict[str, list[str]]:
    """Per queue the node names of the workers that take tasks. Raises Redis' errors."""
    found: dict[str, list[str]] = {queue: [] for queue in QUEUES}
    for one in fleet.announced():
        if one.queue in found and not one.refused:
            found[one.queue].append(one.node)
    return found


class Intake(Protocol):
    """The tasks that a worker takes from its queue."""

    def open(self, is_open: bool) -> None:
        """Take tasks, or leave them to others. From any thread, any number of times."""


class Heartbeat(threading.Thread):
    """Announces one worker of one queue again and again until `stop`, and opens or shuts its intake.

    `figures` gives what changes: fields of the announcement. `on_beat` gets the announcement, and may use the
    database.
    """

    def __init__(
        self,
        introduced: Announcement,
        intake: Intake | None = None,
        on_beat: Callable[[Announcement], None] = lambda announcement: None,
        figures: Callable[[], dict[str, Any]] = dict,
    ):
        super().__init__(name=f"heartbeat of {introduced.node}", daemon=True)
        self.announcement = introduced
        self.refused = introduced.refused
        self.intake = intake
        self.on_beat = on_beat
        self.figures = figures
        self.stopping = threading.Event()

    def run(self) -> None:
        """Announce in this thread: one that waits for a locked database would be taken for dead."""
        caring = threading.Thread(
            target=self._care, name=f"housekeeping of {self.announcement.node}", daemon=True
        )
        caring.start()
        while not self.stopping.is_set():
            self._guarded(lambda: fleet.announce(self.announced()))
            self.stopping.wait(BEAT_S)
        caring.join()

    def _care(self) -> None:
        try:
            while not self.stopping.is_set():
                self._guarded(self.keep_house)
                self.stopping.wait(BEAT_S)
        finally:
            connection.close()

    def beat(self) -> None:
        """One beat, all of it in this thread."""
        self._guarded(lambda: fleet.announce(self.announced()))
        self._guarded(self.keep_house)

    def keep_house(self) -> None:
        """Do what every worker does at every beat: settle jobs of the gone, and whatever this one adds.
        Raises the database's errors, and Redis'.
        """
        self._judge()
        self.on_beat(self.announcement)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except REDIS_ERRORS as error:  # the next beat may find Redis again
            logger.warning("Redis %s: %s tries again", why_away(error), self.announcement.node)
        except storage.ERRORS as error:
            storage.report(error)
            connection.close()
        except Exception:
            logger.exception("housekeeping of %s failed", self.announcement.worker)

    def announced(self) -> Announcement:
        """The announcement of this worker with what is true now."""
        now = fleet.present(self.announcement)
        self.announcement = now.model_copy(
            update={"holds": tuple(held), "refused": self.refused, **self.figures()}
        )
        return self.announcement

    def _judge(self) -> None:
        """Find out whether this worker may work. Raises the database's errors."""
        me = self.announcement
        refused = release.reason_to_rest(me.place, me.version)
        if me.queue == "plan" and not refused:
            refused = release.reason_not_to_plan((*me.methods, *me.packs))
        if refused != self.refused:
            logger.warning("%s %s", me.node, f"rests: {refused}" if refused else "takes tasks again")
            self.refused = refused
            fleet.announce(self.announced())
        if self.intake is not None:
            self.intake.open(not refused)

    def stop(self) -> None:
        self.stopping.set()
        self.join()
        try:
            fleet.withdraw(self.announcement)
        except REDIS_ERRORS:
            logger.info("%s stops without Redis", self.announcement.worker)
