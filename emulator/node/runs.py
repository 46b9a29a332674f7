"""The run that a node takes part in: a process for each of its devices, between which and the server bytes
pass.
"""

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
from emulator.node.slice_cache import MOST_CACHE_BYTES
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
    cache_bytes: int = MOST_CACHE_BYTES
    memory_bytes: int = 1 << 62


DEFAULT = Allowed()


class NodeRun:
    """The process of one device of a run. `send` says something to the server. Raises `OSError` if it cannot
    start.
    """

    def __init__(self, name: str, rank: int, address: str, allowed: Allowed, send: Send):
        self.name, self.rank, self.send = name, rank, send
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
                await self.send(NodePass(run=self.name, rank=self.rank, text=data.decode("ascii", "replace")))
        await self.send(NodeClosed(run=self.name, rank=self.rank))
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
    """At most one run at a time, with a process for each device that this machine is: one on a core. A server
    that begins another run has given up the one before.
    """

    def __init__(self, allowed: Allowed, send: Send):
        self.allowed, self.send = allowed, send
        self.devices: dict[int, NodeRun] = {}

    @property
    def doing(self) -> str:
        return next((f"run {one.name}" for one in self._going_on()), "")

    def _going_on(self) -> list[NodeRun]:
        return [one for one in self.devices.values() if not one.is_over]

    async def take(self, message: NodeOpen | NodePass | NodeClosed, address: str) -> None:
        device = self.devices.get(message.rank)
        mine = device is not None and device.name == message.run
        if isinstance(message, NodeOpen):
            if any(one.name != message.run for one in self.devices.values()):
                await self.end()
            if why := self._why_not():
                await self.send(NodeClosed(run=message.run, rank=message.rank, why=why))
                return
            at = self.allowed.address or address
            try:
                begun = NodeRun(message.run, message.rank, at, self.allowed, self.send)
            except OSError as error:
                why = f"it cannot start a process ({error.strerror or type(error).__name__})"
                await self.send(NodeClosed(run=message.run, rank=message.rank, why=why[:200]))
            else:
                self.devices[message.rank] = begun
        elif mine and device is not None and isinstance(message, NodePass):
            await device.said(message.text)
        elif mine and device is not None:
            del self.devices[message.rank]
            await device.end()

    def _why_not(self) -> str:
        """Why this machine is no further device now; empty if it is one."""
        cores = len(os.sched_getaffinity(0))
        return f"it has {cores} cores, and is one device for each" if len(self._going_on()) >= cores else ""

    async def end(self) -> None:
        devices, self.devices = list(self.devices.values()), {}
        for device in devices:
            await device.end()


def _path() -> str:
    return os.pathsep.join(path for path in sys.path if path)
