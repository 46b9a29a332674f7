"""The states of a job, and who has it; which code workers run, and which of them are drained."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.utils import timezone

ACTIVE = ("planning", "building", "calibrating", "loading", "running", "verifying")
OVER = ("finished", "failed", "cancelled")


EVENTS: dict[str, tuple[tuple[str, ...], str]] = {
    "take": (("waiting", "queued"), "planning"),
    "queue": (ACTIVE, "queued"),
    "give back": (ACTIVE, "waiting"),
    **{state: (ACTIVE, state) for state in ACTIVE},
    **{state: (("queued", *ACTIVE), state) for state in OVER},
}
"""What may happen to a job → in which states, and the state after it. A point of an experiment waits until it
is predicted, or planned and queued; a run is queued from the start. What a worker reports, and each way to
end, is named as its state.
"""


class Job(models.Model):
    """Work of which one worker at a time is the owner, from when it takes it until it lets go of it.

    `status` changes by EVENTS alone, and `changed_at` says when it last did. `worker` has it, or had it last.
    `fence` counts the owners. `lease_until` is when the ownership ends unless it is renewed; None while
    nobody has it. `webapp/jobs/lease.py` changes all three.
    """

    LEASE_S: ClassVar[float] = 20.0
    """A lease that is not renewed for so long is over."""
    LONGEST_LEASE_S: ClassVar[float] = 150.0
    """The lease of what nobody renews: longer than the prediction of a point may take."""

    status = models.CharField(max_length=12, default="queued", db_index=True)
    changed_at = models.DateTimeField(auto_now_add=True, db_index=True)
    worker = models.CharField(max_length=200, blank=True)
    fence = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        abstract = True
        indexes = [
            models.Index(
                fields=["lease_until"],
                condition=models.Q(lease_until__isnull=False),
                name="%(app_label)s_%(class)s_held",
            )
        ]

    @property
    def title(self) -> str:
        return title(type(self), self.pk)


def move(jobs: models.QuerySet[Any], event: str, **changes: Any) -> int:
    """Let an event happen to those of `jobs` in whose state it may, with other changes; returns how many.

    It is one UPDATE with the states that it expects: it has no effect if another process was first.
    """
    before, after = EVENTS[event]
    found = jobs.filter(status__in=before)
    return found.update(status=after, changed_at=timezone.now(), **changes)


def title(kind: type[Job], job_id: int) -> str:
    """What a job is called."""
    return f"{kind._meta.verbose_name} {job_id}"


class Release(models.Model):
    """The version of the code that last prepared the database, in one row: other workers are refused.

    `uses` is what packages add to the server, methods and packs of data: who plans for it needs the same.
    """

    version = models.CharField(max_length=64)
    uses = models.JSONField(default=list)
    since = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.version


class Drain(models.Model):
    """A worker that finishes what it does and takes nothing more, until somebody removes the row.

    `worker` is its node name and home (`Identity.place`), so that a restart of its process changes nothing.
    """

    worker = models.CharField(max_length=200, unique=True)
    by = models.CharField(max_length=150)
    since = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.worker}, drained by {self.by}"
