"""The guards that API routes carry: `viewer` (may read), `file_reader` (may have files made) and `operator`
(may write), each for a browser's session or an API token, and `person` for what only somebody at a browser
may do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja.errors import HttpError
from ninja.operation import Operation
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf, contribute_operation_callback

from webapp.accounts import rates, tokens
from webapp.accounts.models import Bearer
from webapp.accounts.roles import role


def refuse_forged(request: HttpRequest) -> None:
    """Check that a request that changes something carries this site's CSRF token; answers 403 if not."""
    if check_csrf(request) is not None:
        raise HttpError(403, "The request carries no valid CSRF token: reload the page, then try again.")


def count(request: HttpRequest, who: str) -> None:
    """Count a request of `who` that changes something; raises `TooMany` after too many."""
    if request.method not in ("GET", "HEAD", "OPTIONS"):
        rates.check(who, settings.WRITES_PER_MINUTE)


def locked_out(request: HttpRequest, response: HttpResponse | None, credentials: Any) -> HttpResponse:
    """The answer to a log-in after too many wrong ones, in the API's form (django-axes calls it)."""
    wait_s = max(1, round(settings.AXES_COOLOFF_TIME.total_seconds()))
    detail = f"Too many wrong log-ins as {credentials['username']}: try again in {wait_s} s."
    return JsonResponse({"detail": detail, "fields": []}, status=429, headers={"Retry-After": str(wait_s)})


class UserRequest(HttpRequest):
    """A request that a guard has let through: `auth` is who sent it."""

    auth: User


class Session(APIKeyCookie):
    """A session cookie, with the CSRF token on unsafe methods."""

    param_name = settings.SESSION_COOKIE_NAME

    def __init__(self) -> None:
        super().__init__(csrf=False)  # done below, with a sentence

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        if not request.user.is_authenticated:
            return None
        refuse_forged(request)
        count(request, f"person {request.user.pk}")
        return request.user


class Token(HttpBearer):
    """Logs a request in by `Authorization: Bearer loom_…`. No other site can make a browser send that, so no
    CSRF token is needed.

    A secret that is not valid is refused, also when the request carries a session.
    """

    def authenticate(self, request: HttpRequest, token: str) -> Bearer:
        user = tokens.bearer(token)
        if user is None:
            raise HttpError(
                401, "The API token is unknown or was revoked: make a new one on the account page."
            )
        count(request, f"person {user.pk}")
        return user


def check_operator(user: User | None) -> None:
    """Check that somebody who is known may do more than look; answers 403 if not."""
    if user is not None and role(user) == "viewer":
        why = "with this token" if isinstance(user, Bearer) else "ask an administrator for the role operator"
        raise HttpError(403, f"{user.username} may look but not change: {why}.")


class OperatorSession(Session):
    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        user = super().authenticate(request, key)
        check_operator(user)
        return user


class OperatorToken(Token):
    def authenticate(self, request: HttpRequest, token: str) -> Bearer:
        user = super().authenticate(request, token)
        check_operator(user)
        return user


def check_admin(user: User | None) -> None:
    """Check that somebody who is known is an administrator; answers 403 if not."""
    if user is not None and role(user) != "admin":
        raise HttpError(403, f"{user.username} is {role(user)}: only administrators may read this.")


class AdminSession(Session):
    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        user = super().authenticate(request, key)
        check_admin(user)
        return user


class AdminToken(Token):
    def authenticate(self, request: HttpRequest, token: str) -> Bearer:
        user = super().authenticate(request, token)
        check_admin(user)
        return user


def count_file(user: User | None) -> None:
    """Count a file made for `user`, which may take the server a second; raises `TooMany` after too many."""
    if user is not None:
        rates.check(f"files of person {user.pk}", settings.FILES_PER_MINUTE)


class FileSession(Session):
    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        user = super().authenticate(request, key)
        count_file(user)
        return user


class FileToken(Token):
    def authenticate(self, request: HttpRequest, token: str) -> Bearer:
        user = super().authenticate(request, token)
        count_file(user)
        return user


View = Callable[..., Any]


def one_at_a_time(view: View) -> View:
    """Let a route compute the requests of one person one after the other."""

    def in_turn(operation: Operation) -> None:
        compute = operation.view_func

        @wraps(compute)
        def computed(request: UserRequest, *arguments: Any, **more: Any) -> Any:
            with rates.turn(request.auth.pk):
                return compute(request, *arguments, **more)

        operation.view_func = computed

    contribute_operation_callback(view, in_turn)
    return view


person = Session()
viewer = (Token(), Session())
file_reader = (FileToken(), FileSession())
operator = (OperatorToken(), OperatorSession())
admin = (AdminToken(), AdminSession())
