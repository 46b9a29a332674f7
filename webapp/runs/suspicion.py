"""Runs whose owner seems to be gone: told apart from owners who could not renew.

A lease that is over by the database's clock says only that nobody has renewed it. Perhaps nobody could,
because the database did not answer, or its clock was set forward: then living owners renew as soon as they
can. Therefore whoever settles such a run must have seen its lease unchanged for some beats, each of which
wrote to the database; and its owner must not say in Redis that it holds the run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from webapp.fleet.announcement import announced
from webapp.runs import ownership, workers
from webapp.runs.models import Run

GRACE_BEATS = 3
CLOCK_SLACK = timedelta(seconds=1)


def late() -> list[Run]:
    """Runs that nobody holds by the database's clock, without their documents."""
    over = Q(lease_until__lt=ownership.now()) | Q(lease_until=None)
    return list(_held().filter(over).defer("request", "spec", "plan", "prediction"))


def dead(home: str) -> list[Run]:
    """Runs of processes of `home` (`workers.home`) that do not run any more, without their documents."""
    light = _held().defer("request", "spec", "plan", "prediction")
    return [run for run in light if workers.has_died(run.worker, home)]


def shorten_leases() -> None:
    """Leave no lease longer than a new one: when the clock was set back, a dead worker must not hold its run
    until the clock is where it was. A living one renews anyway.
    """
    longer = _held().filter(lease_until__gt=ownership.lease() + CLOCK_SLACK)
    if longer.exists():
        longer.update(lease_until=ownership.lease())


def unheard(runs: Sequence[Run]) -> list[Run]:
    """Those of which no worker says that it holds them. Raises Redis' errors."""
    if not runs:
        return []
    holding = {(one.worker, run) for one in announced() for run in one.holds}
    return [run for run in runs if (run.worker, run.pk) not in holding]


def check_writable(runs: Sequence[Run]) -> None:
    """Write their rows as they are: while that is not possible, their owners cannot renew either.

    Raises the database's errors.
    """
    if runs:
        Run.objects.filter(pk__in=[run.pk for run in runs]).update(archived=F("archived"))


def _held() -> QuerySet[Run]:
    return Run.objects.filter(archived=False).exclude(status="queued")


class Suspicion:
    """What one process has seen of late runs: `since` has a lease (fence, end) and when it was seen first."""

    def __init__(self) -> None:
        self.since: dict[int, tuple[tuple[int, datetime | None], float]] = {}

    def abandoned(self, home: str) -> list[Run]:
        """Runs to settle now. Raises the database's errors and Redis', and then begins to watch anew."""
        try:
            shorten_leases()
            quiet = unheard(late())
            check_writable(quiet)
            found = {run.pk: run for run in (*dead(home), *self.silent(quiet, time.monotonic()))}
        except Exception:
            self.since = {}
            raise
        return list(found.values())

    def silent(self, runs: Sequence[Run], now_s: float) -> list[Run]:
        """Of late runs, those whose lease is the same since `GRACE_BEATS` beats, or which have none."""
        seen = {}
        for run in runs:
            lease = run.fence, run.lease_until
            before, since_s = self.since.get(run.pk, (lease, now_s))
            seen[run.pk] = lease, since_s if before == lease else now_s
        self.since = seen
        grace_s = GRACE_BEATS * workers.BEAT_S
        return [run for run in runs if run.lease_until is None or now_s - seen[run.pk][1] >= grace_s]


suspicion = Suspicion()
"""This process's."""
