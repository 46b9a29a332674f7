"""Who may write a job: one owner at a time, with the present number, for as long as the lease is renewed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from django.db import OperationalError

from webapp.jobs import lease, workers
from webapp.jobs.lease import Lost, Ownership, Renewal
from webapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)
ONE = workers.Identity("emulate@one", "home", 1, 1)
OTHER = workers.Identity("emulate@other", "home", 2, 2)


@pytest.fixture
def queued() -> Run:
    return Run.objects.create(request={}, spec={}, cluster_name="x", model="x", strategy="x")


def claim(run: Run, worker: workers.Identity = ONE) -> Ownership:
    Run.objects.update(status="queued")
    taken = lease.claim(Run.objects.all(), run.pk, worker)
    assert taken is not None and taken.worker == str(worker)
    return lease.owner_of(taken)


def test_every_owner_has_a_higher_number_and_the_former_one_writes_nothing_more(queued: Run) -> None:
    first, second = claim(queued), claim(queued, OTHER)
    assert (first.fence, second.fence) == (1, 2)
    with pytest.raises(Lost, match=f"Run {queued.pk} was taken from this worker"):
        lease.write(first, detail="late")
    lease.write(second, detail="mine")
    assert Run.objects.get().detail == "mine"
    assert not lease.owned(first).exists() and lease.owned(second).exists()


def test_a_job_that_does_not_wait_is_not_claimed(queued: Run) -> None:
    assert lease.claim(Run.objects.filter(status="running"), queued.pk, ONE) is None
    assert Run.objects.get().fence == 0


def test_a_renewal_makes_the_lease_longer_but_takes_back_nothing_that_was_let_go(queued: Run) -> None:
    owner = claim(queued)
    Run.objects.update(lease_until="2026-01-01T00:00Z")
    lease.renew(owner)
    assert Run.objects.filter(lease_until__gt=lease.now()).exists()
    lease.write(owner, lease_until=None)
    lease.renew(owner)
    assert Run.objects.get().lease_until is None
    claim(queued, OTHER)
    with pytest.raises(Lost):
        lease.renew(owner)


def test_an_abandoned_job_is_taken_over_once_and_not_from_an_owner_who_has_renewed(queued: Run) -> None:
    owner = claim(queued)
    seen = Run.objects.get()
    lease.renew(owner)
    assert lease.take_over(seen) is None
    seen = Run.objects.get()
    heir = lease.take_over(seen)
    assert heir is not None and heir.fence == owner.fence + 1
    assert lease.take_over(seen) is None, "somebody else was first"
    assert lease.owned(heir).exists() and not lease.owned(owner).exists()


@pytest.fixture
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(workers, "BEAT_S", 0.01)
    yield
    assert not workers.held


def test_the_work_of_a_lost_job_is_stopped_once(queued: Run, quick_beats: None) -> None:
    owner, stopped = claim(queued), threading.Semaphore(0)
    with Renewal(owner, stopped.release) as renewal:
        assert workers.held == {owner.title}
        claim(queued, OTHER)
        assert stopped.acquire(timeout=600)
        renewal.join()
    assert not stopped.acquire(blocking=False)


def test_renewing_goes_on_after_a_database_that_did_not_answer(
    queued: Run, quick_beats: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew, calls, again = lease.renew, [], threading.Event()

    def renew_later(owner: Ownership) -> None:
        calls.append(owner)
        if len(calls) == 1:
            raise OperationalError("database is locked")
        renew(owner)
        again.set()

    monkeypatch.setattr(lease, "renew", renew_later)
    with Renewal(claim(queued), lambda: pytest.fail("stopped")):
        assert again.wait(60)


def test_a_job_that_nobody_wants_any_more_is_stopped_once(queued: Run, quick_beats: None) -> None:
    stopped, asked = threading.Semaphore(0), threading.Semaphore(0)

    def is_unwanted() -> bool:
        asked.release()
        return True

    with Renewal(claim(queued), stopped.release, is_unwanted):
        for _ in range(3):
            assert asked.acquire(timeout=600)
    assert stopped.acquire(blocking=False) and not stopped.acquire(blocking=False)
