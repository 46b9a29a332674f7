"""A viewer who watches a run from its start, as the page does: with a cursor, and again after every break."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing

from webapp.base.redis import REDIS_ERRORS
from webapp.events.follow import follow
from webapp.events.stream import Batch
from webapp.jobs import storage

AGAIN_S = 0.1


class Viewers:
    """One thread that watches any number of runs. `seen` has the batches of each in the order of arrival."""

    def __init__(self) -> None:
        self.seen: dict[int, list[Batch]] = {}
        self.broken: list[str] = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="viewers", daemon=True)
        self.thread.start()
        self.tasks: dict[int, asyncio.Task[None]] = {}

    def watch(self, run_id: int) -> None:
        self.seen[run_id] = []
        asyncio.run_coroutine_threadsafe(self._begin(run_id), self.loop).result()

    def leave(self) -> None:
        """Stop watching."""
        asyncio.run_coroutine_threadsafe(self._end(), self.loop).result()
        self.seen.clear()
        self.broken.clear()

    async def _begin(self, run_id: int) -> None:
        self.tasks[run_id] = asyncio.create_task(self._watch(run_id))

    async def _end(self) -> None:
        for task in self.tasks.values():
            while not task.done():  # a cancellation that meets a database call is swallowed by asgiref
                task.cancel()
                await asyncio.wait([task], timeout=0.1)
        self.tasks.clear()

    async def _watch(self, run_id: int) -> None:
        seen = self.seen[run_id]
        while True:
            try:
                async with aclosing(follow(run_id, seen[-1].number if seen else 0)) as feed:
                    async for batches in feed:
                        seen.extend(batches)
                return
            except (*REDIS_ERRORS, *storage.ERRORS):
                await asyncio.sleep(AGAIN_S)
            except Exception as error:  # a finding
                self.broken.append(f"the feed of run {run_id} broke: {error!r}")
                return
