"""The WebSocket of a run: every event since the client's cursor, then each new one as it comes.

Server frames are `{"cursor": "17", "head": "40", "events": […], "server_time": epoch seconds}`; the client
keeps the last cursor and reconnects with `?since=17`. `head` is the newest batch that there was when the
client connected: until the cursor has reached it, the client is catching up. Frames without events are
heartbeats; the first frame is one. The client sends nothing.

Close codes: 4400 bad cursor, 4401 the person has logged out or may not look any more, 4404 no such run (any
more), 1013 Redis does not answer, or refuses: reconnect later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.urls import path

from webapp.accounts import sockets
from webapp.base.redis import REDIS_ERRORS
from webapp.events.follow import follow, newest
from webapp.events.stream import Batch
from webapp.events.tail import is_archived

FRAME_CHARS = 300_000
MOST_DIGITS = 18
"""Most digits of a cursor and of a run's number: the database holds 63 bits."""
logger = logging.getLogger(__name__)


class RunEvents(AsyncWebsocketConsumer):
    feed: asyncio.Task[None] | None = None
    guard: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        await self.accept()
        since = parse_qs(self.scope["query_string"].decode(errors="replace")).get("since", ["0"])[-1]
        if not (since.isascii() and since.isdigit() and len(since) <= MOST_DIGITS):
            await self.close(4400, f"since={since[:MOST_DIGITS]!r} is no cursor: use one from a frame, or 0")
            return
        run_id = self.scope["url_route"]["kwargs"]["run_id"]
        if run_id >= 10**MOST_DIGITS or await is_archived(run_id) is None:
            await self.close(4404, f"there is no run {str(run_id)[:MOST_DIGITS]}")
            return
        self.feed = asyncio.create_task(self.send_events(run_id, int(since)))
        self.guard = asyncio.create_task(self.close_after_log_out())

    async def close_after_log_out(self) -> None:
        while await database_sync_to_async(sockets.may_stay)(self.scope):
            await asyncio.sleep(sockets.CHECK_S)
        await self.close(sockets.ENDED, "nobody is logged in any more")

    async def disconnect(self, code: int) -> None:
        if self.guard is not None:
            self.guard.cancel()
        # Again and again: a cancellation that meets a database call is swallowed by asgiref, which waits
        # for the call and goes on.
        while self.feed is not None and not self.feed.done():
            self.feed.cancel()
            await asyncio.wait([self.feed], timeout=0.1)

    async def send_events(self, run_id: int, since: int) -> None:
        try:
            head = await newest(run_id)
            await self.send(text_data=frame(since, head, []))  # says at once whether anything is missing
            async with aclosing(follow(run_id, since)) as feed:
                async for batches in feed:
                    for text in frames(batches, since, head):
                        await self.send(text_data=text)
                    since = batches[-1].number if batches else since
            await self.close(4404, f"run {run_id} was deleted")
        except REDIS_ERRORS:
            await self.close(1013, "Redis does not answer, or refuses")
        except OSError:
            logger.debug("the viewer of run %s has gone", run_id)
        except Exception:
            logger.exception("the feed of run %s broke", run_id)
            await self.close(1011, "the feed broke")


def frames(batches: list[Batch], since: int, head: int) -> list[str]:
    """The batches as frames of about FRAME_CHARS each; without batches one empty frame, the heartbeat."""
    parts: list[str] = []
    texts: list[str] = []
    size, cursor = 0, since
    for batch in batches:
        parts.append(batch.events[1:-1])
        size, cursor = size + len(batch.events), batch.number
        if size >= FRAME_CHARS:
            texts.append(frame(cursor, head, parts))
            parts, size = [], 0
    if parts or not texts:
        texts.append(frame(cursor, head, parts))
    return texts


def frame(cursor: int, head: int, parts: list[str]) -> str:
    """A frame for the browser. Batches are JSON already: joined as text, never parsed on their way."""
    events, now_s = ",".join(parts), time.time()
    return f'{{"cursor":"{cursor}","head":"{head}","events":[{events}],"server_time":{now_s:.3f}}}'


websocket_paths = [path("ws/runs/<int:run_id>", RunEvents.as_asgi())]
