"""Fences: a worker that goes on long after its lease changes nothing of the run that another one has now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import redis

from engine.domain.events import Logged, StateChanged
from tests.support.owned_runs import DONE, WORKERS, Clock, claimed_log, new_run, speak, texts
from tests.support.web import recorded, wait_until
from webapp.events import archive, stream
from webapp.events.event_log import STEP, EventLog
from webapp.events.models import EventSegment
from webapp.events.publisher import Publisher
from webapp.jobs import lease, workers
from webapp.jobs.lease import Lost
from webapp.runs import closing, recording, services, waiting
from webapp.runs.models import Run

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def paused(clock: Clock, live_redis: redis.Redis) -> Iterator[EventLog]:
    """The log of a worker whose lease ran out, and whose run was settled by somebody else."""
    run = new_run()
    claimed = waiting.claim(run.pk, WORKERS[0])
    assert claimed is not None
    log = EventLog(lease.owner_of(claimed))
    clock.go_on(Run.LEASE_S + 1)
    assert closing.settle_abandoned() == [f"run {run.pk}"]
    yield log


def test_a_lease_that_was_renewed_in_time_is_kept(clock: Clock, live_redis: redis.Redis) -> None:
    run = waiting.claim(new_run().pk, WORKERS[0])
    assert run is not None
    for _ in range(5):
        clock.go_on(Run.LEASE_S - 1)
        assert closing.settle_abandoned() == []
        lease.renew(lease.owner_of(run))
    assert Run.objects.get(pk=run.pk).status == "planning"


@pytest.mark.parametrize(
    "write",
    [
        lambda log: lease.renew(log.owner),
        lambda log: closing.end(log.owner, DONE),
        lambda log: closing.finish(log.owner, recorded()[1]),
        lambda log: log.store(),
        lambda log: log.close(),
        lambda log: (log.add([StateChanged(state="running")]), log.send()),
    ],
    ids=["renew", "end", "finish", "store", "close", "send"],
)
def test_a_paused_owner_that_wakes_is_refused_every_write(paused: EventLog, write: Any) -> None:
    before = Run.objects.values().get(pk=paused.owner.id), texts(paused.owner.id)
    with pytest.raises(Lost, match=f"Run {paused.owner.id} was taken"):
        write(paused)
    assert (Run.objects.values().get(pk=paused.owner.id), texts(paused.owner.id)) == before


@pytest.fixture
def overtaken(clock: Clock, live_redis: redis.Redis) -> tuple[EventLog, EventLog]:
    """The log of a worker that goes on with its older number, and that of the one which has its run now."""
    log = claimed_log()
    speak(log, "of the former owner")
    clock.go_on(Run.LEASE_S + 1)
    successor = lease.take_over(Run.objects.get(pk=log.owner.id))
    assert successor is not None and successor.fence > log.owner.fence
    mine = EventLog(successor)
    mine.begin()
    speak(mine, "of the owner")
    return log, mine


def publish(log: EventLog, act: Callable[[Publisher], None]) -> None:
    """Act with a publisher as a whole worker has it, whose thread sends and stores until it has ended."""
    with Publisher(log.owner) as publisher:
        act(publisher)


SAID = [StateChanged(state="running", detail="forged"), Logged(level="info", text="forged")]
FORGED: dict[str, Callable[[EventLog], object]] = {
    "lease": lambda log: lease.renew(log.owner),
    "report": lambda log: publish(log, lambda it: recording.keep(log.owner, it, recorded()[1])),
    "report alone": lambda log: closing.finish(log.owner, recorded()[1]),
    "failure": lambda log: publish(log, lambda it: recording.give_up(log.owner, it, DONE)),
    "state": lambda log: services.progress(log.owner, "running", "forged"),
    "states among events": lambda log: publish(log, lambda it: recording.Watch(log.owner, it)(SAID)),
    "events": lambda log: speak(log, "forged"),
    "an entry": lambda log: stream.append(log.owner, stream.Batch(10 * STEP, "[]"), vouched=True),
    "Redis' fence": lambda log: stream.take(log.owner),
    "segments": lambda log: archive.store(log.owner, [stream.Batch(10 * STEP, "[]")]),
    "archive": lambda log: archive.complete(log.owner),
    "another log": lambda log: EventLog(log.owner).begin(),
}


@pytest.mark.parametrize("write", FORGED.values(), ids=FORGED)
def test_an_older_number_writes_nothing_while_another_worker_has_the_run(
    overtaken: tuple[EventLog, EventLog], live_redis: redis.Redis, write: Callable[[EventLog], object]
) -> None:
    """Whatever a worker holds that was thought dead: the row, Redis and the segments stay as they are."""
    log, mine = overtaken
    run_id = log.owner.id

    def all_of_it() -> tuple[Any, ...]:
        kept = EventSegment.objects.filter(run_id=run_id).values_list("first", "last", "batches")
        stored = live_redis.xrange(stream.stream_of(run_id)), live_redis.get(stream.fence_of(run_id))
        return Run.objects.values().get(pk=run_id), list(kept), stored, texts(run_id)

    before = all_of_it()
    with suppress(Lost):
        write(log)
    assert all_of_it() == before
    speak(mine, "goes on")
    assert texts(run_id)[-1] == "goes on"


def test_its_publisher_drops_what_comes_and_ends_in_peace(clock: Clock, live_redis: redis.Redis) -> None:
    run = waiting.claim(new_run().pk, WORKERS[0])
    assert run is not None
    with Publisher(lease.owner_of(run)) as publisher:
        clock.go_on(Run.LEASE_S + 1)
        closing.settle_abandoned()
        before = texts(run.pk)
        publisher.publish([StateChanged(state="running")])
        wait_until(lambda: publisher.lost, "the publisher to learn that it lost the run")
        publisher.publish([StateChanged(state="verifying")])
    assert texts(run.pk) == before


def test_its_renewal_stops_the_run(paused: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "BEAT_S", 0.01)
    stops: list[str] = []
    with lease.Renewal(paused.owner, lambda: stops.append("stop")):
        wait_until(lambda: stops, "the run to be stopped")
    assert stops == ["stop"]
