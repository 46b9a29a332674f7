"""The stored events of a run, and what they need of the run: whether they are complete."""

from __future__ import annotations

from typing import cast

from django.db import models

from webapp.jobs.models import Job


class Told(Job):
    """A job that has events. `archived`: they are complete, and all of them are in the database."""

    archived = models.BooleanField(default=False)

    class Meta(Job.Meta):
        abstract = True


class EventSegment(models.Model):
    """Batches [first, last] of a run's events: gzip of one JSON array per line, in order.

    The worker writes segments while the run goes on, so that the live stream in Redis may stay short; they
    are complete once `Told.archived` is set. `schema` is the version of the events, as in
    `engine/domain/stored.py`.
    """

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="segments")
    first = models.PositiveIntegerField()
    last = models.PositiveIntegerField()
    batches = models.BinaryField()
    schema = models.PositiveSmallIntegerField(default=1)

    class Meta:
        app_label = "runs"  # the app that its table was made for
        ordering = ["first"]
        constraints = [models.UniqueConstraint(fields=["run", "first"], name="one_segment_per_start")]

    def __str__(self) -> str:
        return f"events {self.first} to {self.last} of run {self.run_id}"


def told() -> models.QuerySet[Told]:
    """Every job that has events."""
    model = cast(type[Told], EventSegment._meta.get_field("run").related_model)
    return model._default_manager.all()
