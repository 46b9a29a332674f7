"""A run from request to report, and the archive of its events."""

from __future__ import annotations

from django.conf import settings
from django.db import models

OVER = ("finished", "failed", "cancelled")
ACTIVE = ("planning", "building", "calibrating", "loading", "running", "verifying")


class Run(models.Model):
    """One run. JSON columns hold dumped engine values, as they were when the run was made.

    `status` is `queued`, one of ACTIVE as the run reports it, or one of OVER. Leaving `queued` is one
    UPDATE … WHERE status = 'queued', so no run starts twice. From then on until `archived`, it has one owner,
    which `fence` and `lease_until` tell (`webapp/runs/ownership.py`). `need` is what it needs of its worker
    (`webapp/fleet/need.py`). `unpredicted` says why there is no prediction. The figures of the report and
    the parameters that lists show are columns, so that a list reads no report and no request.
    """

    name = models.CharField(max_length=100, blank=True)
    notes = models.TextField(blank=True)
    tags = models.JSONField(default=list)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)

    status = models.CharField(max_length=12, default="queued", db_index=True)
    detail = models.CharField(max_length=200, blank=True)
    worker = models.CharField(max_length=200, blank=True)
    fence = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    cancel_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    archived = models.BooleanField(default=False)

    request = models.JSONField()
    spec = models.JSONField()
    plan = models.JSONField(null=True)
    need = models.JSONField(default=dict)
    prediction = models.JSONField(null=True)
    unpredicted = models.CharField(max_length=300, blank=True)
    report = models.JSONField(null=True)
    error = models.TextField(blank=True)

    params = models.JSONField(default=dict)
    figures = models.JSONField(default=dict)
    cluster_name = models.CharField(max_length=31)
    model = models.CharField(max_length=100)
    strategy = models.CharField(max_length=50)
    outcome = models.CharField(max_length=20, blank=True)
    latency_s = models.FloatField(null=True)
    ttft_s = models.FloatField(null=True)
    tpot_s = models.FloatField(null=True)
    tokens_per_s = models.FloatField(null=True)
    correct = models.BooleanField(null=True)
    valid = models.BooleanField(null=True)
    lossy = models.BooleanField(null=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["status"], condition=models.Q(archived=False), name="runs_not_archived")
        ]

    def __str__(self) -> str:
        return self.name or f"run {self.pk}"

    @property
    def is_over(self) -> bool:
        return self.status in OVER


class EventSegment(models.Model):
    """Batches [first, last] of a run's events: gzip of one JSON array per line, in order.

    The worker writes segments while the run goes on, so that the live stream in Redis may stay short; they
    are complete once `Run.archived` is set. `schema` is the version of the events, as in
    `engine/domain/stored.py`.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="segments")
    first = models.PositiveIntegerField()
    last = models.PositiveIntegerField()
    batches = models.BinaryField()
    schema = models.PositiveSmallIntegerField(default=1)

    class Meta:
        ordering = ["first"]
        constraints = [models.UniqueConstraint(fields=["run", "first"], name="one_segment_per_start")]

    def __str__(self) -> str:
        return f"events {self.first} to {self.last} of run {self.run_id}"
