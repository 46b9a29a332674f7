"""Session: who am I, log in, log out."""

from __future__ import annotations

from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.middleware.csrf import get_token
from ninja import Router, Schema
from ninja.errors import AuthenticationError, HttpError
from ninja.responses import Status

from webapp.accounts.access import Role, refuse_forged, role

router = Router(tags=["session"])


class SessionOut(Schema):
    user: str
    role: Role
    csrf_token: str


class Credentials(Schema):
    username: str
    password: str


def session_of(request: HttpRequest, user: User) -> SessionOut:
    return SessionOut(user=user.username, role=role(user), csrf_token=get_token(request))


@router.get("/session", response=SessionOut, auth=None)
def get_session(request: HttpRequest) -> SessionOut:
    """Who is logged in. Sets the CSRF cookie in any case: logging in needs it."""
    get_token(request)
    if not request.user.is_authenticated:
        raise AuthenticationError
    return session_of(request, request.user)


@router.post("/login", response=SessionOut, auth=None)
def log_in(request: HttpRequest, credentials: Credentials) -> SessionOut:
    refuse_forged(request)
    user = authenticate(request, username=credentials.username, password=credentials.password)
    if user is None:
        raise HttpError(401, "Wrong user name or password: try again.")
    login(request, user)
    return session_of(request, user)


@router.post("/logout", response={204: None})
def log_out(request: HttpRequest) -> Status[None]:
    logout(request)
    return Status(204, None)
