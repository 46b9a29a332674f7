"""Many people watch one run: Redis is read once for all of them, and nobody misses or repeats a batch."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
import redis
from asgiref.sync import sync_to_async

from engine.domain.events import Logged
from tests.support.web import request_body, run_spec
from webapp.events import tail
from webapp.events.event_log import EventLog
from webapp.events.follow import follow, until_gap
from webapp.events.stream import Batch
from webapp.jobs.lease import Ownership
from webapp.runs import services
from webapp.runs.models import Run

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def log(live_redis: redis.Redis) -> EventLog:
    spec = run_spec().model_dump(mode="json")
    run = Run.objects.create(request=request_body(), spec=spec, cluster_name="lab-3", strategy="voltage")
    services.announce(run)
    return EventLog(Ownership(Run, run.pk, fence=0))


@sync_to_async
def speak(log: EventLog, first: int, last: int) -> None:
    for number in range(first, last + 1):
        log.add([Logged(level="info", text=f"word {number}")])
    log.send()


async def numbers(run_id: int, since: int, last: int) -> list[int]:
    """What one viewer gets after `since`, until it has batch `last`."""
    found: list[int] = []
    async with aclosing(follow(run_id, since)) as feed:
        async for batches in feed:
            found += [batch.number for batch in batches]
            if found and found[-1] >= last:
                return found
    raise AssertionError("the feed ended")


async def test_viewers_with_any_cursor_get_every_batch_once_from_one_reader(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = log.owner.id
    await speak(log, 2, 20)
    clients: list[Any] = []
    made = tail.async_client
    monkeypatch.setattr(tail, "async_client", lambda: clients.append(made()) or clients[-1])
    cursors = [0, 5, 19, 20, 20, 20, 20, 20]
    viewers = [asyncio.create_task(numbers(run_id, since, 60)) for since in cursors]
    for first in range(21, 60, 4):
        await speak(log, first, first + 3)
        await asyncio.sleep(0)
    seen = await asyncio.gather(*viewers)
    assert seen == [list(range(since + 1, 61)) for since in cursors]
    assert len(clients) == 1
    assert not tail.tails.get(asyncio.get_running_loop()), "the last one who leaves ends the reading"


async def test_who_falls_behind_what_is_kept_reads_the_stream_alone(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "KEPT_CHARS", 200)
    run_id = log.owner.id
    async with tail.tail_of(run_id) as shared:
        await shared.begun()
        await speak(log, 2, 30)
        assert await numbers(run_id, 1, 30) == list(range(2, 31))
        await asyncio.wait_for(until(lambda: shared.floor > 20), 120)
        assert await numbers(run_id, 3, 30) == list(range(4, 31))
        assert len(shared.kept) < 10


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.01)


async def test_a_redis_that_stops_ends_the_feed_of_everybody_with_its_error(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone:
        async def xread(self, *arguments: Any, **more: Any) -> None:
            raise redis.ConnectionError("it is gone")

        async def aclose(self) -> None:
            """Nothing is open."""

    with monkeypatch.context() as patch:
        patch.setattr(tail, "async_client", Gone)
        watching = [numbers(log.owner.id, 1, 2) for _ in range(3)]
        ended = await asyncio.gather(*watching, return_exceptions=True)
        assert [str(error) for error in ended] == ["it is gone"] * 3
    await speak(log, 2, 2)
    assert await numbers(log.owner.id, 1, 2) == [2], "the next one begins anew"


async def test_who_watches_a_run_that_is_deleted_is_told(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "HEARTBEAT_S", 0.05)
    async with aclosing(follow(log.owner.id, 1)) as feed:
        assert await anext(feed) == []
        await sync_to_async(services.delete)(await Run.objects.aget(pk=log.owner.id))
        assert [batches async for batches in feed if batches] == []


def test_what_is_behind_a_gap_waits_for_a_look_at_the_database() -> None:
    batches = [Batch(number, "[]") for number in (12, 13, 16, 17)]
    assert [batch.number for batch in until_gap(batches)] == [12, 13]
    assert until_gap(batches[:2]) == batches[:2]
    assert until_gap([]) == []
