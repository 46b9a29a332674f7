"""What the application keeps about people beside Django's users: API tokens."""

from __future__ import annotations

from typing import Literal

from django.contrib.auth.models import User
from django.db import models

Role = Literal["viewer", "operator", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "operator", "admin")
"""Roles from the least to the most rights."""


class ApiToken(models.Model):
    """A secret with which a program acts for a user, in at most this role.

    The secret itself is not stored: `digest` is its SHA-256, which finds the row. `hint` is its start, by
    which a person recognises it.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    role = models.CharField(max_length=10)
    hint = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"


class Bearer(User):
    """A user as whoever carries one of their tokens acts for them: `most` is the token's role."""

    most: Role = "viewer"

    class Meta:
        proxy = True


class AuditEntry(models.Model):
    """One line of the log of who did what. `who` is text: the line outlives the account."""

    at = models.DateTimeField(auto_now_add=True)
    who = models.CharField(max_length=170, blank=True)
    action = models.CharField(max_length=40)
    what = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.who} {self.action} {self.what}".strip()
