"""Imports code from outside in a forked child first, with limits of time and memory: what it does there, an
endless loop or a crash too, harms nobody else.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

LIMIT_S = 30.0
"""Wall seconds that an import may take: importing torch takes ten on a slow board."""

MEMORY_BYTES = 2 * 2**30
"""What an import may allocate beyond what its process has."""

GRACE_S = 3.0
"""Wall seconds for a child that is over time to say in which line it was."""


DONE = "\0"
"""What a child says that came to the end of the import."""


class ImportTooLong(BaseException):
    """No `Exception`: code that catches those would go on."""


def fault_of(
    load: Callable[[], object],
    in_words: Callable[[BaseException], str],
    limit_s: float = LIMIT_S,
    memory_bytes: int = MEMORY_BYTES,
) -> str:
    """Why `load` must not be called in this process, or "". `in_words` tells an exception with its line."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        _try(load, in_words, writes, limit_s, memory_bytes)
    os.close(writes)
    said = _all_of(reads, time.monotonic() + limit_s + GRACE_S)
    if said is None:
        os.kill(child, signal.SIGKILL)
    status = _status_of(child)
    if said is None:
        return f"its import takes more than {limit_s:g} s"
    if said == DONE:
        return ""
    if os.WIFSIGNALED(status):
        return f"its import is killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return said or f"its import ends the process with status {os.waitstatus_to_exitcode(status)}"


def _status_of(child: int) -> int:
    """How it ended; 0 in a process that lets the kernel forget its children."""
    try:
        return os.waitpid(child, 0)[1]
    except ChildProcessError:
        return 0


def _all_of(pipe: int, until_s: float) -> str | None:
    """What comes through the pipe until its other end is closed; None if that takes too long."""
    said = b""
    with open(pipe, "rb", buffering=0) as source:
        while select.select([source], [], [], max(0.0, until_s - time.monotonic()))[0]:
            part = source.read(65536)
            if not part:
                return said.decode(errors="replace")
            said += part
    return None


def _try(
    load: Callable[[], object],
    in_words: Callable[[BaseException], str],
    writes: int,
    limit_s: float,
    memory_bytes: int,
) -> NoReturn:
    """The child: it ends without what a process does at its end, which is its parent's to do."""
    status = 0
    try:
        _be_quiet()
        _limit(limit_s, memory_bytes)
        load()
        os.write(writes, DONE.encode())
    except BaseException as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        with suppress(OSError):
            os.write(writes, in_words(error).encode())
        status = 1
    finally:
        os._exit(status)


def _be_quiet() -> None:
    """What the code prints, it prints when it is imported for good."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


def _limit(limit_s: float, memory_bytes: int) -> None:
    def late(number: int, frame: object) -> NoReturn:
        raise ImportTooLong(f"it takes more than {limit_s:g} s")

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = used + memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))
