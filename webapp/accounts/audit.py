"""The log of who did what: log-ins, live changes, deletions. Administrators read it; nobody changes it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest

from webapp.accounts.models import AuditEntry, Bearer

KEPT = 100_000
PRUNED_EVERY = 1000


def note(user: User | None, action: str, what: object = "") -> None:
    """Add one line, as `ada`, `deleted`, `run 7`; a program of ada's is `ada by token`."""
    who = user.get_username() if user else ""
    add(f"{who} by token" if isinstance(user, Bearer) else who, action, str(what))


def add(who: str, action: str, what: str) -> None:
    entry = AuditEntry.objects.create(who=who[:170], action=action[:40], what=what[:300])
    if entry.pk % PRUNED_EVERY == 0:
        AuditEntry.objects.filter(pk__lte=entry.pk - KEPT).delete()


def on_log_in(sender: Any, request: HttpRequest, user: User, **more: Any) -> None:
    add(user.get_username(), "logged in", address_of(request))


def on_log_out(sender: Any, request: HttpRequest, user: User | None, **more: Any) -> None:
    if user is not None:
        add(user.get_username(), "logged out", "")


def on_failure(
    sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **more: Any
) -> None:
    """Names that nobody has are noted too, cut: somebody may have typed a password into the wrong field."""
    name = str(credentials.get("username", ""))
    known = name if User.objects.filter(username=name).exists() else f"{name[:3]}… (no such user)"
    add(known.replace("\0", ""), "gave a wrong password", address_of(request))


def address_of(request: HttpRequest | None) -> str:
    return f"from {request.META['REMOTE_ADDR']}" if request and request.META.get("REMOTE_ADDR") else ""


user_logged_in.connect(on_log_in)
user_logged_out.connect(on_log_out)
user_login_failed.connect(on_failure)
