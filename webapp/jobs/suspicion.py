"""Jobs whose owner seems to be gone: told apart from owners who could not renew.

A lease that is over by the database's clock says only that nobody has renewed it. Perhaps nobody could,
because the database did not answer, or its clock was set forward: then living owners renew as soon as they
can. Therefore whoever settles such a job must have seen its lease unchanged for some beats, each of which
wrote to the database; and its owner must not say in Redis that it holds the job.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import F, QuerySet

from webapp.base.database import any_of
from webapp.jobs import lease, workers
from webapp.jobs.announcement import announced
from webapp.jobs.models import Job

GRACE_BEATS = 3
CLOCK_SLACK = timedelta(seconds=1)
NEEDED = ("worker", "fence", "lease_until")


def held(kind: type[Job]) -> QuerySet[Job]:
    """Jobs that somebody holds, or held when they ended, without their documents."""
    return kind._default_manager.filter(lease_until__isnull=False).only(*NEEDED)


def late(kind: type[Job]) -> list[Job]:
    """Jobs whose lease is over by the database's clock."""
    return list(held(kind).filter(lease_until__lt=lease.now()))


def dead(kind: type[Job], home: str) -> list[Job]:
    """Jobs of processes of `home` (`workers.home`) that do not run any more, and of nobody."""
    return [job for job in held(kind) if not job.worker or workers.has_died(job.worker, home)]


def shorten_leases(kind: type[Job]) -> None:
    """Leave no lease longer than a new one: when the clock was set back, a dead worker must not hold its job
    until the clock is where it was. A living one renews anyway.
    """
    longer = held(kind).filter(lease_until__gt=lease.end(kind) + CLOCK_SLACK)
    if longer.exists():
        longer.update(lease_until=lease.end(kind))


def unheard(jobs: Sequence[Job]) -> list[Job]:
    """The jobs of which no worker says that it holds them. Raises Redis' errors."""
    if not jobs:
        return []
    holding = {(one.worker, title) for one in announced() for title in one.holds}
    return [job for job in jobs if (job.worker, job.title) not in holding]


def check_writable(kind: type[Job], jobs: Sequence[Job]) -> None:
    """Write their rows as they are: while that is not possible, their owners cannot renew either.

    Raises the database's errors.
    """
    if jobs:
        kind._default_manager.filter(pk__in=[job.pk for job in jobs]).update(fence=F("fence"))


class Suspicion:
    """What one process has seen of late jobs of one kind: `since` has a lease (fence, end) and when it was
    seen first.
    """

    def __init__(self, kind: type[Job]) -> None:
        self.kind = kind
        self.any_held = any_of(lambda: held(kind))
        self.since: dict[int, tuple[tuple[int, datetime | None], float]] = {}

    def abandoned(self, home: str) -> list[Job]:
        """Jobs to settle now. Raises the database's errors and Redis', and then begins to watch anew."""
        try:
            if not self.any_held.exists():
                self.since = {}
                return []
            shorten_leases(self.kind)
            quiet = unheard(late(self.kind))
            check_writable(self.kind, quiet)
            found = {job.pk: job for job in (*dead(self.kind, home), *self.silent(quiet, time.monotonic()))}
        except Exception:
            self.since = {}
            raise
        return list(found.values())

    def silent(self, jobs: Sequence[Job], now_s: float) -> list[Job]:
        """The late jobs whose lease is the same since `GRACE_BEATS` beats."""
        seen = {}
        for job in jobs:
            ownership = job.fence, job.lease_until
            before, since_s = self.since.get(job.pk, (ownership, now_s))
            seen[job.pk] = ownership, since_s if before == ownership else now_s
        self.since = seen
        grace_s = GRACE_BEATS * workers.BEAT_S
        return [job for job in jobs if now_s - seen[job.pk][1] >= grace_s]
