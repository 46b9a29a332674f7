"""Coroutines without an event loop: a program awaits handles, and a completed handle resumes its programs.

A strategy awaits nothing else, so no event loop is needed. The simulated world completes handles from a heap
of virtual times, the real world from a queue of completions.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any


class Handle:
    """An operation or a message that was started; `time_s` is when it was completed or failed."""

    __slots__ = ("done", "error", "time_s", "value", "waiters", "what")

    def __init__(self, what: str = ""):
        self.what = what
        self.done = False
        self.value: Any = None
        self.error: BaseException | None = None
        self.time_s = 0.0
        self.waiters: list[Program] = []

    def name(self) -> str:
        """What is waited for, in words."""
        return self.what

    def __await__(self) -> Generator[Handle, None, Any]:
        if not self.done:
            yield self
        if self.error is not None:
            raise self.error
        return self.value


class Program:
    """One coroutine on one device (None: its idle program). `now_s` is when it was last resumed."""

    __slots__ = ("coroutine", "handle", "now_s", "rank", "request", "token", "waiting_for", "waiting_since_s")

    def __init__(self, rank: int, coroutine: Coroutine[Any, Any, Any] | None, now_s: float):
        self.rank = rank
        self.coroutine = coroutine
        self.handle = Handle("program")
        self.now_s = now_s
        self.request = -1
        self.token = -1
        self.waiting_for: Handle | None = None
        self.waiting_since_s = now_s

    def step(self) -> bool:
        """Run until the next unfinished handle; True when the coroutine has ended.

        An exception of the coroutine ends it and is kept in `handle.error`.
        """
        assert self.coroutine is not None, "a device's idle program never runs"
        while True:
            try:
                awaited: Handle = self.coroutine.send(None)
            except StopIteration as stop:
                self.handle.value = stop.value
                return True
            except Exception as error:  # the program that awaits this one, or its world, raises it
                self.handle.error = error
                return True
            if not awaited.done:
                awaited.waiters.append(self)
                self.waiting_for, self.waiting_since_s = awaited, self.now_s
                return False
            self.now_s = max(self.now_s, awaited.time_s)

    def close(self) -> None:
        """Abandon the coroutine where it waits."""
        if self.coroutine is not None:
            self.coroutine.close()
