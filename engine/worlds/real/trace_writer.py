"""Sends a device's trace to the supervisor while the program runs."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque

from engine.domain.events import to_json
from engine.domain.trace import Mark, Span
from engine.worlds.real.control_socket import ControlSocket

FLUSH_S = 0.025
"""Wall seconds between two batches."""

CALM_FLUSH_S = 0.1
"""The same where the spans are held: what the thread does takes time from the program."""


class TraceWriter(threading.Thread):
    """Sends the trace to the supervisor in batches, because a message per span would slow the run down.

    With `holds` only marks are sent during a run, and spans after it: at native speed, encoding spans and
    reading them in the supervisor would take time from the cores that are being measured.
    """

    def __init__(self, control: ControlSocket, holds: bool = False):
        super().__init__(name="trace", daemon=True)
        self.control = control
        self.holds = holds
        self.held: list[Span] = []
        self.buffer: deque[Span | Mark] = deque()
        self.flushing = threading.Lock()
        self.start()

    def run(self) -> None:
        period_s = CALM_FLUSH_S if self.holds else FLUSH_S
        while True:
            time.sleep(period_s)  # not a wait for a condition
            self.flush()

    def flush(self) -> None:
        """Send what is in the buffer, by this thread or by one that is sending already."""
        with self.flushing:
            batch = [self.buffer.popleft() for _ in range(len(self.buffer))]
            if batch:
                with contextlib.suppress(OSError):  # the parent has ended, and so has the run
                    self.control.send({"type": "trace", "items": to_json(batch)})

    def emit(self, item: Span | Mark) -> None:
        if self.holds and isinstance(item, Span):
            self.held.append(item)
        else:
            self.buffer.append(item)

    def finish(self) -> None:
        """Send all that was emitted: the program has ended or was halted."""
        self.buffer.extend(self.held)
        self.held.clear()
        self.flush()
