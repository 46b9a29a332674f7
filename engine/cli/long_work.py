"""`LongWork`: says on standard error how far long work is and how long it takes; Ctrl-C ends it in order.

It has no thread, because several commands fork. Whoever works calls `tick` now and then.
"""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from engine.domain.units import human_s

AFTER_S = 2.0
"""Seconds: shorter work says nothing on a terminal."""

EVERY_S = 0.1
LISTENS_S = 0.5
"""Seconds after which work that has not asked whether it is to stop would not hear it."""

LINES = 10
"""Lines that a pipe or a file gets over the whole time of countable work."""


class LongWork:
    """A context manager. On a terminal it shows a line from `AFTER_S` on; a pipe gets lines now and then.

    total: of what `done` counts. expected_s: about how long all of it takes, if nothing is to be counted.
    before: how much of it was done earlier, and says nothing of the pace. unit: what is counted, in words.
    stops: Ctrl-C does not raise where the work asks `stopped` all the time, but makes it true, once.
    """

    def __init__(
        self,
        title: str,
        total: int = 0,
        expected_s: float = 0.0,
        *,
        before: int = 0,
        unit: str = "",
        stops: bool = False,
        after_s: float = AFTER_S,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.title, self.total, self.expected_s = title, total, expected_s
        self.before, self.unit, self.stops, self.after_s = before, unit, stops, after_s
        self.count = before
        self.what = ""
        self.stream = stream or sys.stderr
        self.clock = clock
        self.began_s = self.shown_s = clock()
        self._stopped = False
        self._asked_s = -math.inf
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._handler: object = None

    def __enter__(self) -> Self:
        if self.stops:
            self._handler = signal.signal(signal.SIGINT, self._stop)
        if self.expected_s > AFTER_S:
            self._line(f"about {human_s(self.expected_s)} on this machine now; Ctrl-C stops it")
        return self

    def __exit__(self, *exc: object) -> None:
        if self.stops:
            signal.signal(signal.SIGINT, self._handler)  # type: ignore[arg-type]
        if self._bar:
            self._bar.stop()
            self._bar = None

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self._stopped or self.clock() > self._asked_s + LISTENS_S:
            raise KeyboardInterrupt
        self._stopped = True

    def stopped(self) -> bool:
        """Whether Ctrl-C was pressed: the work is to end with what is done."""
        self._asked_s = self.clock()
        return self._stopped

    def note(self, what: str) -> None:
        """What is being done now: a line by itself where there is no terminal."""
        self.what = what
        if not self.stream.isatty():
            self._line(f"{self.clock() - self.began_s:5.0f} s  {what}")
        self.tick()

    def done(self, count: int = 1) -> None:
        """Count `count` more of `total` as done."""
        self.count += count
        step = max(1, self.total // LINES)
        is_due = self.count == self.total or (self.count - count) // step < self.count // step
        if is_due and not self.stream.isatty() and self.clock() >= self.began_s + self.after_s:
            self._line(self._words())
        self.tick()

    def reached(self, count: int) -> None:
        """Count `count` of `total` as done in all, if it was less."""
        if count > self.count:
            self.done(count - self.count)

    def tick(self) -> None:
        """Show what is true now, if it is time to."""
        now_s = self.clock()
        if not self.stream.isatty() or now_s < self.began_s + self.after_s or now_s < self.shown_s + EVERY_S:
            return
        self.shown_s = now_s
        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(20),
                console=Console(file=self.stream),
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._bar.add_task("", total=1.0)
            self._bar.start()
        self._bar.update(self._task, completed=self.frac(), description=self._words())
        self._bar.refresh()

    def say(self, line: str) -> None:
        """A line that stays, also on a terminal."""
        if self._bar:
            self._bar.console.print(line, markup=False, highlight=False)
        else:
            self._line(line)

    def frac(self) -> float:
        """How much of the work is done."""
        if self.total:
            return self.count / self.total
        return min(1.0, (self.clock() - self.began_s) / self.expected_s) if self.expected_s else 0.0

    def remaining_s(self) -> float | None:
        """Seconds that the rest takes, by the pace so far or by what was expected; None without either."""
        passed_s = self.clock() - self.began_s
        if self.total:
            counted = self.count - self.before
            return passed_s * (self.total - self.count) / counted if counted else None
        return max(0.0, self.expected_s - passed_s) if self.expected_s else None

    def _words(self) -> str:
        parts = [self.title]
        if self.total:
            parts.append(f"{self.count:,} of {self.total:,} {self.unit}".rstrip())
        if self.what:
            parts.append(self.what)
        remaining_s = self.remaining_s()
        if remaining_s:
            parts.append(f"about {human_s(remaining_s)} left")
        return ", ".join(part for part in parts if part)

    def _line(self, line: str) -> None:
        self.stream.write(line + "\n")
        self.stream.flush()
