"""Records the processes of running sessions, so that a later start can end those that a crash left.

Normally none is left, since the kernel kills a session with its owner. Processes are identified by pid and
start time, never by name.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """Identifies a process: a pid can be reused, but not with the same start time."""

    pid: int
    start_ticks: int


def process(pid: int) -> Process | None:
    """The process that has this pid now, or None."""
    fields = _stat(pid)
    return Process(pid, int(fields[19])) if fields else None


def is_alive(known: Process) -> bool:
    return process(known.pid) == known


def children(pid: int) -> list[Process]:
    """Direct children of `pid`."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and (fields := _stat(int(directory.name))) and int(fields[1]) == pid:
            found.append(Process(int(directory.name), int(fields[19])))
    return found


def record(directory: Path, owner: Process, members: list[Process]) -> Path:
    """Write the owner and the processes of a session to a file, which the caller unlinks at its end."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"session-{members[0].pid}.json"
    half = path.with_suffix(".half")  # others read every record at their start
    half.write_text(json.dumps({"owner": owner, "members": members}))
    return half.replace(path)


def recorded(directory: Path, owner: int) -> list[Path]:
    """The files of the sessions of the process `owner`."""
    found = []
    for path in sorted(directory.glob("session-*.json")):
        with contextlib.suppress(FileNotFoundError):  # its owner has removed it meanwhile
            if Process(*json.loads(path.read_text())["owner"]).pid == owner:
                found.append(path)
    return found


def cleanup_stale(directory: Path) -> int:
    """End the sessions whose owner has ended; returns the number of processes killed."""
    killed = 0
    for path in sorted(directory.glob("session-*.json")):
        with contextlib.suppress(FileNotFoundError):  # its owner has removed it meanwhile
            data = json.loads(path.read_text())
            if is_alive(Process(*data["owner"])):
                continue
            for member in data["members"]:
                killed += kill(Process(*member))
            path.unlink(missing_ok=True)
    return killed


def kill(known: Process) -> bool:
    """Send SIGKILL to this process; False if it has ended."""
    if not is_alive(known):
        return False
    try:
        os.kill(known.pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat after the command name (which may hold anything): state, ppid, …"""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields
