"""A run from request to report."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from webapp.events.models import Told

OVER = ("finished", "failed", "cancelled")
FIGURES_IN_COLUMNS = ("latency_s", "ttft_s", "tpot_s", "tokens_per_s")
"""Figures of a run with a column of their own; `figures` has the others that lists show."""
ACTIVE = ("planning", "building", "calibrating", "loading", "running", "verifying")
EMULATED = ACTIVE[:-1]
"""While a run is verified, its worker can take the next one."""


class Run(Told):
    """One run. JSON columns hold dumped engine values, as they were when the run was made.

    `status` is `queued`, one of ACTIVE as the run reports it, or one of OVER. Leaving `queued` is one
    UPDATE … WHERE status = 'queued', so no run starts twice. From then on until `archived`, it has one owner
    (`webapp/jobs/lease.py`). `need` is what it needs of its worker (`webapp/jobs/need.py`). `unpredicted`
    says why there is no prediction. The figures of the report and the parameters that lists show are columns,
    so that a list reads no report and no request.
    """

    name = models.CharField(max_length=100, blank=True)
    notes = models.TextField(blank=True)
    tags = models.JSONField(default=list)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)

    status = models.CharField(max_length=12, default="queued", db_index=True)
    detail = models.CharField(max_length=200, blank=True)
    cancel_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

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

    class Meta(Told.Meta):
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name or f"run {self.pk}"

    @property
    def is_over(self) -> bool:
        return self.status in OVER
