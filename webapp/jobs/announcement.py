"""What a worker says about itself: one Redis key per worker and queue, which expires soon after it stops."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine.domain.values import Value
from webapp.base.redis import client
from webapp.jobs.calibration import Calibrating

SILENT_AFTER_S = 7
"""A worker beats every 2 s; after so many seconds without a beat it counts as gone."""


class Holder(Value):
    """Another program that emulates on a worker's machine: whose process, for what, since when in seconds
    since 1970. The worker's own runs wait for it if it `counts`.
    """

    user: str
    pid: int
    purpose: str
    since: float
    counts: bool

    def __str__(self) -> str:
        return f"a {self.purpose} of {self.user} (process {self.pid})"


class Announcement(Value):
    """A worker as it was at its last beat.

    `worker` is its identity, `place` the part of that which a restart keeps (node name and home). `slots` is
    the number of tasks at once. `calibration` and `models` are digests; `methods` the code of those from
    outside that it uses, `packs` the packages of its data, and `left_out` why it uses others not;
    `capabilities` are those of `emulator/network/probe.py` that work. `calibrated` and `calibrated_at` say
    how and when the calibration was made, `calibration_caution` what is to be said beside its figures, or "",
    `calibration_takes_s` how long one takes now, `calibrating` what
    the one under way does, and `calibration_failure` why the last one that this worker was asked for failed,
    or "". `refused` says why it takes nothing at present, or "". `event_lag_s` is the age of the oldest event
    that readers cannot have yet. `holds` are the jobs whose leases it renews. `beside` are the other programs
    that emulate on its machine.
    """

    worker: str
    place: str
    node: str
    pid: int
    queue: str
    slots: int = 1
    version: str = ""
    processor: str = ""
    cores: int = 1
    memory_bytes: int = 0
    available_bytes: int = 0
    load_1min: float = 0.0
    capabilities: tuple[str, ...] = ()
    calibration: str = ""
    calibrated: str = ""
    calibrated_at: float = 0.0
    calibration_caution: str = ""
    calibration_takes_s: float = 0.0
    calibrating: Calibrating | None = None
    calibration_failure: str = ""
    models: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    packs: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    refused: str = ""
    event_lag_s: float = 0.0
    holds: tuple[str, ...] = ()
    beside: tuple[Holder, ...] = ()
    at: float = 0.0


def holder_of(machines: Sequence[Announcement]) -> Holder | None:
    """Who keeps all these emulating workers waiting, the first to have come; None if one of them is free."""
    waited_for = [
        [one for one in machine.beside if one.counts] for machine in machines if not machine.refused
    ]
    if not waited_for or not all(waited_for):
        return None
    return min((one for found in waited_for for one in found), key=lambda one: one.since)


def announce(announcement: Announcement) -> None:
    """Say in Redis that a worker is here, until it is silent for `SILENT_AFTER_S`. Raises Redis' errors."""
    client().set(key_of(announcement), announcement.model_dump_json(), ex=SILENT_AFTER_S)


def withdraw(announcement: Announcement) -> None:
    """Say in Redis that a worker is gone. Raises Redis' errors."""
    client().delete(key_of(announcement))


def key_of(announcement: Announcement) -> str:
    """The whole identity: hosts may share a name."""
    return f"worker:{announcement.queue}:{announcement.worker}"


def announced(queue: str = "*") -> list[Announcement]:
    """The workers of a queue, or all, whose keys have not expired, by name. Raises Redis' errors."""
    keys = list(client().scan_iter(match=f"worker:{queue}:*", count=1000))
    values: Any = client().mget(keys) if keys else []
    found = [read(key, text) for key, text in zip(keys, values, strict=True) if text is not None]
    return sorted(found, key=lambda one: (one.node, one.queue, one.worker))


def read(key: str, text: str) -> Announcement:
    """An announcement as Redis has it. One that this version cannot read is of a worker of another version:
    it is listed as refused, and hides no other worker.
    """
    try:
        return Announcement.model_validate_json(text)
    except ValidationError:
        queue, _, worker = key.removeprefix("worker:").partition(":")
        node, *middle = worker.split("/")
        return Announcement(
            worker=worker,
            place="/".join([node, *middle[:-2]]),
            node=node,
            pid=0,
            queue=queue,
            refused="it announces itself as another version does: give it the server's version",
        )


# This machine -------------------------------------------------------------------------------------
CGROUP = Path("/sys/fs/cgroup")
"""A container's own limits are at the root of what it sees."""


def present(announcement: Announcement) -> Announcement:
    """The announcement with this machine's figures of now."""
    memory = _meminfo()
    return announcement.model_copy(
        update={
            "cores": cores(),
            "memory_bytes": min(memory["MemTotal"], _limit(CGROUP / "memory.max", memory["MemTotal"])),
            "available_bytes": memory["MemAvailable"],
            "load_1min": round(os.getloadavg()[0], 2),
            "at": time.time(),
        }
    )


def cores() -> int:
    """Cores that this process may use, whole ones."""
    mine = len(os.sched_getaffinity(0))
    quota = CGROUP / "cpu.max"
    if not quota.exists():
        return mine
    allowed, period = quota.read_text().split()
    return mine if allowed == "max" else max(1, min(mine, int(allowed) // int(period)))


def _meminfo() -> dict[str, int]:
    """The first lines of /proc/meminfo, on the whole memory and what is available, in bytes."""
    lines = Path("/proc/meminfo").read_text().split("\n", 3)[:3]
    fields = (line.replace(":", "").split() for line in lines)
    return {name: int(number) * 1024 for name, number, *_ in fields}


def _limit(path: Path, otherwise: int) -> int:
    text = path.read_text().strip() if path.exists() else "max"
    return otherwise if text == "max" else int(text)
