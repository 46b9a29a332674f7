"""Sends a device's trace to the supervisor while the program runs."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from engine.domain.events import to_json
from engine.domain.trace import Mark, Span
from engine.worlds.real.control_socket import ControlSocket

if TYPE_CHECKING:
    from engine.worlds.real.loop import ControlMessage

FLUSH_S = 0.025
"""Wall seconds between two batches."""

CALM_FLUSH_S = 0.1
"""The same where the spans are held: what the thread does takes time from the program."""

MOST_ITEMS = 10_000
"""In one message: what is held until the end of a long run is a hundred megabytes."""

SIGN_S = 1.0
"""Wall seconds without a message after which the process says that it is alive."""


class TraceWriter(threading.Thread):
    """Sends the trace to the supervisor in batches, because a message per span would slow the run down. While
    there is nothing to send, it tells that the process is alive; a long operation does not hold it up.

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
            self.tell_alive(time.monotonic())

    def tell_alive(self, now_s: float) -> None:
        """Send a sign of life if this process has sent nothing for `SIGN_S`."""
        if now_s - self.control.sent_s > SIGN_S:
            self._send({"type": "alive"})

    def flush(self) -> None:
        """Send what is in the buffer, by this thread or by one that is sending already."""
        with self.flushing:
            left = len(self.buffer)
            while left:
                batch = [self.buffer.popleft() for _ in range(min(left, MOST_ITEMS))]
                left -= len(batch)
                self._send({"type": "trace", "items": to_json(batch)})

    def _send(self, message: ControlMessage) -> None:
        with contextlib.suppress(OSError):  # the parent has ended, and so has the run
            self.control.send(message)

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
