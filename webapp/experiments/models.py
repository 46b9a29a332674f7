"""Experiments, their frozen versions, and the cells of these, which want the points that all share."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from webapp.jobs.models import ACTIVE
from webapp.runs.models import Run

OPEN = ("waiting", "queued", *ACTIVE)
"""States of a point that still needs a worker."""


class Experiment(models.Model):
    """What people design. `document` is a dumped `engine.domain.experiment.Experiment`; `version` counts its
    edits.
    """

    name = models.CharField(max_length=100)
    document = models.JSONField()
    version = models.PositiveIntegerField(default=1)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name


class Imported(models.Model):
    """The results of the study from which an experiment was taken. Nothing here has computed them, so they
    are no points and count for no other experiment.

    `about` is what `study.json` says of the machine and the day; `rows` are dumped
    `engine.experiments.results.rows.Row`s; `version` is the experiment's version of which they are.
    """

    experiment = models.OneToOneField(Experiment, on_delete=models.CASCADE, related_name="imported")
    version = models.PositiveIntegerField(default=1)
    file = models.CharField(max_length=200)
    about = models.JSONField()
    rows = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"results of {self.experiment} from {self.file}"


class Execution(models.Model):
    """One version of an experiment, frozen when it was started: a later edit does not change it.

    Without an experiment it is the preview of what `owner` is designing. `state` is what people asked for;
    whether it has finished follows from its cells. Executions take turns at the workers: `served_at` is when
    this one had its last turn.
    """

    experiment = models.ForeignKey(
        Experiment, null=True, blank=True, on_delete=models.CASCADE, related_name="executions"
    )
    version = models.PositiveIntegerField(default=1)
    document = models.JSONField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    state = models.CharField(
        max_length=10,
        default="active",
        choices=[("active", "active"), ("paused", "paused"), ("cancelled", "cancelled")],
    )
    created_at = models.DateTimeField(auto_now_add=True)
    served_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["experiment", "version"], name="frozen_once")]

    def __str__(self) -> str:
        return f"version {self.version} of {self.experiment}" if self.experiment else f"preview {self.pk}"


class Cell(models.Model):
    """One point of an execution in one world: a row of its results.

    A point that cannot become a spec has a problem and no run. Any other has one, which it may share with
    cells of other experiments.
    """

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="cells")
    index = models.PositiveIntegerField()
    world = models.CharField(max_length=10)
    coordinates = models.JSONField()
    seed = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64, blank=True)
    problem = models.TextField(blank=True)
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.PROTECT, related_name="cells")
    linked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["index", "world"]
        constraints = [models.UniqueConstraint(fields=["execution", "index", "world"], name="one_per_world")]

    def __str__(self) -> str:
        return f"point {self.index} of {self.execution}, {self.world}"
