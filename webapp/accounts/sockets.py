"""Decides who may open a WebSocket, and for how long: the checks that Django's middleware makes for requests.

A browser sends its cookies to this server from any page, so the page's origin must be this site: scheme, host
and port. A program sends an API token instead, which no page can make a browser send.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http.cookies import CookieError
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.db import Error
from django.http import parse_cookie
from django.http.request import split_domain_port, validate_host

from webapp.accounts import tokens

CHECK_S = 5.0
"""An open socket is closed so long after a log-out, or after the end of a token or an account."""
ENDED = 4401
"""Close code of a socket whose person may not look any more."""

Scope = dict[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


class Guard:
    """ASGI middleware: refuses a handshake for another host, from another origin, or of nobody (403)."""

    def __init__(self, inner: App):
        self.inner = inner

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        headers = headers_of(scope)
        user = None
        if is_own_host(headers) and (authorization(headers) or is_own_origin(scope, headers)):
            user = await database_sync_to_async(who)(scope)
        if user is None:
            await send({"type": "websocket.close"})  # before accept: the handshake is answered with 403
            return
        await self.inner(scope | {"user": user}, receive, send)


def who(scope: Scope) -> User | None:
    """The person whose token or session the handshake has, if it is valid now."""
    headers = headers_of(scope)
    kind, _, secret = authorization(headers).partition(" ")
    if kind:
        return tokens.bearer(secret.strip()) if kind.lower() == "bearer" else None
    try:
        key = parse_cookie(headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return None
    session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user: Any = get_user(SimpleNamespace(session=session))  # type: ignore[arg-type]
    return user if user.is_authenticated else None


def may_stay(scope: Scope) -> bool:
    """Whether the socket may stay open. A database that does not answer just now ends nothing."""
    try:
        return who(scope) is not None
    except Error:
        return True


def headers_of(scope: Scope) -> dict[str, str]:
    return {name.decode("latin1").lower(): value.decode("latin1") for name, value in scope["headers"]}


def authorization(headers: dict[str, str]) -> str:
    """What a program sends: an empty header is none, and what comes with it may come from any page."""
    return headers.get("authorization", "").strip()


async def nowhere(scope: Scope, receive: Any, send: Any) -> None:
    """Refuses a handshake for a path that does not exist (403)."""
    await send({"type": "websocket.close"})


def is_own_host(headers: dict[str, str]) -> bool:
    """Whether the request is for a host name that this server answers to, as `ALLOWED_HOSTS` says."""
    domain, _ = split_domain_port(headers.get("host", ""))
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def is_own_origin(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether the page that opens the socket is of this site, or of one in `CSRF_TRUSTED_ORIGINS`."""
    forwarded = settings.HTTPS and headers.get("x-forwarded-proto") == "https"
    scheme = "https" if forwarded or scope.get("scheme") == "wss" else "http"
    origin = headers.get("origin", "").lower()
    return origin == f"{scheme}://{headers['host']}".lower() or origin in settings.CSRF_TRUSTED_ORIGINS
