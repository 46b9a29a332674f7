"""A drawn cluster, what it is (`spec`) and how it is drawn (`layout`); a model that was added; a node."""

from __future__ import annotations

from django.conf import settings
from django.db import models

MOST_ADDRESS_CHARS = 64
"""Of an IP address with the interface that it is of."""


class Cluster(models.Model):
    """A cluster that somebody drew. `spec` is a dumped `ClusterSpec`; `version` counts the edits, for
    optimistic locking. A `template` comes with every installation and is never changed.
    """

    name = models.CharField(max_length=31, unique=True)
    title = models.CharField(max_length=200, blank=True)
    spec = models.JSONField()
    layout = models.JSONField(default=dict)
    template = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class StoredModel(models.Model):
    """A model that somebody added: its name, and the digest of its files in the model store."""

    name = models.CharField(max_length=60, unique=True)
    digest = models.CharField(max_length=64, db_index=True)
    bytes = models.BigIntegerField()
    spec = models.JSONField()
    by = models.CharField(max_length=150)
    since = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "fleet"  # the app that its table was made for
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """Somebody's board, which may join with the token whose SHA-256 is `digest`.

    `hello` and `beat` are what it last said, dumped `NodeHello` and `NodeBeat`; `device` and `profile` are
    the halves of its `Calibration`, `caution` what is to be said beside these. `connection` names the
    WebSocket that it speaks on at present, `came_from` is the address that it was opened from.
    """

    name = models.CharField(max_length=31, unique=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(null=True)
    connection = models.CharField(max_length=32, blank=True)
    came_from = models.CharField(max_length=MOST_ADDRESS_CHARS, blank=True)
    hello = models.JSONField(null=True)
    beat = models.JSONField(null=True)
    device = models.JSONField(null=True)
    profile = models.JSONField(null=True)
    caution = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
