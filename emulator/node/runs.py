"""The run that a node takes part in: a process of its own, between which and the server bytes pass."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import NamedTuple

from emulator.node.run_folders import remove_leftovers
from engine.domain.node_messages import PASS_CHARS, NodeClosed, NodeMessage, NodeOpen, NodePass

MODULE = "emulator.node.board_process"
END_S = 5.0
"""How long a process has to remove what its run has left, before it is killed."""

Send = Callable[[NodeMessage], Awaitable[None]]


class Allowed(NamedTuple):
    """What runs may have of this machine. `address` is where others may connect; "": that by which the server
    is reached.
    """

    address: str = ""
    cache_bytes: int = 10_000_000_000
    memory_bytes: int = 1 << 62


DEFAULT = Allowed()


class NodeRun:
    """The process of one run. `send` says something to the server. Raises `OSError` if it cannot start."""

    def __init__(self, name: str, address: str, allowed: Allowed, send: Send):
        self.name, self.send = name, send
        ours, theirs = socket.socketpair()
        limits = (str(allowed.cache_bytes), str(allowed.memory_bytes), str(os.getpid()))
        with theirs, ExitStack() as unless_started:
            unless_started.enter_context(ours)
            self.process = subprocess.Popen(
                [sys.executable, "-m", MODULE, str(theirs.fileno()), address, *limits],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C is for the node, which then ends it
                env=os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": _path()},
            )
            unless_started.pop_all()
        self.sock = ours
        self.writer: asyncio.StreamWriter | None = None
        self.pump = asyncio.create_task(self._pump())
        self.opened = asyncio.Event()

    async def _pump(self) -> None:
        """Pass on what the process says until it ends."""
        reader, self.writer = await asyncio.open_connection(sock=self.sock)
        self.opened.set()
        with suppress(ConnectionError):
            while data := await reader.read(PASS_CHARS):
                await self.send(NodePass(run=self.name, text=data.decode("ascii", "replace")))
        await self.send(NodeClosed(run=self.name))
        await asyncio.to_thread(self.process.wait)
        await asyncio.to_thread(remove_leftovers)  # if it was killed

    async def said(self, text: str) -> None:
        """Pass on what the server says."""
        await self.opened.wait()
        assert self.writer is not None, "it is open"
        with suppress(ConnectionError):
            self.writer.write(text.encode("ascii", "replace"))
            await self.writer.drain()

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    async def end(self) -> None:
        """Hang up; the process removes what it has left, and is killed if it does not end."""
        self.pump.cancel()
        await asyncio.wait([self.pump])
        if self.writer is not None:
            self.writer.close()
        self.sock.close()
        try:
            async with asyncio.timeout(END_S):
                await asyncio.to_thread(self.process.wait, END_S)
        except (TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
            remove_leftovers()


class NodeRuns:
    """At most one run at a time: a server that begins another has given up the one before."""

    def __init__(self, allowed: Allowed, send: Send):
        self.allowed, self.send = allowed, send
        self.run: NodeRun | None = None

    @property
    def doing(self) -> str:
        return "" if self.run is None or self.run.is_over else f"run {self.run.name}"

    async def take(self, message: NodeOpen | NodePass | NodeClosed, address: str) -> None:
        mine = self.run is not None and self.run.name == message.run
        if isinstance(message, NodeOpen):
            await self.end()
            try:
                self.run = NodeRun(message.run, self.allowed.address or address, self.allowed, self.send)
            except OSError as error:
                why = f"it cannot start a process ({error.strerror or type(error).__name__})"
                await self.send(NodeClosed(run=message.run, why=why[:200]))
        elif mine and self.run is not None and isinstance(message, NodePass):
            await self.run.said(message.text)
        elif mine:
            await self.end()

    async def end(self) -> None:
        run, self.run = self.run, None
        if run is not None:
            await run.end()


def _path() -> str:
    return os.pathsep.join(path for path in sys.path if path)
