"""The newest batches of a run, read from Redis once for all who watch it in this process.

200 people who each read 25 batches a second would cost more than a core.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async

from webapp.base.redis import async_client
from webapp.events.archive import is_complete
from webapp.events.stream import Batch, batch_of, last_added, stream_of

HEARTBEAT_S = 2.0
READ_BATCHES = 100
KEPT_CHARS = 4_000_000
PAUSE_PER_VIEWER_S = 0.001
"""A viewer waits so long, times the number of viewers, between two frames: frames cost the server no more,
however many watch. 200 viewers get five frames a second, each with all that is new.
"""


class Tail:
    """The end of one run's stream, for one event loop. Whoever watches is in `tail_of`.

    `archived` is None for a run that does not exist, and after an error. All batches after number `floor`
    that were in the stream since are in `kept`, in order.
    """

    def __init__(self, run_id: int):
        self.run_id = run_id
        self.viewers = 0
        self.archived: bool | None = False
        self.floor = 0
        self.kept: deque[Batch] = deque()
        self.kept_chars = 0
        self.error: Exception | None = None
        self.closing = False
        self.changed = asyncio.Condition()
        self.ready = asyncio.Event()
        self.task = asyncio.create_task(self._read())

    async def begun(self) -> None:
        """Return when `archived` and `floor` are known. Raises Redis' errors."""
        await self.ready.wait()
        self.check()

    def is_of_a_run(self) -> bool:
        """Whether the run exists, and reading goes on."""
        return self.archived is not None

    async def after(self, since: int) -> list[Batch]:
        """Batches after `since`, which is at least `floor`; none after `HEARTBEAT_S` of silence.

        Raises Redis' errors.
        """
        try:
            async with asyncio.timeout(HEARTBEAT_S), self.changed:
                await self.changed.wait_for(lambda: self._kept_after(since) or self.archived is not False)
        except TimeoutError:
            pass
        self.check()
        return self._kept_after(since)

    def _kept_after(self, since: int) -> list[Batch]:
        if not self.kept or self.kept[-1].number <= since:
            return []
        return [batch for batch in self.kept if batch.number > since]

    def check(self) -> None:
        """Raise again what reading has ended with, if it has: an error of Redis or of the database."""
        if self.error is not None:
            raise self.error

    async def _read(self) -> None:
        redis = async_client()
        try:
            self.archived = await is_archived(self.run_id)
            last = 0 if self.archived else await newest_added(self.run_id)
            self.floor = last
            while self.archived is False:
                self.ready.set()
                answer: Any = await redis.xread(
                    {stream_of(self.run_id): f"{last}-0"}, count=READ_BATCHES, block=int(HEARTBEAT_S * 1000)
                )
                if answer:
                    self._keep([batch_of(entry) for entry in answer[0][1]])
                    last = self.kept[-1].number
                else:
                    self.archived = await is_archived(self.run_id)
                await self._tell()
            while self.archived:
                self.ready.set()
                await asyncio.sleep(HEARTBEAT_S)
                self.archived = await is_archived(self.run_id)
        except Exception as error:  # everybody who watches gets it
            self.error = error
            self.archived = None
        finally:
            self.closing = True
            self.ready.set()
            await self._tell()
            await redis.aclose()

    def _keep(self, batches: list[Batch]) -> None:
        self.kept.extend(batches)
        self.kept_chars += sum(len(batch.events) for batch in batches)
        while self.kept_chars > KEPT_CHARS and len(self.kept) > 1:
            oldest = self.kept.popleft()
            self.floor = oldest.number
            self.kept_chars -= len(oldest.events)

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def end(self) -> None:
        """Cancel the reading task until it ends, again and again: a cancellation that meets a database call
        is swallowed by asgiref, which waits for the call and goes on.
        """
        while not self.task.done():
            if not self.closing:
                self.task.cancel()
            await asyncio.wait([self.task], timeout=0.1)


tails: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, Tail]] = WeakKeyDictionary()


@asynccontextmanager
async def tail_of(run_id: int) -> AsyncGenerator[Tail]:
    """The tail of a run, which is read as long as anybody watches; one that broke is not used again."""
    here = tails.setdefault(asyncio.get_running_loop(), {})
    tail = here.get(run_id)
    if tail is None or tail.error is not None:
        tail = here[run_id] = Tail(run_id)
    tail.viewers += 1
    try:
        yield tail
    finally:
        tail.viewers -= 1
        if not tail.viewers:
            if here.get(run_id) is tail:
                del here[run_id]
            await tail.end()


@database_sync_to_async
def is_archived(run_id: int) -> bool | None:
    """Whether a run's events are all stored; None if there is no such run."""
    return is_complete(run_id)


@database_sync_to_async
def newest_added(run_id: int) -> int:
    return last_added(run_id)
