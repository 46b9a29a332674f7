"""Leases: a run has one owner, one end, and one sequence of events, whatever happens to workers.

The clock of the database is set by hand, and every step of three workers is a function that is called in any
order: workers stop between any two steps (a pause), for ever (a death), or go on long after their lease.
"""

from __future__ import annotations

from typing import Any

import pytest
import redis
from django.db import OperationalError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.domain.events import Logged, StateChanged
from tests.support.owned_runs import DONE, WORKERS, Clock, claimed_log, new_run, speak, texts
from tests.support.web import recorded, wait_until
from webapp.base.errors import Conflict
from webapp.events import archive, stream
from webapp.events import publisher as publishing
from webapp.events.event_log import STEP, EventLog
from webapp.events.publisher import Publisher
from webapp.jobs import lease, storage, suspicion, workers
from webapp.jobs.lease import Lost
from webapp.jobs.models import OVER
from webapp.runs import closing, recording, services, waiting
from webapp.runs.models import Run

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]


class Hands:
    """One worker, a step at a time. `sent` are the words that it may believe to be kept."""

    def __init__(self, identity: workers.Identity):
        self.identity = identity
        self.log: EventLog | None = None
        self.words = 0
        self.sent: list[str] = []
        self.closed = False

    def claim(self, run_id: int) -> None:
        run = waiting.claim(run_id, self.identity)
        if run is not None:
            self.log = EventLog(lease.owner_of(run))
            self.log.begin()

    def step(self, name: str) -> None:
        """Nothing, if this worker never got the run. One that lost it forgets it."""
        if self.log is None:
            return
        try:
            getattr(self, name)(self.log)
        except Lost:
            self.log = None

    def renew(self, log: EventLog) -> None:
        lease.renew(log.owner)

    def speak(self, log: EventLog) -> None:
        if self.closed:
            return
        self.words += 1
        word = f"{self.identity.node}, word {self.words}"
        log.add([Logged(level="info", text=word)])
        log.send()
        self.sent.append(word)

    def store(self, log: EventLog) -> None:
        log.store()

    def close(self, log: EventLog) -> None:
        if not self.closed:
            closing.end(log.owner, DONE)
            self.closed = True
            log.add([StateChanged(state="failed")])
            log.send()

    def archive(self, log: EventLog) -> None:
        if self.closed:
            log.close()
            self.log = None


STEPS = ("renew", "speak", "speak", "store", "close", "archive")
ACTS = st.one_of(
    st.tuples(st.sampled_from(range(3)), st.sampled_from(("claim", *STEPS))),
    st.tuples(st.just(None), st.sampled_from(("cancel", "reap", "look for work", "redis is emptied"))),
    st.tuples(st.just(None), st.sampled_from((3.0, Run.LEASE_S + 1.0))),
)


def act(run: Run, hands: list[Hands], clock: Clock, server: redis.Redis, who: int | None, what: Any) -> None:
    if who is not None:
        worker = hands[who]
        worker.claim(run.pk) if what == "claim" else worker.step(what)
    elif isinstance(what, float):
        clock.go_on(what)
    elif what == "cancel":
        try:
            services.cancel(run, "ann")
        except Conflict:
            assert Run.objects.get(pk=run.pk).is_over
    elif what == "reap":
        closing.settle_abandoned()
    elif what == "look for work":
        me = workers.introduction(WORKERS[0], "emulate", 1)
        waiting.look_for_work(WORKERS[0], me)
    else:
        server.delete(stream.stream_of(run.pk), stream.fence_of(run.pk))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=st.lists(ACTS, max_size=30))
def test_in_any_order_of_steps_a_run_ends_once_and_its_owners_words_are_kept_once(
    acts: list[tuple[int | None, Any]], clock: Clock, live_redis: redis.Redis
) -> None:
    """Three workers, leases that run out, a Redis that forgets, cancellations, and anybody who settles."""
    run = new_run()
    hands = [Hands(identity) for identity in WORKERS]
    ends: list[tuple[str, str]] = []
    emptied = False
    for who, what in acts:
        emptied |= what == "redis is emptied"
        act(run, hands, clock, live_redis, who, what)
        row = Run.objects.get(pk=run.pk)
        if row.is_over:
            ends.append((row.status, row.error))
    Run.objects.filter(pk=run.pk, status="queued").update(
        status="planning", lease_until=clock.time
    )  # somebody took it and died
    clock.go_on(Run.LEASE_S + 1)
    closing.settle_abandoned()
    row = Run.objects.get(pk=run.pk)
    assert row.status in OVER and row.archived
    assert set(ends) <= {(row.status, row.error)}, "the end of a run has changed"
    said = texts(run.pk)
    assert [text for text in said if text in OVER] == [row.status]
    words = [text for text in said if ", word " in text]
    kept = [word for worker in hands for word in worker.sent]
    assert len(set(words)) == len(words)
    assert set(words) <= set(kept)
    if not emptied:
        assert sorted(words) == sorted(kept), "words that were accepted are missing"
    assert closing.settle_abandoned() == []
    for worker in hands:  # whoever wakes up now changes nothing
        for step in STEPS:
            worker.step(step)
    assert texts(run.pk) == said and Run.objects.get(pk=run.pk).error == row.error


def test_a_redis_that_was_emptied_unnoticed_leaves_no_gap(live_redis: redis.Redis) -> None:
    log = claimed_log()
    run_id = log.owner.id
    speak(log, "before")
    live_redis.delete(stream.stream_of(run_id), stream.fence_of(run_id))
    speak(log, "after")
    assert texts(run_id) == ["queued", "before", "after"]


def test_a_former_owner_is_refused_by_an_empty_redis_too(clock: Clock, live_redis: redis.Redis) -> None:
    log = claimed_log()
    clock.go_on(Run.LEASE_S + 1)
    closing.settle_abandoned()
    live_redis.delete(stream.stream_of(log.owner.id), stream.fence_of(log.owner.id))
    with pytest.raises(Lost):
        speak(log, "too late")


def test_whoever_takes_a_run_over_shuts_the_stream_before_reading_it(
    clock: Clock, live_redis: redis.Redis
) -> None:
    log = claimed_log()
    clock.go_on(Run.LEASE_S + 1)
    successor = lease.take_over(Run.objects.get(pk=log.owner.id))
    assert successor is not None
    EventLog(successor)
    with pytest.raises(Lost):
        speak(log, "between reading and writing")


def test_an_owner_that_renews_just_in_time_keeps_its_run(clock: Clock, live_redis: redis.Redis) -> None:
    log = claimed_log()
    clock.go_on(Run.LEASE_S + 1)
    (seen,) = suspicion.late(Run)
    lease.renew(log.owner)
    assert lease.take_over(seen) is None
    speak(log, "still here")


def test_an_end_that_was_said_is_not_said_again(clock: Clock, live_redis: redis.Redis) -> None:
    log = claimed_log()
    closing.end(log.owner, DONE)
    log.add([StateChanged(state="failed")])
    log.send()
    clock.go_on(Run.LEASE_S + 1)
    closing.settle_abandoned()
    assert texts(log.owner.id) == ["queued", "failed"]


def test_of_two_that_settle_a_run_one_does(clock: Clock, live_redis: redis.Redis) -> None:
    claimed_log()
    clock.go_on(Run.LEASE_S + 1)
    (seen,) = suspicion.late(Run)
    assert [closing.settle(seen), closing.settle(seen)] == [True, False]


# A database that cannot be written -------------------------------------------------------------------
class FullDisk:
    """`archive.store`, which fails until there is room again."""

    def __init__(self, store: Any):
        self.store, self.full, self.attempts = store, True, 0

    def __call__(self, owner: lease.Ownership, batches: Any) -> None:
        self.attempts += 1
        if self.full:
            raise OperationalError("database or disk is full")
        self.store(owner, batches)


def test_events_wait_for_a_full_disk_to_heal_and_health_says_so(
    alice: Any, live_redis: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = waiting.claim(new_run().pk, WORKERS[0])
    assert run is not None
    disk = FullDisk(archive.store)
    monkeypatch.setattr(archive, "store", disk)
    monkeypatch.setattr(storage, "AGAIN_S", 0.01)
    publisher = Publisher(lease.owner_of(run))
    monkeypatch.setattr(publishing, "SEGMENT_EVENTS", 2)
    with publisher:
        publisher.publish([Logged(level="info", text=f"word {number}") for number in range(3)])
        wait_until(lambda: disk.attempts > 2, "the publisher to try again")
        assert alice.get("/health").json()["storage"] == "database or disk is full"
        assert texts(run.pk)[1:] == ["word 0", "word 1", "word 2"]
        disk.full = False
    assert Run.objects.get(pk=run.pk).archived
    assert texts(run.pk) == ["queued", "word 0", "word 1", "word 2"]


# What dies together with Redis -------------------------------------------------------------------------
def test_who_takes_over_from_a_dead_worker_and_an_empty_redis_gives_no_number_again(
    clock: Clock, live_redis: redis.Redis
) -> None:
    """A reader's cursor is a number: another batch with a number that it has would never reach it."""
    log = claimed_log()
    speak(log, "seen, and lost")
    seen = log.number
    live_redis.delete(stream.stream_of(log.owner.id), stream.fence_of(log.owner.id))
    clock.go_on(Run.LEASE_S + 1)
    assert closing.settle_abandoned() == [f"run {log.owner.id}"]
    (last,) = archive.page_of_history(log.owner.id, since=seen)
    assert '"failed"' in last.events
    assert texts(log.owner.id)[0] == "queued"


def test_segments_keep_the_numbers_of_two_owners(clock: Clock, live_redis: redis.Redis) -> None:
    log = claimed_log()
    speak(log, "one")
    speak(log, "two")
    clock.go_on(Run.LEASE_S + 1)
    closing.settle_abandoned()
    numbers = [batch.number for batch in archive.history(log.owner.id, 0)]
    assert numbers == [1, 2, 3, STEP + 1]


def test_a_run_is_over_only_when_its_events_are_in_the_database(
    clock: Clock, live_redis: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker may be killed right after it has written the end, while Redis does not answer."""
    run = waiting.claim(new_run().pk, WORKERS[0])
    assert run is not None
    at_its_end: list[list[str]] = []
    written = closing.finish

    def finish(*arguments: Any) -> Any:
        at_its_end.append([batch.events for batch in archive.stored_batches(run.pk, 0)])
        return written(*arguments)

    monkeypatch.setattr(closing, "finish", finish)
    with Publisher(lease.owner_of(run)) as publisher:
        publisher.publish([Logged(level="info", text="last words")])
        recording.keep(lease.owner_of(run), publisher, recorded()[1])
    assert "last words" in at_its_end[0][-1]
