"""Who counts as gone: not an owner that could not renew as the database was away or its clock was set."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from django.db import OperationalError
from django.db.models import QuerySet, Value

from tests.support.web import request_body, run_spec, wait_until
from webapp.jobs import lease, suspicion, workers
from webapp.jobs.announcement import announce, withdraw
from webapp.jobs.suspicion import GRACE_BEATS, Suspicion
from webapp.jobs.workers import introduction
from webapp.runs import closing, services, waiting
from webapp.runs.models import Run

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]
ELSEWHERE = workers.Identity("emulate@far", "elsewhere", 1, 1)
BEAT_S = workers.BEAT_S
HOME = "here"


class Clocks:
    """`database` is what its clock shows; `here_s` is the time of the process that looks."""

    def __init__(self) -> None:
        self.database = datetime(2026, 1, 1, tzinfo=UTC)
        self.here_s = 1000.0

    def go_on(self, seconds: float) -> None:
        self.database += timedelta(seconds=seconds)
        self.here_s += seconds

    def set_forward(self, seconds: float) -> None:
        self.database += timedelta(seconds=seconds)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr(lease, "now", lambda: Value(clocks.database))
    monkeypatch.setattr(
        lease, "end", lambda lease_s=Run.LEASE_S: Value(clocks.database + timedelta(seconds=lease_s))
    )
    monkeypatch.setattr(suspicion.time, "monotonic", lambda: clocks.here_s)
    return clocks


@pytest.fixture
def owner(live_redis: redis.Redis, clocks: Clocks) -> lease.Ownership:
    spec = run_spec().model_dump(mode="json")
    run = Run.objects.create(request=request_body(), spec=spec, cluster_name="lab-3", strategy="voltage")
    services.announce(run)
    claimed = waiting.claim(run.pk, ELSEWHERE)
    assert claimed is not None
    return lease.owner_of(claimed)


def looks(suspects: Suspicion, clocks: Clocks, beats: int) -> list[list[int]]:
    """What is abandoned at each of so many beats."""
    found = []
    for _ in range(beats):
        found.append([run.pk for run in suspects.abandoned(HOME)])
        clocks.go_on(BEAT_S)
    return found


def test_a_silent_owner_is_gone_when_its_lease_and_three_beats_are_over(
    owner: lease.Ownership, clocks: Clocks
) -> None:
    suspects = Suspicion(Run)
    clocks.go_on(Run.LEASE_S - 0.1)
    assert looks(suspects, clocks, 1) == [[]]
    assert looks(suspects, clocks, GRACE_BEATS + 1) == [[]] * GRACE_BEATS + [[owner.id]]


def test_a_clock_that_is_set_forward_takes_no_run_from_an_owner_that_renews(
    owner: lease.Ownership, clocks: Clocks
) -> None:
    suspects = Suspicion(Run)
    for _ in range(5):
        clocks.set_forward(3600.0)
        assert looks(suspects, clocks, 1) == [[]]
        lease.renew(owner)
        assert looks(suspects, clocks, GRACE_BEATS) == [[]] * GRACE_BEATS


def test_after_a_database_that_did_not_answer_owners_have_time_to_renew(
    owner: lease.Ownership, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspects = Suspicion(Run)
    clocks.go_on(Run.LEASE_S + 1)
    assert looks(suspects, clocks, GRACE_BEATS) == [[]] * GRACE_BEATS

    def away(kind: Any) -> Any:
        raise OperationalError("the database does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(suspicion, "late", away)
        with pytest.raises(OperationalError):
            suspects.abandoned(HOME)
    clocks.go_on(60.0)
    assert looks(suspects, clocks, 1) == [[]], "it was seen before the database was away"
    lease.renew(owner)
    assert looks(suspects, clocks, GRACE_BEATS + 2) == [[]] * (GRACE_BEATS + 2)


def test_a_late_job_whose_lease_has_changed_since_it_was_seen_gets_three_beats_more(
    owner: lease.Ownership,
) -> None:
    suspect, job = Suspicion(Run), Run.objects.get(pk=owner.id)
    assert suspect.silent([job], HOME, now_s=0.0) == []
    assert job.lease_until is not None
    job.lease_until += timedelta(seconds=1)  # it was renewed between two beats, and is late again
    assert suspect.silent([job], HOME, now_s=GRACE_BEATS * BEAT_S) == []
    assert suspect.silent([job], HOME, now_s=2 * GRACE_BEATS * BEAT_S) == [job]


def test_a_worker_of_this_host_that_gets_no_core_is_not_gone_until_it_has_one(
    owner: lease.Ownership, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its threads wait for most of every beat, then for none: it has had its time, and says nothing."""
    waited_s = 100.0
    monkeypatch.setattr(workers, "waited_s", lambda worker, home: waited_s)
    suspects = Suspicion(Run)
    clocks.go_on(Run.LEASE_S + 1)
    for _ in range(5 * GRACE_BEATS):
        assert looks(suspects, clocks, 1) == [[]]
        waited_s += 0.9 * BEAT_S
    assert looks(suspects, clocks, GRACE_BEATS + 1) == [[]] * GRACE_BEATS + [[owner.id]]


def test_how_long_a_process_of_this_host_waited_for_a_core_is_known_and_of_others_not() -> None:
    """Two that are kept on one core, of which either waits while the other runs."""
    core = min(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    both = [subprocess.Popen((sys.executable, "-c", spin)) for _ in range(2)]
    try:
        mine = workers.Identity("plan@here", HOME, both[0].pid, workers.started_at(both[0].pid) or 0)
        wait_until(lambda: workers.waited_s(str(mine), HOME) > 0.2, "it to wait for the core")
        assert workers.waited_s(str(mine), "elsewhere") == 0.0
        assert workers.waited_s(str(mine._replace(started=1)), HOME) == 0.0, "another process with its number"
    finally:
        for process in both:
            process.kill()
            process.wait()


def test_a_clock_that_is_set_back_leaves_no_lease_longer_than_a_new_one_may_be(
    owner: lease.Ownership, clocks: Clocks
) -> None:
    suspects = Suspicion(Run)
    clocks.set_forward(-3600.0)
    assert looks(suspects, clocks, 1) == [[]]
    clocks.go_on(Run.LONGEST_LEASE_S)
    assert [owner.id] in looks(suspects, clocks, GRACE_BEATS + 2)


@pytest.mark.parametrize("seconds", [1.0, -0.5])
def test_a_lease_is_shortened_neither_while_time_goes_on_nor_for_a_clock_that_was_corrected_a_little(
    owner: lease.Ownership, clocks: Clocks, seconds: float
) -> None:
    before = Run.objects.get(pk=owner.id).lease_until
    clocks.go_on(seconds)
    suspicion.shorten_leases(Run)
    assert Run.objects.get(pk=owner.id).lease_until == before


def test_a_run_without_a_lease_is_settled_at_once(live_redis: redis.Redis, clocks: Clocks) -> None:
    """It was closed before it started: nobody is going to renew anything."""
    spec = run_spec().model_dump(mode="json")
    run = Run.objects.create(
        request=request_body(),
        spec=spec,
        cluster_name="lab-3",
        strategy="voltage",
        status="cancelled",
        lease_until=clocks.database,
    )
    assert closing.settle_abandoned() == [f"run {run.pk}"]


def test_a_database_that_can_be_read_but_not_written_makes_nobody_suspect(
    owner: lease.Ownership, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspects = Suspicion(Run)
    clocks.go_on(Run.LEASE_S + 1)

    def locked(self: Any, **changes: Any) -> int:
        raise OperationalError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(QuerySet, "update", locked)
        for _ in range(2 * GRACE_BEATS):
            with pytest.raises(OperationalError):
                suspects.abandoned(HOME)
            clocks.go_on(BEAT_S)
    assert looks(suspects, clocks, 1) == [[]], "it could not renew until now"
    lease.renew(owner)
    assert looks(suspects, clocks, GRACE_BEATS + 2) == [[]] * (GRACE_BEATS + 2)


def test_a_run_whose_worker_says_in_redis_that_it_holds_it_is_left_to_it(
    owner: lease.Ownership, clocks: Clocks
) -> None:
    """Only that run, only from its own worker, and only for as long as it says so."""
    suspects, worker = Suspicion(Run), introduction(ELSEWHERE, "emulate", 1)
    other = introduction(ELSEWHERE._replace(pid=2), "emulate", 1)
    clocks.go_on(Run.LEASE_S + 1)
    announce(worker.model_copy(update={"holds": (owner.title,)}))
    assert looks(suspects, clocks, 2 * GRACE_BEATS) == [[]] * 2 * GRACE_BEATS
    announce(worker.model_copy(update={"holds": (owner._replace(id=owner.id + 1).title,)}))
    announce(other.model_copy(update={"holds": (owner.title,)}))
    assert [owner.id] in looks(suspects, clocks, GRACE_BEATS + 1)
    withdraw(worker)
    withdraw(other)


def test_a_lease_that_is_renewed_is_announced(owner: lease.Ownership) -> None:
    heart = workers.Heartbeat(introduction(ELSEWHERE, "emulate", 1))
    with lease.Renewal(owner, lambda: None):
        assert heart.announced().holds == (owner.title,)
    assert heart.announced().holds == ()


def test_a_worker_that_waits_for_the_database_goes_on_announcing_itself(live_redis: redis.Redis) -> None:
    waits, beats = threading.Event(), []
    heart = workers.Heartbeat(introduction(ELSEWHERE, "emulate", 1), figures=lambda: beats.append(1) or {})
    heart.keep_house = waits.wait
    heart.start()
    try:
        wait_until(lambda: len(beats) > 2, "a third beat")
    finally:
        waits.set()
        heart.stop()
