"""Device processes as their parent sees them: fork, tell, hear, end. Only they are touched, by pid."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Collection
from typing import Any

from engine.worlds.real.device_process import Assignment, device_process

EXIT_TIMEOUT_S = 2.0


class Child:
    """A device process as its parent sees it."""

    def __init__(self, rank: int, name: str, pid: int, sock: socket.socket):
        self.rank, self.name, self.pid, self.sock = rank, name, pid, sock
        self.pending = b""
        self.port = 0
        self.heard_s = self.asked_s = time.monotonic()
        self.state = "forked"

    def tell(self, **message: Any) -> None:
        """One that is gone already hears nothing: its end is noticed where it is read."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.sock.sendall((json.dumps(message) + "\n").encode())

    def hear(self) -> list[dict[str, Any]] | None:
        """Messages that have arrived; None when the process has closed its end."""
        try:
            data = self.sock.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            return None
        *lines, self.pending = (self.pending + data).split(b"\n")
        return [json.loads(line) for line in lines]


def fork_device(rank: int, name: str, assignment: Assignment, others: Collection[Child]) -> Child:
    """A new process that is device `rank`; it lets go of what it inherits of `others`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    pid = os.fork()
    if pid == 0:
        ours.close()
        for other in others:
            other.sock.close()
        device_process(rank, assignment, theirs)
    theirs.close()
    return Child(rank, name, pid, ours)


def end_all(children: Collection[Child], at_once: bool) -> None:
    """Every process is gone when this returns: told to exit, and killed if `at_once` or if it is slow."""
    for child in children:
        with contextlib.suppress(OSError):  # it is gone already
            child.tell(type="exit")
    deadline_s = time.monotonic() + EXIT_TIMEOUT_S
    for child in children:
        if at_once:
            kill(child.pid)
        while os.waitpid(child.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline_s:
                kill(child.pid)
            time.sleep(0.002)
        child.sock.close()


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
