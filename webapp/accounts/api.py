"""The API of accounts: who is logged in, log-in and log-out, passwords, API tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.conf import settings
from django.contrib.auth import authenticate, login, logout, update_session_auth_hash
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.urls import reverse
from ninja import Query, Router, Schema
from ninja.errors import AuthenticationError, HttpError
from ninja.responses import Status
from pydantic import Field

from engine.domain.command_name import COMMAND
from engine.domain.errors import SpecError
from webapp.accounts import audit, tokens
from webapp.accounts.access import UserRequest, admin, count, person, refuse_forged
from webapp.accounts.models import ApiToken, AuditEntry, Role
from webapp.accounts.roles import role

router = Router(tags=["session"])
MOST_CHARS = 500
"""Most characters of a password: hashing takes time for each."""


class SessionOut(Schema):
    user: str
    role: Role
    csrf_token: str
    program: str = Field(description="What a person types to call EdgeLoom's command on this machine.")


class Provider(Schema):
    name: str
    address: str = Field(description="Where logging in with it begins.")


class LoginWays(Schema):
    provider: Provider | None = Field(description="The OpenID provider with which people may log in, if any.")


class Credentials(Schema):
    username: str = Field(max_length=MOST_CHARS)
    password: str = Field(max_length=MOST_CHARS)


class PasswordChange(Schema):
    current: str = Field(max_length=MOST_CHARS)
    new: str = Field(max_length=MOST_CHARS)


class TokenIn(Schema):
    name: str = Field(min_length=1, max_length=100)
    role: Role = "operator"


class TokenOut(Schema):
    id: int
    name: str
    role: Role
    hint: str = Field(description="The start of the secret.")
    created_at: datetime
    last_used_at: datetime | None = Field(description="To the minute.")


class NewToken(TokenOut):
    secret: str = Field(description="Send it as `Authorization: Bearer …`. It is not shown again.")


class AuditRow(Schema):
    id: int
    at: datetime
    who: str
    action: str
    what: str


class Account(Schema):
    user: str
    role: Role
    tokens: list[TokenOut]


def session_of(request: HttpRequest, user: User) -> SessionOut:
    return SessionOut(user=user.username, role=role(user), csrf_token=get_token(request), program=COMMAND)


@router.get("/session", response=SessionOut, auth=None)
def get_session(request: HttpRequest) -> SessionOut:
    """The person who is logged in. Sets the CSRF cookie in any case: logging in needs it."""
    get_token(request)
    if not request.user.is_authenticated:
        raise AuthenticationError
    return session_of(request, request.user)


@router.get("/login", response=LoginWays, auth=None)
def get_login(request: HttpRequest) -> LoginWays:
    if not settings.OIDC_ISSUER:
        return LoginWays(provider=None)
    begin = reverse("openid_connect_login", args=["lab"])
    return LoginWays(provider=Provider(name=settings.OIDC_NAME, address=begin))


@router.post("/login", response=SessionOut, auth=None)
def log_in(request: HttpRequest, credentials: Credentials) -> SessionOut:
    refuse_forged(request)
    count(request, f"address {request.META.get('REMOTE_ADDR', '')}")
    user = authenticate(request, username=credentials.username, password=credentials.password)
    if user is None:
        raise HttpError(401, "Wrong user name or password: try again.")
    login(request, user)
    return session_of(request, user)


@router.post("/logout", response={204: None}, auth=person)
def log_out(request: HttpRequest) -> Status[None]:
    logout(request)
    return Status(204, None)


# Account: only from a browser, so that a stolen token cannot make others or lock its owner out ------------
@router.get("/account", response=Account, auth=person)
def get_account(request: UserRequest) -> Account:
    user = request.auth
    found = [TokenOut.from_orm(token) for token in ApiToken.objects.filter(user=user)]
    return Account(user=user.username, role=role(user), tokens=found)


@router.post("/account/password", response={204: None}, auth=person)
def change_password(request: UserRequest, change: PasswordChange) -> Status[None]:
    """Ends this person's other sessions; tokens stay valid. Wrong passwords count as wrong log-ins."""
    user = authenticate(request, username=request.auth.username, password=change.current)
    if user is None:
        raise SpecError("The current password is wrong: try again.", [("current", "is wrong")])
    try:
        validate_password(change.new, user)
    except ValidationError as error:
        raise SpecError(" ".join(error.messages), [("new", " ".join(error.messages))]) from error
    user.set_password(change.new)
    user.save(update_fields=["password"])
    update_session_auth_hash(request, user)
    audit.note(user, "changed the password")
    return Status(204, None)


@router.post("/account/tokens", response={201: NewToken}, auth=person)
def make_token(request: UserRequest, wanted: TokenIn) -> Status[NewToken]:
    token, secret = tokens.make(request.auth, wanted.name, wanted.role)
    audit.note(request.auth, "made a token", f"{token.name}, {token.role}")
    return Status(201, NewToken(secret=secret, **TokenOut.from_orm(token).dict()))


@router.delete("/account/tokens/{int:token_id}", response={204: None}, auth=person)
def revoke_token(request: UserRequest, token_id: int) -> Status[None]:
    name = tokens.revoke(request.auth, token_id)
    audit.note(request.auth, "revoked a token", name)
    return Status(204, None)


@router.get("/audit", response=list[AuditRow], auth=admin)
def get_audit(
    request: UserRequest,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[AuditEntry]:
    """The log of who did what, the newest line first; `before` is an id, for older lines."""
    entries = AuditEntry.objects.all()
    return list((entries if before is None else entries.filter(pk__lt=before))[:limit])
