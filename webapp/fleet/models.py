"""Which code the fleet runs, and which workers are drained."""

from __future__ import annotations

from django.db import models


class Release(models.Model):
    """The version of the code that last prepared the database, in one row: other workers are refused."""

    version = models.CharField(max_length=64)
    since = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.version


class StoredModel(models.Model):
    """A model that somebody added: its name, and the digest of its files in the model store."""

    name = models.CharField(max_length=60, unique=True)
    digest = models.CharField(max_length=64, db_index=True)
    bytes = models.BigIntegerField()
    spec = models.JSONField()
    by = models.CharField(max_length=150)
    since = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Drain(models.Model):
    """A worker that finishes what it does and takes nothing more, until somebody removes the row.

    `worker` is its node name and home (`Identity.place`), so that a restart of its process changes nothing.
    """

    worker = models.CharField(max_length=200, unique=True)
    by = models.CharField(max_length=150)
    since = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.worker}, drained by {self.by}"
