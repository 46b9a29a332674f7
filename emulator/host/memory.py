"""How much memory this machine has, and a control group that limits what an emulation's processes have
together.

A limit of each process (setrlimit) would not do: a run has up to 80, which share what they were forked with.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
PREFIX = "edgeloom-run-"
GONE_S = 2.0
"""Wall seconds in which the kernel removes killed processes from their group."""


def machine_bytes() -> int:
    """Memory that this machine, or this container, has."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    total = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal:"))
    limits = [_number(path) for path in (CGROUPS / "memory.max", CGROUPS / "memory/memory.limit_in_bytes")]
    return min([total, *(limit for limit in limits if limit is not None)])


class MemoryGroup:
    """A control group with at most `limit_bytes`, of version 1 or 2; the kernel kills what needs more.

    A context manager. `procs` is the file that takes the pids of members; None where this process may not
    make groups (a container, mostly): then nothing is limited.
    """

    def __init__(self, limit_bytes: int):
        self.limit_bytes = limit_bytes
        self.directory: Path | None = None
        self.in_use: int | None = None

    def __enter__(self) -> MemoryGroup:
        _remove_empty_groups()
        for parent, limit in _places():
            directory = parent / f"{PREFIX}{os.getpid()}-{time.monotonic_ns()}"
            try:
                with _locked(parent):
                    directory.mkdir()
                    self.in_use = _lock(directory, fcntl.LOCK_SH)
                with (directory / limit).open("r+") as file:  # where there is none, memory is not limited
                    file.write(str(self.limit_bytes))
            except OSError:
                self._release()
                _remove(directory)
                continue
            self.directory = directory
            break
        return self

    def __exit__(self, *exc: object) -> None:
        """Remove the group, whose processes have been killed; the kernel may need a moment."""
        self._release()
        until_s = time.monotonic() + GONE_S
        while self.directory is not None and not _remove(self.directory) and time.monotonic() < until_s:
            time.sleep(0.01)

    def _release(self) -> None:
        if self.in_use is not None:
            os.close(self.in_use)
            self.in_use = None

    @property
    def procs(self) -> Path | None:
        return None if self.directory is None else self.directory / "cgroup.procs"

    def is_exceeded(self) -> bool:
        """Whether the kernel has killed a process of the group because of the limit."""
        if self.directory is None:
            return False
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                lines = (self.directory / name).read_text().splitlines()
                return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines)
        return False


def may_limit() -> bool:
    """Whether this process may make such groups."""
    with MemoryGroup(machine_bytes()) as group:
        return group.procs is not None


def _places() -> list[tuple[Path, str]]:
    """Directories in which a group may be made, and the name of the file with its limit.

    Version 2: beside the other groups of the machine, as in a group that has processes none can be made, or
    beside this process's own, if that was delegated to its user. Version 1: in this process's own group.
    """
    own = {name: path for _, name, path in (line.split(":", 2) for line in _lines("/proc/self/cgroup"))}
    beside = CGROUPS / Path(own.get("", "/").lstrip("/")).parent
    memory = CGROUPS / "memory" / own.get("memory", "/").lstrip("/")
    unified = [(parent, "memory.max") for parent in dict.fromkeys((CGROUPS, beside))]
    return [*unified, (memory, "memory.limit_in_bytes")]


def _remove_empty_groups() -> None:
    """Remove groups that a killed process has left; one with processes stays.

    Who uses a group holds a lock of its directory, which the kernel releases at the latest when they end: a
    process may be one of another container, of which nothing else is seen here.
    """
    for parent, _ in _places():
        with contextlib.suppress(OSError), _locked(parent):
            for directory in parent.glob(f"{PREFIX}*"):
                with contextlib.suppress(OSError):  # somebody uses it
                    os.close(_lock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB))
                    _remove(directory)


@contextlib.contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """Let nobody else make or remove groups in `parent` inside the block."""
    lock = _lock(parent, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(lock)


def _lock(directory: Path, how: int) -> int:
    """The file descriptor that holds the lock; raises `OSError`."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove(directory: Path) -> bool:
    """Remove a group; returns whether it is gone."""
    with contextlib.suppress(OSError):
        directory.rmdir()
    return not directory.exists()


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _number(path: Path) -> int | None:
    text = path.read_text().strip() if path.exists() else ""
    return int(text) if text.isdecimal() else None
