"""A run from request to report, and a point of an experiment, which is one as well."""

from __future__ import annotations

import gzip
import json
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.events.models import Told
from webapp.jobs.models import ACTIVE, OVER

FIGURES_IN_COLUMNS = ("latency_s", "ttft_s", "tpot_s", "tokens_per_s")
"""Figures of a run with a column of their own; `figures` has the others that lists show."""
DOCUMENTS = ("request", "spec", "plan", "prediction", "report")
"""What no list reads."""
EMULATED = ACTIVE[:-1]
"""While a run is verified, its worker can take the next one."""


class Compressed(models.BinaryField):  # type: ignore[type-arg]
    """A JSON document, compressed: each of thousands of points has its whole cluster."""

    def from_db_value(self, value: bytes | None, expression: Any, connection: Any) -> Any:
        return None if value is None else json.loads(gzip.decompress(value))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        packed = gzip.compress(json.dumps(value).encode(), compresslevel=3, mtime=0)
        return super().get_db_prep_value(packed, connection, prepared)

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    def value_to_string(self, obj: models.Model) -> str:
        return json.dumps(self.value_from_object(obj))


class Listed(models.Manager["Run"]):
    """The runs that people see."""

    def get_queryset(self) -> models.QuerySet[Run]:
        return super().get_queryset().filter(listed=True)


class Run(Told):
    """One run. JSON columns hold dumped engine values, as they were when the run was made.

    `status` is as `webapp/jobs/models.py` says. From when a worker takes a run until it is `archived`, it has
    one owner (`webapp/jobs/lease.py`). `need` is what it needs of its worker (`webapp/jobs/need.py`).
    `unpredicted` says why there is no prediction. The figures of the report and the parameters that lists
    show are columns, so that a list reads no report and no request.

    A run with a `digest` is a point: what one spec gives in one `world` with one version of the code,
    computed once for all cells of experiments that want it. Once it has ended, `result` is what they show of
    it; without one, `error` says why. `attempts` counts how often it was taken, and `wall_s` is how long it
    took. `method` is the code of the method from outside that it needs, "" for none: only workers that have
    that take it. `listed`: people see it among their runs, where a point is once it is planned as an
    emulation.
    """

    name = models.CharField(max_length=100, blank=True)
    notes = models.TextField(blank=True)
    tags = models.JSONField(default=list)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)

    digest = models.CharField(max_length=64, blank=True)
    world = models.CharField(max_length=10, default="emulated")
    code_version = models.CharField(max_length=64, blank=True)
    method = models.CharField(max_length=300, blank=True)
    listed = models.BooleanField(default=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    result = models.JSONField(null=True)
    wall_s = models.FloatField(null=True)
    dilation = models.FloatField(null=True)

    detail = models.CharField(max_length=200, blank=True)
    cancel_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    request = models.JSONField(default=dict)
    spec = Compressed(default=dict)
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

    objects = Listed()

    class Meta(Told.Meta):
        ordering = ["-pk"]
        indexes = [
            *Told.Meta.indexes,
            models.Index(fields=["-id"], condition=models.Q(listed=True), name="runs_run_listed"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["digest", "world", "code_version"],
                condition=models.Q(digest__gt=""),
                name="computed_once",
            )
        ]

    def __str__(self) -> str:
        return self.name or f"run {self.pk}"

    @property
    def is_over(self) -> bool:
        return self.status in OVER
