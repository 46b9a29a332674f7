"""The WebSocket of a node: its handshake carries the node's token, and what it says is checked and kept.

A node can do nothing here but describe itself. Messages are limited in size and number; a wrong token, a
message that is wrong, or a silence ends the connection, and nothing else.

Close codes: 4400 refused, with the reason in the message before; 4408 silent; 1013 call again later.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error
from django.urls import path

from engine.domain.errors import HostError, SpecError, reworded
from engine.domain.node_messages import (
    LARGEST_BYTES,
    PATH,
    SILENT_S,
    NodeClosed,
    NodeMessage,
    NodePass,
    NodeRefused,
    NodeWelcome,
    node_message,
)
from webapp.accounts import sockets
from webapp.accounts.rates import rates
from webapp.base.bodies import checked_json
from webapp.base.redis import REDIS_ERRORS
from webapp.clusters import nodes, tunnels
from webapp.clusters.models import MOST_ADDRESS_CHARS, Node

PER_MINUTE = 60
"""Messages of one node, on all its connections: five times as many as a node says."""
LATE_PER_MINUTE = 600
"""Of runs that are over: what a board says before it hears that they are."""
logger = logging.getLogger(__name__)


def read(text: str) -> NodeMessage:
    """The message that a text is. Raises `SpecError`."""
    if len(text) > LARGEST_BYTES:
        raise SpecError(f"A message has {len(text):,} characters: expected at most {LARGEST_BYTES:,}.")
    try:
        said: Any = checked_json(text.encode())
    except SpecError as error:
        raise reworded(error, lambda words: words.replace("The request's body", "A message")) from None
    return node_message(said)


class NodeSocket(AsyncWebsocketConsumer):
    node: Node | None = None
    guard: asyncio.Task[None] | None = None
    asked: asyncio.Task[None] | None = None
    is_over = False
    came_from = ""

    def __init__(self) -> None:
        super().__init__()
        self.connection = secrets.token_hex(16)
        self.tunnels = tunnels.Ends(self.connection, self.say)
        self.heard_s = time.monotonic()

    async def connect(self) -> None:
        client = self.scope.get("client")  # none over a Unix socket
        self.came_from = str(client[0])[:MOST_ADDRESS_CHARS] if client else ""
        await self.accept()
        headers = sockets.headers_of(self.scope)
        kind, _, token = sockets.authorization(headers).partition(" ")
        if not sockets.is_own_host(headers):
            host = headers.get("host", "")[:100]
            await self.refuse(f"The server does not answer to {host}: add that to ALLOWED_HOSTS there.")
            return
        try:
            secret = token.strip() if kind.lower() == "bearer" else ""
            self.node = await database_sync_to_async(nodes.holder)(secret)
        except SpecError as error:
            await self.refuse(str(error))
        except Error as error:
            await self.put_off(error)
        else:
            self.guard = asyncio.create_task(self.close_when_silent())
            self.asked = asyncio.create_task(self.tunnels.listen())

    async def say(self, text: str) -> None:
        if not self.is_over:
            await self.send(text_data=text)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.is_over:  # it was said before the other end knew
            return
        self.heard_s = time.monotonic()
        try:
            message = read(text_data or "")
            if isinstance(message, NodePass | NodeClosed) and self.tunnels.has(message):
                await self.tunnels.take(message)
                return
            answer = await database_sync_to_async(self.take)(message)
            if answer is not None:
                await self.send(text_data=answer.model_dump_json())
        except SpecError as error:
            await self.refuse(str(error))
        except (Error, HostError, *REDIS_ERRORS) as error:
            await self.put_off(error)

    async def refuse(self, sentence: str) -> None:
        """Say why, and hang up for good."""
        logger.info("node %s is refused: %s", self.node or "without a valid token", sentence)
        await self.send(text_data=NodeRefused(sentence=sentence).model_dump_json())
        await self.hang_up(4400, "refused")

    async def put_off(self, error: Exception) -> None:
        logger.warning("node %s is to call again: %s", self.node, error)
        await self.hang_up(1013, "call again later")

    async def hang_up(self, code: int, reason: str) -> None:
        self.is_over = True
        await self.close(code, reason)

    def take(self, message: NodeMessage) -> NodeWelcome | None:
        """Keep one message; the answer to it. Raises `SpecError`, `HostError`, the database's errors."""
        assert self.node is not None, "a token has opened the connection"
        if isinstance(message, NodePass | NodeClosed):
            if rates.spend(f"node {self.node.pk} late", LATE_PER_MINUTE, time.monotonic()):
                raise HostError("It goes on with a run that is over.")  # a new connection ends that
            return None
        if rates.spend(f"node {self.node.pk}", PER_MINUTE, time.monotonic()):
            raise SpecError(f"Board {self.node.name} says more than {PER_MINUTE} things in a minute.")
        return nodes.heard(self.node, self.connection, self.came_from, message)

    async def close_when_silent(self) -> None:
        while (left_s := self.heard_s + SILENT_S - time.monotonic()) > 0:
            await asyncio.sleep(left_s)
        if not self.is_over:
            await self.hang_up(4408, "silent")

    async def disconnect(self, code: int) -> None:
        if self.guard is not None:
            self.guard.cancel()
        if self.asked is not None:
            while not self.asked.done():  # Redis' client may take a cancellation for its own time-out
                self.asked.cancel()
                await asyncio.wait([self.asked], timeout=0.1)
            await self.tunnels.end()
        if self.node is not None:
            await database_sync_to_async(nodes.hung_up)(self.node, self.connection)


node_paths = [path(PATH.removeprefix("/"), NodeSocket.as_asgi())]
