"""The events of a run: numbered, cut, archived, read from any cursor, and never lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from django.db import OperationalError

from engine.domain.events import EVENTS, ClockTicked, Event, StateChanged
from engine.domain.trace import Mark
from tests.support.web import RedisServer, recorded, request_body, run_spec, wait_until
from webapp.base.redis import client
from webapp.events import archive, stream
from webapp.events import publisher as publishing
from webapp.events.archive import history, stored_batches
from webapp.events.event_log import EventLog
from webapp.events.follow import follow
from webapp.events.models import EventSegment
from webapp.events.publisher import Publisher
from webapp.events.stream import Batch, stream_of
from webapp.jobs.lease import owner_of
from webapp.runs.models import Run

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]


def new_run(status: str = "running") -> Run:
    spec = run_spec()
    return Run.objects.create(
        status=status,
        request=request_body(),
        spec=spec.model_dump(mode="json"),
        cluster_name="lab-3",
        model="tiny-gpt2",
        strategy="voltage",
    )


def events_of(batches: Iterable[Batch]) -> list[Event]:
    return [event for batch in batches for event in EVENTS.validate_json(batch.events)]


def in_pieces(events: list[Any], size: int) -> list[list[Any]]:
    return [events[at : at + size] for at in range(0, len(events), size)]


def append(run: Run, event: Event) -> None:
    log = EventLog(owner_of(run))
    log.add([event])
    log.send()


def published(publisher: Publisher, events: list[Any]) -> None:
    """Publish and wait until a reader could have them."""
    publisher.publish(events)
    wait_until(lambda: publisher.idle, "the events to be sent")


def test_what_was_published_is_read_in_order_while_the_run_lives_and_after(live_redis: redis.Redis) -> None:
    events, _ = recorded()
    run = new_run()
    with Publisher(owner_of(run)) as publisher:
        for piece in in_pieces(events, 50):
            published(publisher, piece)
        assert events_of(history(run.pk, 0)) == events
        assert not EventSegment.objects.exists()
    run.refresh_from_db()
    assert run.archived
    live_redis.delete(stream_of(run.pk))
    assert events_of(history(run.pk, 0)) == events


def test_batches_are_numbered_without_gaps_and_a_cursor_resumes_after_its_batch(live_redis) -> None:
    events, _ = recorded()
    run = new_run()
    with Publisher(owner_of(run)) as publisher:
        for piece in in_pieces(events, 40):
            published(publisher, piece)
        batches = list(history(run.pk, 0))
        assert [batch.number for batch in batches] == list(range(1, len(batches) + 1))
        for cursor in (0, 1, len(batches) // 2, len(batches)):
            assert list(history(run.pk, cursor)) == batches[cursor:]
    for cursor in (0, 1, len(batches) // 2, len(batches)):
        assert list(history(run.pk, cursor)) == batches[cursor:]


def test_a_long_history_is_read_page_by_page(live_redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "PAGE_CHARS", 2000)
    events, _ = recorded()
    run = new_run()
    with Publisher(owner_of(run)) as publisher:
        for piece in in_pieces(events, 10):
            published(publisher, piece)
    pages = [archive.page_of_history(run.pk, 0)]
    while pages[-1]:
        pages.append(archive.page_of_history(run.pk, pages[-1][-1].number))
    assert len(pages) > 3
    assert [event for page in pages for event in events_of(page)] == events


@pytest.mark.parametrize(
    ("page_chars", "numbers"), [(1, [1]), (3, [1]), (4, [1, 2]), (5, [1, 2]), (6, [1, 2, 3])]
)
def test_a_page_ends_with_the_batch_that_fills_it(
    page_chars, numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = [Batch(1, "abc"), Batch(2, "de"), Batch(3, "f")]
    monkeypatch.setattr(archive, "history", lambda run_id, since: iter(stored))
    monkeypatch.setattr(archive, "PAGE_CHARS", page_chars)
    assert [batch.number for batch in archive.page_of_history(1, 0)] == numbers


def test_events_that_come_together_travel_together(live_redis) -> None:
    run = new_run()
    with Publisher(owner_of(run)) as publisher:
        for number in range(500):
            publisher.publish([ClockTicked(time_s=number, wall_s=number)])
    batches = list(history(run.pk, 0))
    assert len(events_of(batches)) == 500
    assert len(batches) < 250


def test_a_long_run_keeps_redis_short_and_loses_nothing(live_redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "SEGMENT_EVENTS", 100)
    monkeypatch.setattr(publishing, "BATCH_EVENTS", 10)
    events, _ = recorded()
    events = (events * 20)[:1000]
    run = new_run()
    with Publisher(owner_of(run)) as publisher:
        for piece in in_pieces(events, 100):
            published(publisher, piece)
        wait_until(lambda: run.segments.count() >= 5, "segments to be stored")
        assert live_redis.xlen(stream_of(run.pk)) < 100
        assert events_of(history(run.pk, 0)) == events
    assert events_of(history(run.pk, 0)) == events
    stored = [(segment.first, segment.last) for segment in run.segments.all()]
    assert all(first == last + 1 for (_, last), (first, _) in pairwise(stored))


def test_a_segment_that_the_database_could_not_take_is_stored_though_no_event_follows(
    live_redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "SEGMENT_EVENTS", 10)
    store, failed = EventLog.store, threading.Event()

    def locked_at_first(log: EventLog) -> None:
        if not failed.is_set():
            failed.set()
            raise OperationalError("database is locked")
        store(log)

    monkeypatch.setattr(EventLog, "store", locked_at_first)
    run = new_run()
    with Publisher(owner_of(run)) as publisher:
        published(publisher, [ClockTicked(time_s=number, wall_s=number) for number in range(10)])
        wait_until(lambda: run.segments.count() == 1, "the segment to be stored")
        assert failed.is_set()


def test_the_lag_is_the_age_of_the_oldest_event_that_readers_cannot_have(
    live_redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now_s=100.0, monotonic=lambda: clock.now_s)
    monkeypatch.setattr(publishing, "time", clock)
    publisher = Publisher(owner_of(new_run()))
    assert publisher.lag_s() == 0.0
    for clock.now_s in (101.0, 103.0):
        publisher.publish([ClockTicked(time_s=1.0, wall_s=1.0)])
    clock.now_s = 105.0
    assert publisher.lag_s() == 4.0
    with publisher:
        wait_until(lambda: publisher.lag_s() == 0.0, "the events to be sent")


def test_what_was_said_before_the_run_began_is_archived_with_it(live_redis) -> None:
    run = new_run("queued")
    append(run, StateChanged(state="queued"))
    with Publisher(owner_of(run)) as publisher:
        publisher.publish([StateChanged(state="planning")])
    assert [event.state for event in events_of(stored_batches(run.pk, 0))] == ["queued", "planning"]


def test_a_redis_that_restarts_empty_in_the_middle_loses_nothing(own_redis: RedisServer) -> None:
    events, _ = recorded()
    first, second, third = events[:60], events[60:120], events[120:]
    run = new_run()
    with Publisher(owner_of(run)) as publisher:
        published(publisher, first)
        own_redis.stop()
        publisher.publish(second)
        wait_until(lambda: publisher.log.redis_was_gone, "the publisher to notice")
        own_redis.start()
        wait_until(lambda: publisher.idle, "the events to be sent after all")
        published(publisher, third)
        assert not publisher.log.redis_was_gone
        assert events_of(history(run.pk, 0)) == events
    assert events_of(history(run.pk, 0)) == events


def test_a_redis_that_never_comes_back_does_not_cost_the_archive(own_redis: RedisServer) -> None:
    events, _ = recorded()
    run = new_run()
    with Publisher(owner_of(run)) as publisher:
        published(publisher, events[:60])
        own_redis.stop()
        publisher.publish(events[60:])
    assert Run.objects.get(pk=run.pk).archived
    assert events_of(history(run.pk, 0)) == events


def test_an_event_that_is_no_json_fails_the_run_loudly(live_redis) -> None:
    run = new_run()
    with pytest.raises(RuntimeError, match=f"events of run {run.pk}"), Publisher(owner_of(run)) as publisher:
        publisher.publish([Mark(0.0, "unwritable", facts={"what": object()})])


class FailsOnce:
    """A Redis client whose first batch ends in `error`, after it was added or instead."""

    def __init__(self, real: redis.Redis, error: Exception, carried_out: bool):
        self.real, self.error, self.carried_out = real, error, carried_out
        self.failed = False

    def eval(self, *arguments: Any) -> Any:
        has_entry = arguments[-3] != ""
        if self.failed or not has_entry:
            return self.real.eval(*arguments)
        self.failed = True
        if self.carried_out:
            self.real.eval(*arguments)
        raise self.error

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def test_a_batch_whose_reply_was_lost_is_not_sent_twice_and_the_next_ones_follow(
    live_redis: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = redis.exceptions.ConnectionError("the answer was lost")
    failing = FailsOnce(live_redis, lost, carried_out=True)
    monkeypatch.setattr(stream, "client", lambda: failing)
    events, _ = recorded()
    run = new_run()
    with Publisher(owner_of(run)) as publisher:
        published(publisher, events[:20])
        assert failing.failed
        assert live_redis.xlen(stream_of(run.pk)) == 1
        published(publisher, events[20:])
        assert events_of(history(run.pk, 0)) == events
    assert events_of(stored_batches(run.pk, 0)) == events


def test_a_batch_that_redis_refuses_for_another_reason_is_sent_again(
    live_redis: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = redis.exceptions.ResponseError("OOM command not allowed when used memory > 'maxmemory'")
    failing = FailsOnce(live_redis, refusal, carried_out=False)
    monkeypatch.setattr(stream, "client", lambda: failing)
    run = new_run()
    ticked = ClockTicked(time_s=1.0, wall_s=1.0)
    with Publisher(owner_of(run)) as publisher:
        published(publisher, [ticked])
        assert failing.failed and events_of(history(run.pk, 0)) == [ticked]


async def collect(run_id: int, since: int, enough: int) -> list[Batch]:
    batches: list[Batch] = []
    async for some in follow(run_id, since):
        batches += some
        if len(events_of(batches)) >= enough:
            return batches
    return batches


async def test_a_slow_reader_finds_in_the_database_what_was_cut_from_the_stream(
    live_redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "SEGMENT_EVENTS", 50)
    monkeypatch.setattr(publishing, "BATCH_EVENTS", 10)
    events, _ = await asyncio.to_thread(recorded)
    run = await asyncio.to_thread(new_run)
    reader = follow(run.pk, 0)

    def publish(publisher: Publisher, piece: list[Any]) -> None:
        published(publisher, piece)

    publisher = await asyncio.to_thread(Publisher, owner_of(run))
    with publisher:
        await asyncio.to_thread(publish, publisher, events[:10])
        seen = await anext(reader)
        for piece in in_pieces(events[10:], 30):  # the reader pauses while the stream is cut
            await asyncio.to_thread(publish, publisher, piece)
        while len(events_of(seen)) < len(events):
            seen += await anext(reader)
    await reader.aclose()
    assert client().xlen(stream_of(run.pk)) < len(seen)
    assert events_of(seen) == events


async def test_a_reader_of_a_finished_run_needs_no_redis(own_redis: RedisServer) -> None:
    events, _ = await asyncio.to_thread(recorded)
    run = await asyncio.to_thread(new_run)

    def publish_all() -> None:
        with Publisher(owner_of(run)) as publisher:
            publisher.publish(events)

    await asyncio.to_thread(publish_all)
    own_redis.stop()
    assert events_of(await collect(run.pk, 0, len(events))) == events


def test_a_batch_after_a_stored_segment_follows_its_number_though_redis_is_empty(live_redis) -> None:
    run = new_run("failed")
    archive.store(owner_of(run), [Batch(number, "[]") for number in (1, 2, 3)])
    append(run, StateChanged(state="failed"))
    assert [batch.number for batch in history(run.pk, 0)] == [1, 2, 3, 4]
