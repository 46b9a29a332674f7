"""A device process's end of the socket pair to its supervisor."""

from __future__ import annotations

import json
import os
import queue
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.worlds.real.loop import ControlMessage


class ControlSocket(threading.Thread):
    """The device's end of the socket pair. A thread reads it, and ends the process when the parent ends.

    `sent_s` is the wall time of the last message to the supervisor; `served_s()`, which a pong tells, that at
    which the main thread last served the connections to other devices.
    """

    def __init__(self, sock: socket.socket):
        super().__init__(name="control", daemon=True)
        self.sock = sock
        self.lock = threading.Lock()
        self.sent_s = time.monotonic()
        self.received: queue.SimpleQueue[ControlMessage] = queue.SimpleQueue()
        self.on_message: Callable[[], None] = lambda: None
        self.served_s: Callable[[], float] = lambda: 0.0
        self.start()

    def run(self) -> None:
        with self.sock.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                message = json.loads(line)
                if message["type"] == "ping":
                    self.send({"type": "pong", "served_s": self.served_s()})
                    continue
                self.received.put(message)
                self.on_message()
        os._exit(1)

    def send(self, message: ControlMessage) -> None:
        """Send `message` to the supervisor; any thread may call this."""
        data = (json.dumps(message) + "\n").encode()
        with self.lock:
            self.sock.sendall(data)
            self.sent_s = time.monotonic()

    def say(self, line: str) -> None:
        """Show `line` in the log of this process; not while the program runs."""
        self.send({"type": "log", "lines": [line]})

    def receive(self) -> ControlMessage | None:
        """The supervisor's next message, None if there is none now."""
        return self.received.get() if self.has_message() else None

    def has_message(self) -> bool:
        """Whether `receive` would return a message now."""
        return not self.received.empty()
