"""Ends a child that runs but does not answer any more: the supervisor then starts it again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from webapp.ops.places import echo, shown
from webapp.ops.supervisor import Child

EVERY_S = 10.0
MISSES = 6
"""A busy machine is slow: only so many questions in a row without an answer mean that none will come."""


class HealthWatch(threading.Thread):
    """Asks `answers` again and again until the process ends, and kills `child` when it does not answer."""

    def __init__(self, child: Child, answers: Callable[[], bool]):
        super().__init__(name=f"health of {child.name}", daemon=True)
        self.child, self.answers = child, answers
        self.asked: object = None
        self.misses = 0
        self.pause = threading.Event()

    def run(self) -> None:
        while not self.pause.wait(EVERY_S):
            self.look()

    def look(self) -> None:
        """Ask once. What a new process misses counts only from its first answer on: starting takes time."""
        process = self.child.process
        if self.answers():
            self.asked, self.misses = process, 0
        elif self.asked is process:
            self.misses += 1
        if self.misses >= MISSES:
            self.misses, self.asked = 0, None
            log = shown(self.child.log)
            echo(f"{self.child.name} runs and does not answer: it is ended and started again. Its log: {log}")
            self.child.send(signal.SIGKILL)
