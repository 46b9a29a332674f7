"""The marks of single requests, taken from the events of their run: each run is followed once per process."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

from webapp.base.redis import REDIS_ERRORS, why_away
from webapp.events.follow import follow, newest
from webapp.jobs.models import OVER

logger = logging.getLogger(__name__)

Item = dict[str, Any]
"""One of: a mark; `{"type": "request_refused", …}`; `{"type": "over", "reason": sentence}`, the last one."""

WORDS = ("token_emitted", "request_", '"type":"state"')
"""A batch without any of these has nothing for a request, and is not parsed."""


class RunFeed:
    """Follows one run as long as somebody listens, and gives each listener what belongs to its request."""

    def __init__(self, run_id: int, feeds: dict[int, RunFeed]):
        self.run_id, self.feeds = run_id, feeds
        self.listeners: dict[str, asyncio.Queue[Item]] = {}
        self.names: dict[int, str] = {}
        self.started: asyncio.Task[int] = asyncio.create_task(self._start())
        self.task: asyncio.Task[None] | None = None

    async def _start(self) -> int:
        return int(await newest(self.run_id))

    async def listen(self, name: str) -> asyncio.Queue[Item]:
        """What happens to the request `name` from now on. Raises Redis' errors."""
        queue = self.listeners[name] = asyncio.Queue()
        since = await asyncio.shield(self.started)
        if self.task is None:
            self.task = asyncio.create_task(self._follow(since))
        return queue

    def forget(self, name: str) -> None:
        self.listeners.pop(name, None)
        self.names = {number: other for number, other in self.names.items() if other != name}
        if not self.listeners:
            if self.feeds.get(self.run_id) is self:
                del self.feeds[self.run_id]
            if self.task is not None:
                self.task.cancel()

    async def _follow(self, since: int) -> None:
        try:
            async with aclosing(follow(self.run_id, since)) as feed:
                async for batches in feed:
                    for batch in batches:
                        if any(word in batch.events for word in WORDS):
                            for event in json.loads(batch.events):
                                self.take(event)
            self._over("The run was deleted.")
        except REDIS_ERRORS as error:
            self._over(f"Redis {why_away(error)}, so nothing more can be read of the run.")
        except Exception:
            logger.exception("the feed of run %s broke", self.run_id)
            self._over("The feed of the run broke: a defect of EdgeLoom, which the server's log describes.")

    def take(self, event: Item) -> None:
        """Give `event` to the request that it belongs to, or to all if it ends the run."""
        if event["type"] == "state" and event["state"] in OVER:
            why = event.get("detail") or "it ended"
            self._over(f"The run is {event['state']} and has not completed this answer: {why}")
        elif event["type"] == "request_refused":
            self._give(event["id"], event)
        elif event["type"] == "mark":
            number = event["facts"].get("request")
            if event["name"] == "request_accepted":
                self.names[number] = event["facts"]["id"]
            if number in self.names:
                self._give(self.names[number], event)

    def _give(self, name: str, item: Item) -> None:
        if name in self.listeners:
            self.listeners[name].put_nowait(item)

    def _over(self, reason: str) -> None:
        for queue in self.listeners.values():
            queue.put_nowait({"type": "over", "reason": reason})


_feeds: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, RunFeed]] = WeakKeyDictionary()


@asynccontextmanager
async def listening(run_id: int, name: str) -> AsyncGenerator[asyncio.Queue[Item]]:
    """The items of one request, of which nothing is missed that happens inside the block."""
    feeds = _feeds.setdefault(asyncio.get_running_loop(), {})
    feed = feeds.get(run_id)
    if feed is None or (feed.task is not None and feed.task.done()):
        feed = feeds[run_id] = RunFeed(run_id, feeds)
    try:
        yield await feed.listen(name)
    finally:
        feed.forget(name)
