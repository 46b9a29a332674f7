"""Which workers run: each sets a Redis key every few seconds, and the key expires soon after it stops."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from django.db import connection
from django.dispatch import Signal

from webapp.redis import REDIS_ERRORS, client
from webapp.runs import storage

BEAT_S = 2.0
SILENT_AFTER_S = 7
QUEUES = ("plan", "points", "emulate")
logger = logging.getLogger(__name__)

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

    def __str__(self) -> str:
        return f"{self.node}/{self.home}/{self.pid}/{self.started}"


def this_worker(node: str) -> Identity:
    return Identity(node, home(), os.getpid(), started_at(os.getpid()) or 0)


def parse_identity(text: str) -> Identity:
    """Also of an earlier version, which had no `home`."""
    node, *place, pid, started = text.rsplit("/", 3)
    return Identity(node, place[0] if place else "", int(pid), int(started))


@cache
def home() -> str:
    """This machine, since its last boot, and the namespace of process ids that this process is in."""
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


def slots(queue: str) -> int:
    """How many tasks the workers of a queue carry out at once, all together. Raises Redis' errors."""
    keys = list(client().scan_iter(match=f"worker:{queue}:*", count=1000))
    values: Any = client().mget(keys) if keys else []
    return sum(json.loads(value).get("slots", 1) for value in values if value is not None)


def alive(queue: str) -> list[str]:
    """Node names of the workers of a queue whose keys have not expired. Raises Redis' errors."""
    keys = client().scan_iter(match=f"worker:{queue}:*", count=1000)
    return sorted(key.split(":", 2)[2] for key in keys)


class Heartbeat(threading.Thread):
    """Sets one worker's key again and again until `stop`; calls `on_beat`, which may use the database."""

    def __init__(
        self, queue: str, worker: Identity, on_beat: Callable[[], None] = lambda: None, slots: int = 1
    ):
        super().__init__(name=f"heartbeat of {worker.node}", daemon=True)
        self.key = f"worker:{queue}:{worker.node}"
        self.value = json.dumps({"pid": worker.pid, "slots": slots})
        self.on_beat = on_beat
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                client().set(self.key, self.value, ex=SILENT_AFTER_S)
                self.on_beat()
            except REDIS_ERRORS:
                pass  # the next beat may find Redis again
            except storage.ERRORS as error:
                storage.report(error)
            except Exception:
                logger.exception("housekeeping of %s failed", self.key)
            finally:
                connection.close()
            self.stopping.wait(BEAT_S)

    def stop(self) -> None:
        self.stopping.set()
        self.join()
        try:
            client().delete(self.key)
        except REDIS_ERRORS:
            logger.info("%s stops without Redis", self.key)
