"""`./loom bench idle`: what a service costs that nobody uses: its processes' memory and processor time.

A page in memory that several processes share counts once (the proportional set size of the kernel).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from bench.service.first_run import READY
from bench.tables.rows import Table
from webapp.ops.places import ROOT, OpsError, echo
from webapp.ops.redis_server import free_port

SETTLED_S = 360.0
"""The process that sessions are forked from ends when none was wanted for five minutes."""
MEASURED_S = 300.0
MEMORY_BYTES = 500_000_000
CORE_FRAC = 0.01
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """What one process uses: memory with its part of shared pages, and without, and its seconds of the
    processor so far.
    """

    name: str
    shared_bytes: int
    resident_bytes: int
    cpu_s: float


def measure_idle() -> Table:
    """What `./loom up` uses while nothing happens. Raises `OpsError` if it does not start."""
    with tempfile.TemporaryDirectory(prefix="edgeloom-idle-") as directory, started(directory) as pid:
        time.sleep(SETTLED_S)
        before, began_s = usages(pid), time.monotonic()
        time.sleep(MEASURED_S)
        return table(before, usages(pid), time.monotonic() - began_s)


@contextmanager
def started(state: str, *options: str, port: int = 0) -> Iterator[int]:
    """The process id of `./loom up` of this checkout, once it is ready; `state` is a directory of its own,
    `port` 0 any that is free.

    Raises `OpsError` if it ends before.
    """
    with subprocess.Popen(
        (str(ROOT / "loom"), "up", "--port", str(port or free_port()), *options),
        cwd=ROOT,
        env={**os.environ, "LOOM_STATE_DIR": state},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                echo(f"    {line.rstrip()}")
                if line.startswith(READY):
                    yield process.pid
                    return
            raise OpsError(f"./loom up ended with status {process.wait()} before it was ready.")
        finally:
            process.terminate()
            process.communicate()


def table(before: Mapping[int, Usage], after: Mapping[int, Usage], measured_s: float) -> Table:
    """One row per process that was there all the time, and their sums against what is asked."""
    there = [(before[pid], after[pid]) for pid in before if pid in after]
    rows = [(now, (now.cpu_s - then.cpu_s) / measured_s) for then, now in there]
    shared = sum(now.shared_bytes for now, _ in rows)
    resident = sum(now.resident_bytes for now, _ in rows)
    each = [(now.name, _mb(now.shared_bytes), _mb(now.resident_bytes), f"{busy:.2%}") for now, busy in rows]
    sums = (f"{len(rows)} processes", _mb(shared), _mb(resident), f"{sum(busy for _, busy in rows):.2%}")
    return Table(
        f"`./loom up` without anybody, for {measured_s / 60:.0f} minutes",
        ("process", "memory, shared pages once", "memory, shared pages each time", "of a core"),
        (*each, sums, ("asked", f"at most {_mb(MEMORY_BYTES)}", "", f"at most {CORE_FRAC:.0%}")),
    )


def family(pid: int) -> Iterator[int]:
    """A process and all that come from it, as far as they have not ended."""
    yield pid
    with suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from family(int(child))


def usages(pid: int) -> dict[int, Usage]:
    """The usage of a process and of all that come from it, but those that end just now."""
    found = {}
    for member in family(pid):
        with suppress(ProcessLookupError, FileNotFoundError):
            found[member] = usage(member)
    return found


def usage(pid: int) -> Usage:
    """Memory and processor time of a process. Raises `ProcessLookupError` or `FileNotFoundError` if it has
    ended.
    """
    place = Path("/proc") / str(pid)
    sizes = {
        line.split(":")[0]: int(line.split()[1]) * 1024
        for line in (place / "smaps_rollup").read_text().splitlines()[1:]
    }
    fields = (place / "stat").read_text().rpartition(")")[2].split()
    words = (place / "cmdline").read_text().split("\0")
    cpu_s = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
    return Usage(name_of(words), sizes["Pss"], sizes["Rss"], cpu_s)


def name_of(words: list[str]) -> str:
    """What a process is called: a worker by its queue, every other by its program or module."""
    if "-Q" in words:
        return f"worker, {words[words.index('-Q') + 1]}"
    return words[words.index("-m") + 1] if "-m" in words else Path(words[0]).name


def _mb(number: int) -> str:
    return f"{number / 1e6:.0f} MB"
