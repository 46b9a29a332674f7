"""API tokens: made, shown once, stored as a digest, found again, revoked."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.models import F
from django.http import Http404
from django.utils import timezone

from engine.domain.errors import SpecError
from webapp.accounts.models import ApiToken, Bearer, Role
from webapp.accounts.roles import lower, role, role_named
from webapp.base.database import lock_timeout
from webapp.base.errors import Conflict

PREFIX = "loom_"
"""Says what a secret that is found somewhere belongs to."""
SECRET_BYTES = 32
HINT_CHARS = 10
MOST_TOKENS = 20
"""Most tokens of one user."""
USE_NOTED_EVERY = timedelta(minutes=1)
"""A program may send a hundred requests a second; the time of its last one needs no write for each."""
USE_NOTED_MS = 100
"""Nobody waits longer for another writer to have it noted."""


def make(user: User, name: str, wanted: Role) -> tuple[ApiToken, str]:
    """A new token and its secret, which nobody can read again. Raises `SpecError`, `Conflict`."""
    if lower(wanted, role(user)) != wanted:
        sentence = f"{user.username} is {role(user)}: a token cannot be {wanted}."
        raise SpecError(sentence, [("role", f"at most {role(user)}")])
    if user.api_tokens.count() >= MOST_TOKENS:
        raise Conflict(f"{user.username} has {MOST_TOKENS} tokens, which is the limit: revoke one first.")
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    token = ApiToken.objects.create(
        user=user, name=name, role=wanted, hint=secret[:HINT_CHARS], digest=digest_of(secret)
    )
    return token, secret


def revoke(user: User, token_id: int) -> str:
    """Returns the token's name. Raises `Http404` for a token that is not the user's."""
    token = user.api_tokens.filter(pk=token_id).first()
    if token is None:
        raise Http404(f"{user.username} has no token {token_id}")
    token.delete()
    return token.name


def bearer(secret: str) -> Bearer | None:
    """The person who acts with this secret; None if it is unknown or revoked, or its user may not log in any
    more.
    """
    digest = digest_of(secret)
    found = Bearer.objects.filter(api_tokens__digest=digest, is_active=True).annotate(
        token_role=F("api_tokens__role"), token_used_at=F("api_tokens__last_used_at")
    )
    user = next(iter(found), None)
    if user is None:
        return None
    now = timezone.now()
    if user.token_used_at is None or user.token_used_at < now - USE_NOTED_EVERY:
        with suppress(OperationalError), lock_timeout(USE_NOTED_MS):  # what can only be read may be read
            ApiToken.objects.filter(digest=digest).update(last_used_at=now)
    user.most = role_named(user.token_role)
    return user


def digest_of(secret: str) -> str:
    """The SHA-256 of a secret, which is enough for 256 random bits: nobody can try them all, as they could
    with passwords.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
