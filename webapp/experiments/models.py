"""Experiments, their frozen versions, the cells that these want, and the computations that all share."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from webapp.jobs.models import Job

OPEN = ("waiting", "running")
"""States of a computation that still needs a worker."""


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
    are no computations and count for no other experiment.

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


class Computation(Job):
    """What one spec gives in one world with one version of the code: computed once, for whoever wants it.

    waiting → running → done or failed. `done` has a result, whatever the outcome of the run. `failed` has no
    result, only a sentence: a time limit, or workers that died. A running prediction has an owner
    (`webapp/jobs/lease.py`), as has an emulation while it is planned; then it is the run `run`, and only that
    has one. `attempts` counts how often it was taken.
    `method` is the code of the method from outside that it needs, "" for none: only workers that have that
    take it. `wall_s` is how long it took, and `dilation` that of an emulation.
    """

    LEASE_S = 150.0
    """Seconds of a lease, longer than a prediction may take: nobody renews it."""

    digest = models.CharField(max_length=64)
    world = models.CharField(max_length=10)
    code_version = models.CharField(max_length=64)
    spec = models.BinaryField()
    method = models.CharField(max_length=300, blank=True)
    state = models.CharField(max_length=8, default="waiting", db_index=True)
    result = models.JSONField(null=True)
    sentence = models.TextField(blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    run = models.ForeignKey(
        "runs.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="computations"
    )
    wall_s = models.FloatField(null=True)
    dilation = models.FloatField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta(Job.Meta):
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["digest", "world", "code_version"], name="computed_once")
        ]

    def __str__(self) -> str:
        return f"{self.digest[:12]} {self.world}"


class Cell(models.Model):
    """One point of an execution in one world: a row of its results.

    A point that cannot become a spec has a problem and no computation.
    """

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="cells")
    index = models.PositiveIntegerField()
    world = models.CharField(max_length=10)
    coordinates = models.JSONField()
    seed = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64, blank=True)
    problem = models.TextField(blank=True)
    computation = models.ForeignKey(
        Computation, null=True, blank=True, on_delete=models.PROTECT, related_name="cells"
    )
    linked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["index", "world"]
        constraints = [models.UniqueConstraint(fields=["execution", "index", "world"], name="one_per_world")]

    def __str__(self) -> str:
        return f"point {self.index} of {self.execution}, {self.world}"
