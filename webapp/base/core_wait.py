"""How long a process of this host has waited for a core: one that gets none does not hang."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

STARVED_SHARE = 0.5
"""A process whose threads have waited for a core for so much of a time could not answer in it."""


def waited_s(pid: int) -> float:
    """The seconds for which the threads that a process has now were ready to run and did not; 0 without one,
    or where the kernel counts none.
    """
    waited_ns = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError, IndexError):  # it has ended
            waited_ns += int(thread.read_text().split()[1])
    return waited_ns / 1e9


def is_starved(waited_s: float, elapsed_s: float) -> bool:
    """Whether a process had next to no core in a time."""
    return waited_s > STARVED_SHARE * elapsed_s
