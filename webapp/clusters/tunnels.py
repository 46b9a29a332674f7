"""The way from a run's worker to a board: through Redis to the process that has the board's WebSocket.

Two lists, one for each direction: what the worker says to a connection (`node:down:`), and what a run's
process on the board says (`node:up:`). A list that is full makes its writer wait, and so in the end the board
or the run; one that nobody reads for long ends the run.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from django.db import Error
from redis.exceptions import ConnectionError as RedisGone

from engine.domain.addresses import Origin, own_addresses
from engine.domain.cluster import ClusterSpec
from engine.domain.node_messages import LARGEST_LINE_BYTES, PASS_CHARS, NodeClosed, NodeOpen, NodePass
from webapp.base.redis import REDIS_ERRORS, async_client, client, length, pop, push
from webapp.clusters import nodes
from webapp.clusters.models import Node

KEEP_S = 600
LISTEN_S = 5
AGAIN_S = 2.0
MOST_WAITING = 100
"""Messages in one list, 20 MB."""
LOOK_S = 0.01
FULL_S = 30.0
"""A list that is full for so long is read by nobody."""
GONE_S = 3.0
"""After so long a silence the database is asked whether the board is still there: its process says every
second that it is alive.
"""
logger = logging.getLogger(__name__)


def down_of(connection: str) -> str:
    return f"node:down:{connection}"


def up_of(connection: str, run: str, rank: int = 0) -> str:
    return f"node:up:{connection}:{run}:{rank}"


class Ends:
    """The server's ends of a board's tunnels, in the process that has its WebSocket. `say` sends to the
    board; `devices` are those of which it may speak, by run and rank.
    """

    def __init__(self, connection: str, say: Callable[[str], Awaitable[None]]):
        self.connection, self.say = connection, say
        self.devices: set[tuple[str, int]] = set()
        self.redis = async_client()

    async def listen(self) -> None:
        """Pass on what workers say, until this is cancelled. Without Redis there are no runs."""
        while True:
            try:
                answer = await self.redis.blpop([down_of(self.connection)], timeout=LISTEN_S)  # type: ignore[misc]
            except REDIS_ERRORS as error:
                if isinstance(error, RedisGone):
                    await self._end_runs()
                await asyncio.sleep(AGAIN_S)
                continue
            if answer:
                message = json.loads(answer[1])
                device = message["run"], message["rank"]
                if message["kind"] == "open":
                    self.devices.add(device)
                elif message["kind"] == "closed":
                    self.devices.discard(device)
                await self.say(answer[1])

    async def _end_runs(self) -> None:
        """Tell the board that its runs are over: Redis, when it is back, knows neither what was said of them
        nor that their workers have given them up.
        """
        for run, rank in self.devices:
            await self.say(NodeClosed(run=run, rank=rank).model_dump_json())
        self.devices.clear()

    def has(self, message: NodePass | NodeClosed) -> bool:
        """Whether the board may say this."""
        return (message.run, message.rank) in self.devices

    async def take(self, message: NodePass | NodeClosed) -> None:
        """Pass on what the board's process of a run says. Raises Redis' errors."""
        device = message.run, message.rank
        key = up_of(self.connection, *device)
        until_s = time.monotonic() + FULL_S
        while device in self.devices and await self.redis.llen(key) >= MOST_WAITING:  # type: ignore[misc]
            if time.monotonic() > until_s:
                self.devices.discard(device)
                return
            await asyncio.sleep(LOOK_S)
        await self._push(key, message)
        if isinstance(message, NodeClosed):
            self.devices.discard(device)

    async def _push(self, key: str, message: NodePass | NodeClosed) -> None:
        async with self.redis.pipeline() as pipe:
            pipe.rpush(key, message.model_dump_json())
            pipe.expire(key, KEEP_S)
            await pipe.execute()

    async def end(self) -> None:
        """Tell the runs that their board has gone."""
        with suppress(*REDIS_ERRORS):
            for run, rank in self.devices:
                gone = NodeClosed(run=run, rank=rank, why="its connection to the server has ended")
                await self._push(up_of(self.connection, run, rank), gone)
        await self.redis.aclose()


@contextmanager
def tunnels_of(cluster: ClusterSpec, run_id: int) -> Iterator[list[socket.socket]]:
    """Sockets that lead to processes on the boards of a cluster, in the order of the devices that are bound
    to one. Raises `SpecError` for a board that is away.
    """
    name = f"{run_id}-{secrets.token_hex(4)}"  # a run may begin again
    with ExitStack() as stack:
        boards = enumerate(nodes.boards_of(cluster))
        yield [stack.enter_context(_Tunnel(node, name, rank)) for rank, node in boards]


class _Tunnel:
    """The worker's end: entering it gives a socket that leads to the process of a device on `node`."""

    def __init__(self, node: Node, run: str, rank: int = 0):
        self.node, self.run, self.rank = node, run, rank
        self.down, self.up = down_of(node.connection), up_of(node.connection, run, rank)
        self.theirs, self.ours = socket.socketpair()
        self.is_over = threading.Event()
        self.saying = threading.Lock()
        self.held, self.held_chars = list[str](), 0  # a line whose end has not come
        self.threads = [
            threading.Thread(target=self._guarded, args=(work,), name=f"tunnel to {node.name}", daemon=True)
            for work in (self._send, self._receive)
        ]

    def __enter__(self) -> socket.socket:
        self.ours.sendall(Origin(self.node.came_from, own_addresses()).line())  # before the board can speak
        push(self.down, NodeOpen(run=self.run, rank=self.rank).model_dump_json(), KEEP_S)
        for thread in self.threads:
            thread.start()
        return self.theirs

    def __exit__(self, *exc: object) -> None:
        self._hang_up()
        for thread in self.threads:
            thread.join()
        with suppress(*REDIS_ERRORS):
            push(self.down, NodeClosed(run=self.run, rank=self.rank).model_dump_json(), KEEP_S)
            client().delete(self.up)
        self.ours.close()
        self.theirs.close()

    def _hang_up(self) -> None:
        self.is_over.set()
        with suppress(OSError):
            self.ours.shutdown(socket.SHUT_RDWR)

    def _guarded(self, work: Callable[[], str]) -> None:
        """Do the work of a thread, then say to the session why there is no more of it."""
        why = ""
        try:
            why = work()
        except REDIS_ERRORS:
            why = "Redis does not answer, or refuses"
        except Error as error:
            logger.warning("run %s cannot look up its board: %s", self.run, error)
            why = "the server's database does not say whether it is still there"
        except OSError:
            logger.debug("the session of run %s has hung up", self.run)
        if why and not self.is_over.is_set():
            with suppress(OSError):
                self._tell(json.dumps({"type": "ended", "words": why}) + "\n")
        self._hang_up()

    def _tell(self, text: str) -> None:
        with self.saying:
            self.ours.sendall(text.encode("ascii", "replace"))

    def _tell_lines(self, text: str) -> None:
        """Tell the session the lines that end in `text`: a board may be lost within one. One that is too long
        goes as it is, and the session says so.
        """
        whole, newline, rest = text.rpartition("\n")
        held_chars = len(rest) + (0 if newline else self.held_chars)
        if held_chars > LARGEST_LINE_BYTES:
            whole, newline, rest, held_chars = text, "", "", 0
        elif not newline:
            self.held.append(text)
            self.held_chars = held_chars
            return
        self._tell("".join((*self.held, whole, newline)))
        self.held, self.held_chars = [rest], held_chars

    def _send(self) -> str:
        """Pass on what the session says; why it ended, "" if the session has."""
        while data := self.ours.recv(PASS_CHARS):
            until_s = time.monotonic() + FULL_S
            while length(self.down) >= MOST_WAITING:
                if time.monotonic() > until_s:
                    return f"it has taken nothing for {FULL_S:.0f} s"
                time.sleep(LOOK_S)
            push(
                self.down,
                NodePass(run=self.run, rank=self.rank, text=data.decode("ascii")).model_dump_json(),
                KEEP_S,
            )
        return ""

    def _receive(self) -> str:
        """Pass on what the board says; why it ended."""
        heard_s = time.monotonic()
        while not self.is_over.is_set():
            answer = pop(self.up, 1)
            if answer is None:
                if time.monotonic() - heard_s > GONE_S and not self._is_there():
                    return "its connection to the server has ended"
                continue
            heard_s = time.monotonic()
            message = json.loads(answer)
            if message["kind"] == "closed":
                return message["why"] or "its process has ended"
            self._tell_lines(message["text"])
        return ""

    def _is_there(self) -> bool:
        node = Node.objects.filter(pk=self.node.pk, connection=self.node.connection).first()
        return node is not None and nodes.is_connected(node)
