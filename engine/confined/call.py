"""A function that is called in a process of its own, with limits that also hold for code in C.

A parser can be made to take any time and memory, and while it holds the interpreter neither a handler of
signals nor another thread runs. So it runs in a child of a small server (`engine.confined.server`), which has
its modules loaded, no secrets in its environment and no thread, and forks for each call. The kernel ends it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.confined.wire import receive, send
from engine.domain.errors import HostError, SpecError
from engine.domain.units import human
from engine.plugins.installed import VARIABLES

ROOT = Path(__file__).resolve().parents[2]
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
SLACK_S = 300.0
"""Wall seconds that a call may take beyond its limit, in which it waits for the processor: beside much other
work a few seconds of it take minutes. This only ends what waits for ever.
"""


@dataclass(frozen=True)
class Confined:
    """A function that runs in a confined process, with limits of time and memory.

    `function` is of a module's top level, whose result goes to JSON and back.

    A call has `limit_s` of the processor's time and `memory_bytes`; at most `at_once` calls run at a time in
    this process. `modules` are those that the function imports while it runs: they are loaded once, before
    the first call.
    `refusal` comes between what is read and why it is not: `cluster.toml: cannot be read: …`.
    """

    function: Callable[..., Any]
    limit_s: float
    memory_bytes: int
    at_once: int = 1
    modules: tuple[str, ...] = ()
    refusal: str = ": cannot be read"
    turns: threading.Semaphore = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "turns", threading.Semaphore(self.at_once))

    def __call__(self, where: str, *arguments: Any) -> Any:
        """What the function returns. `where` names what is read.

        Raises the function's `SpecError`, `SpecError` at a limit, `HostError` if the turn does not come.
        """
        if not self.turns.acquire(timeout=2 * self.limit_s):
            raise HostError(f"{where}: others' files are being read: try again in {self.limit_s:.0f} s.")
        try:
            return self._answer(where, self._question(self.function, arguments))
        finally:
            self.turns.release()

    def load(self) -> None:
        """Load the modules now; if that fails, the first call says why."""
        with _server.begin(self._question(int, ())) as connection, contextlib.suppress(OSError, EOFError):
            receive(connection)

    def _question(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
        limits = self.limit_s, self.limit_s + SLACK_S, self.memory_bytes
        return pickle.dumps((self.modules, function, arguments, limits))

    def _answer(self, where: str, question: bytes) -> Any:
        began_s = time.monotonic()
        with _server.begin(question) as connection:
            try:
                began_s = float(receive(connection))  # the modules are loaded, and its limits hold
                connection.settimeout(self.limit_s + SLACK_S)
                answer = json.loads(receive(connection))
            except (OSError, EOFError, ValueError):
                answer = {"broke": self._limit_met(time.monotonic() - began_s)}
        if "refused" in answer:
            sentence, fields = answer["refused"]
            raise SpecError(sentence, [(path, text) for path, text in fields])
        if "broke" in answer:
            raise SpecError(f"{where}{self.refusal}: {answer['broke']}.")
        return answer["value"]

    def _limit_met(self, took_s: float) -> str:
        for limit_s in (self.limit_s + SLACK_S, self.limit_s):
            if took_s >= limit_s:
                return f"it takes longer than {limit_s:g} s"
        return f"its reader, which has {human(self.memory_bytes, 'B')}, was ended"


class _Server:
    """The server that this process asks; it is started at the first call, and again if it has ended."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.control: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def begin(self, question: bytes) -> socket.socket:
        """The connection to the call that answers `question`."""
        ours, theirs = socket.socketpair()
        with theirs, self.lock:
            try:
                socket.send_fds(self.start(), [b"."], [theirs.fileno()])
            except OSError:  # it has ended since
                self.end()
                socket.send_fds(self.start(), [b"."], [theirs.fileno()])
        with contextlib.suppress(OSError):  # whoever waits for the answer sees that the server is gone
            send(ours, question)
        return ours

    def end(self) -> None:
        if self.control is not None and self.process is not None:
            self.control.close()
            self.process.kill()  # processes that were forked here may hold the socket too
            self.process.wait()
        self.control = None

    def start(self) -> socket.socket:
        """The socket that it is asked over; it is started where none is."""
        if self.control is not None:
            return self.control
        ours, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        environment |= dict.fromkeys(VARIABLES, "")  # no parser needs what packages add: none is imported
        paths = os.pathsep.join([str(ROOT), *(path for path in sys.path if path)])
        with theirs:
            self.process = subprocess.Popen(
                (sys.executable, "-m", "engine.confined.server", str(theirs.fileno())),
                env=environment | {"PYTHONPATH": paths, "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"},
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
            )
        self.control = ours
        return ours


def start_server() -> None:
    """Start the server now: copies of this process will then ask the same one, which loads modules once."""
    with _server.lock:
        _server.start()


def pids() -> frozenset[int]:
    """The process that answers this one, if there is one."""
    return frozenset() if _server.process is None else frozenset({_server.process.pid})


_server = _Server()
atexit.register(_server.end)
