"""Roles and the two guards that API routes carry: `viewer` (may read) and `operator` (may write).

Roles are Django groups: every user who is logged in may read, members of the group `operator` may write,
superusers may do everything.
"""

from __future__ import annotations

from typing import Any, Literal

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja.errors import HttpError
from ninja.security import APIKeyCookie
from ninja.utils import check_csrf

GROUPS = ("viewer", "operator")
Role = Literal["viewer", "operator", "admin"]


def role(user: User) -> Role:
    if user.is_superuser:
        return "admin"
    return "operator" if user.groups.filter(name="operator").exists() else "viewer"


def refuse_forged(request: HttpRequest) -> None:
    """Raises 403 unless a request that changes something carries this site's CSRF token."""
    if check_csrf(request) is not None:
        raise HttpError(403, "The request carries no valid CSRF token: reload the page, then try again.")


def locked_out(request: HttpRequest, response: HttpResponse | None, credentials: Any) -> HttpResponse:
    """The answer to a log-in after too many wrong ones, in the API's form (django-axes calls it)."""
    wait_s = max(1, round(settings.AXES_COOLOFF_TIME.total_seconds()))
    detail = f"Too many wrong log-ins as {credentials['username']}: try again in {wait_s} s."
    return JsonResponse({"detail": detail, "fields": []}, status=429, headers={"Retry-After": str(wait_s)})


class UserRequest(HttpRequest):
    """A request that a guard has let through: `auth` is who sent it."""

    auth: User


class Viewer(APIKeyCookie):
    """A session cookie, with the CSRF token on unsafe methods."""

    param_name = settings.SESSION_COOKIE_NAME

    def __init__(self) -> None:
        super().__init__(csrf=False)  # done below, with a sentence

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        if not request.user.is_authenticated:
            return None
        refuse_forged(request)
        return request.user


class Operator(Viewer):
    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        user = super().authenticate(request, key)
        if user is not None and role(user) == "viewer":
            raise HttpError(
                403, f"{user.username} may look but not change: ask an administrator for the group operator."
            )
        return user


viewer = Viewer()
operator = Operator()
