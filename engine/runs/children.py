"""One device process as its parent sees it: fork, send, receive, kill. Only these processes, by their pid."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from engine.runs.output import Output
from engine.worlds.real.device_process import Assignment, device_process

EXIT_TIMEOUT_S = 2.0
"""Wall seconds that a process has to exit before it is killed."""

Message = dict[str, Any]
"""A message to or from a device process; `type` says which."""


class Child:
    """A device process. `state` is the last that it reported: listening, ready, halted, stuck, finished…

    `last_message_s` is the wall time of its last message, `last_ping_s` that of the last ping to it.
    `killed`: the process was killed, but its end has not been read from the socket yet. `ending`: how it has
    ended. `output`: what it writes to its standard output and error.
    """

    def __init__(self, rank: int, name: str, pid: int, sock: socket.socket, output: Output | None = None):
        self.rank, self.name, self.pid, self.sock, self.output = rank, name, pid, sock, output
        self.pending = b""
        self.port = 0
        self.last_message_s = self.last_ping_s = time.monotonic()
        self.state = "forked"
        self.killed = False
        self.ending = ""

    def send(self, **message: Any) -> None:
        """Send a message. A process that has ended gets none: `receive` reports its end."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.sock.sendall((json.dumps(message) + "\n").encode())

    def receive(self) -> list[Message] | None:
        """The messages that have arrived; None if the process has closed its end."""
        data = self._arrived()
        if not data:
            return None
        *lines, self.pending = (self.pending + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def _arrived(self) -> bytes:
        """What has arrived; nothing if the process has closed its end."""
        try:
            return self.sock.recv(1 << 20)
        except ConnectionResetError:
            return b""

    def kill(self) -> None:
        """Kill it if it still runs."""
        kill(self.pid)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def is_stopped(self) -> bool:
        """Whether a signal (SIGSTOP) has stopped it."""
        return is_stopped(self.pid)

    def how_ended(self) -> str:
        """How it ends, which has closed its socket, in words."""
        return ending_of(self.pid)

    def has_ended(self) -> bool:
        return os.waitpid(self.pid, os.WNOHANG) != (0, 0)

    def processor_s(self) -> float:
        return processor_s(self.pid)

    def close(self) -> None:
        """Close this process' ends of the socket and of the pipe."""
        self.sock.close()
        if self.output is not None:
            self.output.close()
            self.output = None


StartDevice = Callable[[int, str, Assignment, Collection[Child]], Child]
"""Starts the process of a device, by its rank and name; the others are running already."""


def fork_device(rank: int, name: str, assignment: Assignment, others: Collection[Child]) -> Child:
    """Start a process that runs device `rank`. It closes what it inherits of `others`.

    It begins with SIGUSR1 blocked: until it knows what to do with that signal, the signal would end it.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    reading, writing = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        ours.close()
        os.close(reading)
        for other in others:
            other.close()
        for standard in (1, 2):
            os.dup2(writing, standard)
        os.close(writing)
        sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)
        device_process(rank, assignment, theirs, parent)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    os.close(writing)
    return Child(rank, name, pid, ours, Output(reading, name))


def ending_of(pid: int, timeout_s: float = EXIT_TIMEOUT_S) -> str:
    """How a process ends that has closed its socket, in words; "" if it is not a child of this one.

    One that lives on without its socket gets no message any more, so it is killed after `timeout_s`.
    """
    try:
        if not _has_ended(pid, timeout_s):
            kill(pid)
            return f"its process closed its socket, did not end within {timeout_s:g} s and was killed"
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        return ""
    assert found is not None, "without WNOHANG it waits"
    if found.si_code == os.CLD_EXITED:
        return f"its process ended with status {found.si_status}"
    known = {one.value: one.name for one in signal.Signals}
    return f"its process was ended by {known.get(found.si_status, f'signal {found.si_status}')}"


def _has_ended(pid: int, timeout_s: float) -> bool:
    """Whether this child ends within `timeout_s`; ChildProcessError if it is no child of this process."""
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
        return True
    ending = os.pidfd_open(pid)
    try:
        waiting = select.poll()  # unlike `select` it takes any number, and the parent of many has high ones
        waiting.register(ending, select.POLLIN)
        return bool(waiting.poll(1000 * timeout_s))
    finally:
        os.close(ending)


def end_all(children: Collection[Child], at_once: bool) -> None:
    """End every process and wait until it has ended. With `at_once`, or if one is slow to exit, kill it."""
    for child in children:
        with contextlib.suppress(OSError):  # it has ended already
            child.send(type="exit")
    deadline_s = time.monotonic() + EXIT_TIMEOUT_S
    for child in children:
        if at_once:
            child.kill()
        while not child.has_ended():
            if time.monotonic() > deadline_s:
                child.kill()
            time.sleep(0.002)
        child.close()


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped this process; see proc_pid_stat(5), state."""
    try:
        stat = (Path("/proc") / str(pid) / "stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] == "T"


def processor_s(pid: int) -> float:
    """Seconds of processor time of a process that has not been waited for, since its fork; see proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user_and_system = int(fields[11]) + int(fields[12])
    return user_and_system / os.sysconf("SC_CLK_TCK")


def kill(pid: int) -> None:
    """Kill the process if it still runs."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
