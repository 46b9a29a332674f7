"""One emulation at a time per host: they would take each other's cores, and both would lie.

Each waiting run holds a numbered ticket file, locked as long as its process lives. A run's turn comes
when no lower ticket is locked any more; a crash frees its ticket by itself.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

POLL_S = 0.1


@contextmanager
def turn(
    directory: Path, waiting: Callable[[int], None], give_up: Callable[[], None] = lambda: None
) -> Iterator[int]:
    """Wait for this run's turn, then hold it until the block ends.

    `waiting(ahead)` is called whenever the number of runs ahead changes and is not 0. `give_up` is called
    while waiting and may raise. Yields the ticket's file descriptor: whoever inherits it holds the turn.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o755)
    ticket, path = _draw(directory)
    try:
        seen = 0
        while ahead := _ahead(directory, path):
            if ahead != seen:
                waiting(ahead)
                seen = ahead
            give_up()
            time.sleep(POLL_S)
        yield ticket
    finally:
        path.unlink(missing_ok=True)
        os.close(ticket)


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


def _ahead(directory: Path, own: Path) -> int:
    """Lower tickets whose holder lives; those of the dead are removed."""
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
