"""The right to write a job: its worker holds a lease, which it renews, and every write carries a fencing
number.

A lease ends by itself when its holder falls silent (Gray and Cheriton, 1989). A holder that was only paused
does not notice that. Therefore every write names the number of its lease, and the database and Redis refuse a
number that is not the present one. The clock is that of the database: those of the workers may differ.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple, Self, TypeVar

from django.db import connection
from django.db.models import F, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from webapp.jobs import storage, workers
from webapp.jobs.models import Job, move, title

logger = logging.getLogger(__name__)
J = TypeVar("J", bound=Job)


class Ownership(NamedTuple):
    """The right to write a job, as long as `fence` is its present number."""

    kind: type[Job]
    id: int
    fence: int

    @property
    def title(self) -> str:
        return title(self.kind, self.id)


class Lost(Exception):
    """The job belongs to somebody else by now, or was deleted: its former owner writes nothing more.

    It is no `EdgeLoomError`, as it is for no person: whoever catches those would write a result of the job.
    """

    def __init__(self, owner: Ownership):
        super().__init__(
            f"{owner.title.capitalize()} was taken from this worker, which was silent for more than "
            f"{owner.kind.LEASE_S:.0f} s, or was deleted: nothing more is written for it here."
        )


def now() -> Combinable:
    """The time at the database, with six digits after the second as all stored times: SQLite's own has three,
    and as texts the two would differ.
    """
    return Now() + timedelta()


def end(lease_s: float = Job.LEASE_S) -> Combinable:
    """When a lease ends that is taken or renewed now."""
    return now() + timedelta(seconds=lease_s)


def claim(jobs: QuerySet[J], job_id: int, worker: workers.Identity, **changes: Any) -> J | None:
    """Give one of `jobs` to `worker`; None if it does not wait any more."""
    held = {"worker": str(worker), "fence": F("fence") + 1, "lease_until": end()}
    taken = move(jobs.filter(pk=job_id), "take", **held, **changes)
    return jobs.model._base_manager.get(pk=job_id) if taken else None


def owner_of(job: Job) -> Ownership:
    return Ownership(type(job), job.pk, job.fence)


def owned(owner: Ownership) -> QuerySet[Any]:
    """The job, if `owner` still owns it: every write goes through this filter."""
    return owner.kind._base_manager.filter(pk=owner.id, fence=owner.fence)


def write(owner: Ownership, **changes: Any) -> None:
    """Change the job. Raises `Lost`."""
    if not owned(owner).update(**changes):
        raise Lost(owner)


def renew(owner: Ownership) -> None:
    """Hold the job for as long again, unless its owner has let go of it. Raises `Lost`."""
    held = owned(owner).filter(lease_until__isnull=False)
    if not held.update(lease_until=end()) and not owned(owner).exists():
        raise Lost(owner)


def take_over(job: Job) -> Ownership | None:
    """Take an abandoned job from its holder; None if that renewed or somebody else was first."""
    seen = {"fence": job.fence, "lease_until": job.lease_until}
    next_fence = job.fence + 1
    found = type(job)._base_manager.filter(pk=job.pk, **seen)
    taken = found.update(fence=next_fence, lease_until=end())
    return Ownership(type(job), job.pk, next_fence) if taken else None


class Renewal(threading.Thread):
    """Renews a lease again and again inside the `with` block.

    Calls `on_stop` once when the job was lost or `is_unwanted` says so.
    """

    def __init__(
        self, owner: Ownership, on_stop: Callable[[], None], is_unwanted: Callable[[], bool] = lambda: False
    ):
        super().__init__(name=f"lease of {owner.title}", daemon=True)
        self.owner = owner
        self.on_stop = on_stop
        self.is_unwanted = is_unwanted
        self.told = False
        self.ending = threading.Event()

    def __enter__(self) -> Self:
        workers.held.add(self.owner.title)
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.ending.set()
        self.join()
        workers.held.discard(self.owner.title)

    def run(self) -> None:
        while not self.ending.wait(workers.BEAT_S):
            try:
                renew(self.owner)
                if self.is_unwanted():
                    self._stop_the_work()
            except Lost as lost:
                logger.warning("%s", lost)
                self._stop_the_work()
                return
            except storage.ERRORS as error:
                storage.report(error)
            finally:
                connection.close()

    def _stop_the_work(self) -> None:
        if not self.told:
            self.told = True
            self.on_stop()
