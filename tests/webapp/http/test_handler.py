"""What a request costs beside its view: changes between the event loop and threads, and questions to the
database.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from asgiref.testing import ApplicationCommunicator
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.web import person
from webapp.accounts import sockets, tokens
from webapp.asgi import application

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_S = 600


def secret_of(name: str) -> str:
    return tokens.make(person(name, "operator"), "a test", "operator")[1]


def headers_of(secret: str) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"localhost"), (b"authorization", f"Bearer {secret}".encode())]


async def status_of(path: str, secret: str) -> int:
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers_of(secret),
        "client": ("127.0.0.1", 5),
        "server": ("localhost", 80),
    }
    communicator = ApplicationCommunicator(application, scope)
    await communicator.send_input({"type": "http.request", "body": b""})
    started = await communicator.receive_output(PATIENCE_S)
    await communicator.receive_output(PATIENCE_S)
    await communicator.wait(PATIENCE_S)
    return int(started["status"])


async def test_a_request_goes_to_a_thread_and_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for its start, its response and its end each; with Django's own handler it is 15 times."""
    secret = await asyncio.to_thread(secret_of, "ann")
    calls = 0
    original = SyncToAsync.__call__

    async def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        return await original(self, *args, **kwargs)

    monkeypatch.setattr(SyncToAsync, "__call__", counted)
    assert await status_of("/api/clusters", secret) == 200
    assert calls <= 4


def test_whose_token_it_is_takes_one_question() -> None:
    """Two hundred open sockets ask that every few seconds."""
    secret = secret_of("ann")
    assert tokens.bearer(secret) is not None  # notes that the token was used
    with CaptureQueriesContext(connection) as asked:
        assert sockets.may_stay({"headers": headers_of(secret)})
    assert len(asked) == 1
