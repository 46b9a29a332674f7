"""Follow a run's events from any cursor on: stored batches and live ones as one sequence, without gaps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any

from channels.db import database_sync_to_async

from webapp.base.redis import async_client
from webapp.events import tail as tails
from webapp.events.archive import is_complete, last_stored, next_segment
from webapp.events.stream import Batch, batch_of, last_added, stream_of
from webapp.events.tail import Tail, tail_of


async def follow(run_id: int, since: int) -> AsyncGenerator[list[Batch]]:
    """Batches after `since` in order, without gaps; an empty list every `tail.HEARTBEAT_S` of silence.

    Goes on after the end of the run, silent; ends when the run is deleted. Raises Redis' errors.
    """
    async with tail_of(run_id) as tail:
        await tail.begun()
        look, looked_for = True, -1  # the database may have what follows, and the stream not
        while tail.is_of_a_run():
            # Ask before reading: if the run is archived now, the database has all of its events.
            archived = tail.archived
            if look or archived:
                while batches := await read_segment(run_id, since):
                    since = batches[-1].number
                    yield batches
                look = False
            while archived and tail.is_of_a_run():
                yield []
                await asyncio.sleep(tails.HEARTBEAT_S)
            if archived:
                continue
            batches = until_gap(await read_live(tail, since))
            if batches and batches[0].number > since + 1 and looked_for != since:
                look, looked_for = True, since  # cut from the stream, therefore stored: look there, once
                continue
            since = batches[-1].number if batches else since
            yield batches
            if batches:
                await asyncio.sleep(tails.PAUSE_PER_VIEWER_S * tail.viewers)
        tail.check()


def until_gap(batches: list[Batch]) -> list[Batch]:
    """The first batches without a gap: what is behind one comes after a look at the database."""
    gaps = (at for at, (one, other) in enumerate(pairwise(batches), 1) if other.number > one.number + 1)
    return batches[: next(gaps, len(batches))]


async def read_live(tail: Tail, since: int) -> list[Batch]:
    """Read batches from what is shared; who is further back reads the stream alone until then."""
    if since >= tail.floor:
        return await tail.after(since)
    redis = async_client()
    try:
        answer: Any = await redis.xread({stream_of(tail.run_id): f"{since}-0"}, count=tails.READ_BATCHES)
    finally:
        await asyncio.shield(redis.aclose())
    return [batch_of(entry) for entry in answer[0][1]] if answer else await tail.after(since)


@database_sync_to_async
def read_segment(run_id: int, since: int) -> list[Batch]:
    return next_segment(run_id, since)


@database_sync_to_async
def newest(run_id: int) -> int:
    """The number of the newest batch that there is; 0 if there is none. Raises Redis' errors while the run is
    not archived.
    """
    stored = last_stored(run_id)
    return stored if is_complete(run_id) else max(stored, last_added(run_id))
