"""Jobs whose owner seems to be gone: told apart from owners who could not renew.

A lease that is over by the database's clock says only that nobody has renewed it. Perhaps nobody could,
because the database did not answer, or its clock was set forward: then living owners renew as soon as they
can. Therefore whoever settles such a job must have seen its lease unchanged for some beats, each of which
wrote to the database; and its owner must not say in Redis that it holds the job. A process of this host that
waits for a core lives, too: an emulation may leave its own worker nearly none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Generic, NamedTuple

from django.db.models import F, QuerySet

from webapp.base.core_wait import is_starved
from webapp.base.database import any_of
from webapp.jobs import lease, workers
from webapp.jobs.announcement import announced
from webapp.jobs.lease import J
from webapp.jobs.models import Job

GRACE_BEATS = 3
CLOCK_SLACK = timedelta(seconds=1)
NEEDED = ("worker", "fence", "lease_until")


def held(kind: type[J]) -> QuerySet[J]:
    """Jobs that somebody holds, or held when they ended, without their documents."""
    return kind._base_manager.filter(lease_until__isnull=False).only(*NEEDED)


def late(kind: type[J]) -> list[J]:
    """Jobs whose lease is over by the database's clock."""
    return list(held(kind).filter(lease_until__lt=lease.now()))


def dead(kind: type[J], home: str) -> list[J]:
    """Jobs of processes of `home` (`workers.home`) that do not run any more, and of nobody."""
    return [job for job in held(kind) if not job.worker or workers.has_died(job.worker, home)]


def shorten_leases(kind: type[Job]) -> None:
    """Leave no lease longer than a new one may be: when the clock was set back, a dead worker must not hold
    its job until the clock is where it was. A living one renews anyway.
    """
    longest = lease.end(kind.LONGEST_LEASE_S)
    longer = held(kind).filter(lease_until__gt=longest + CLOCK_SLACK)
    if longer.exists():
        longer.update(lease_until=longest)


def unheard(jobs: Sequence[J]) -> list[J]:
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
        kind._base_manager.filter(pk__in=[job.pk for job in jobs]).update(fence=F("fence"))


class Seen(NamedTuple):
    """A late job as it was last looked at: its lease (fence, end), since when it is the same although its
    owner had a core, when that was, and for how long its owner had waited for a core until then.
    """

    lease: tuple[int, datetime | None]
    since_s: float
    looked_s: float
    waited_s: float


class Suspicion(Generic[J]):
    """What one process has seen of late jobs of one kind."""

    def __init__(self, kind: type[J]) -> None:
        self.kind = kind
        self.any_held = any_of(lambda: held(kind))
        self.seen: dict[int, Seen] = {}

    def abandoned(self, home: str) -> list[J]:
        """Jobs to settle now. Raises the database's errors and Redis', and then begins to watch anew."""
        try:
            if not self.any_held.exists():
                self.seen = {}
                return []
            shorten_leases(self.kind)
            quiet = unheard(late(self.kind))
            check_writable(self.kind, quiet)
            found = {
                job.pk: job for job in (*dead(self.kind, home), *self.silent(quiet, home, time.monotonic()))
            }
        except Exception:
            self.seen = {}
            raise
        return list(found.values())

    def silent(self, jobs: Sequence[J], home: str, now_s: float) -> list[J]:
        """The late jobs whose lease is the same for `GRACE_BEATS` beats in which their owners had a core."""
        self.seen = {job.pk: self._look(job, home, now_s) for job in jobs}
        grace_s = GRACE_BEATS * workers.BEAT_S
        return [job for job in jobs if now_s - self.seen[job.pk].since_s >= grace_s]

    def _look(self, job: Job, home: str, now_s: float) -> Seen:
        lease, waited_s = (job.fence, job.lease_until), workers.waited_s(job.worker, home)
        before = self.seen.get(job.pk, Seen(lease, now_s, now_s, waited_s))
        starved = is_starved(waited_s - before.waited_s, now_s - before.looked_s)
        is_same = before.lease == lease and not starved
        return Seen(lease, before.since_s if is_same else now_s, now_s, waited_s)
