"""Follow a run's events from any cursor on: stored batches and live ones as one sequence, without gaps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from channels.db import database_sync_to_async
from redis.asyncio import Redis

from webapp.redis import async_client
from webapp.runs.archive import last_stored, next_segment
from webapp.runs.models import Run
from webapp.runs.stream import Batch, batch_of, last_added, stream_of

HEARTBEAT_S = 2.0
READ_BATCHES = 100


async def follow(run_id: int, since: int) -> AsyncGenerator[list[Batch]]:
    """Batches after `since` in order, without gaps; an empty list every `HEARTBEAT_S` of silence.

    Goes on after the end of the run, silent; ends when the run is deleted. Raises Redis' errors.
    """
    redis = async_client()
    looked_for = -1
    try:
        while True:
            # Ask before reading: if the run is archived now, the database has all of its events.
            archived = await is_archived(run_id)
            if archived is None:
                return
            while batches := await read_segment(run_id, since):
                since = batches[-1].number
                yield batches
            if archived:
                yield []
                await asyncio.sleep(HEARTBEAT_S)
                continue
            while batches := await read_live(redis, run_id, since):
                if batches[0].number > since + 1 and looked_for != since:
                    looked_for = since  # cut from the stream, therefore stored: look there, once
                    break
                since = batches[-1].number
                yield batches
            else:
                yield []
    finally:
        await redis.aclose()


async def read_live(redis: Redis, run_id: int, since: int) -> list[Batch]:
    answer: Any = await redis.xread(
        {stream_of(run_id): f"{since}-0"}, count=READ_BATCHES, block=int(HEARTBEAT_S * 1000)
    )
    return [batch_of(entry) for entry in answer[0][1]] if answer else []


@database_sync_to_async
def is_archived(run_id: int) -> bool | None:
    """None if there is no such run."""
    return Run.objects.filter(pk=run_id).values_list("archived", flat=True).first()


@database_sync_to_async
def read_segment(run_id: int, since: int) -> list[Batch]:
    return next_segment(run_id, since)


@database_sync_to_async
def newest(run_id: int) -> int:
    """The number of the newest batch that there is; 0 if there is none. Raises Redis' errors while the run is
    not archived.
    """
    stored = last_stored(run_id)
    archived = Run.objects.filter(pk=run_id, archived=True).exists()
    return stored if archived else max(stored, last_added(run_id))
