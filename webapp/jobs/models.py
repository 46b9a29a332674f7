"""What every job has that one worker at a time may hold; which code workers run, and which are drained."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Job(models.Model):
    """Work of which one worker at a time is the owner, from when it takes it until it lets go of it.

    `worker` has it, or had it last. `fence` counts the owners. `lease_until` is when the ownership ends
    unless it is renewed; None while nobody has it. `webapp/jobs/lease.py` changes all three.
    """

    LEASE_S: ClassVar[float] = 20.0
    """A lease that is not renewed for so long is over."""

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
