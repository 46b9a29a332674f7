"""A body that is too long is refused while it arrives, through the whole application."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator

from tests.support.web import Browser, person
from webapp.asgi import application
from webapp.http import body_limit

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_S = 600


def cookie_of(name: str, role: str) -> str:
    person(name, role)
    browser = Browser()
    browser.log_in(name)
    return f"edgeloom_session={browser.client.cookies['edgeloom_session'].value}"


async def answer(path: str, chunks: list[bytes], cookie: str = "", **headers: str) -> tuple[int, Any, int]:
    """Status, body, and how many chunks were not taken any more."""
    given = {"host": "localhost", "cookie": cookie, **headers}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 5),
        "server": ("localhost", 80),
    }
    communicator = ApplicationCommunicator(application, scope)
    for number, chunk in enumerate(chunks, 1):
        more = number < len(chunks)
        await communicator.send_input({"type": "http.request", "body": chunk, "more_body": more})
    started = await communicator.receive_output(PATIENCE_S)
    body = await communicator.receive_output(PATIENCE_S)
    await communicator.wait(PATIENCE_S)
    return started["status"], json.loads(body["body"]), communicator.input_queue.qsize()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr(body_limit, "MOST_BYTES", 1000)
    monkeypatch.setattr(body_limit, "FORM_BYTES", 0)
    settings.MODEL_BYTES = 5000


@pytest.mark.parametrize("length", ["1001", "9" * 5000, "-1", "many"])
async def test_a_length_over_the_limit_is_refused_before_the_body_comes(small: None, length: str) -> None:
    status, body, _ = await answer("/api/login", [], content_length=length)
    assert status == 413 and body["fields"] == [] and "1,000 bytes" in body["detail"]


async def test_below_v1_a_refusal_has_openais_form(small: None) -> None:
    status, body, _ = await answer("/v1/chat/completions", [b"x" * 600] * 5)
    assert status == 413 and set(body) == {"error"}
    assert body["error"]["type"] == "invalid_request_error" and "1,000 bytes" in body["error"]["message"]


async def test_a_body_without_a_length_is_cut_off_at_the_limit(small: None) -> None:
    status, _, left = await answer("/api/login", [b"x" * 600] * 5)
    assert (status, left) == (413, 3)


async def test_a_body_within_the_limit_reaches_the_api(small: None) -> None:
    status, body, _ = await answer("/api/runs", [b"x" * 500] * 2)
    assert status == 401 and body["detail"].startswith("Nobody is logged in")


@pytest.mark.parametrize(
    ("role", "sent", "expected"),
    [("operator", 4000, 403), ("operator", 6000, 413), ("viewer", 4000, 413), ("", 4000, 413)],
)
async def test_only_who_may_add_a_model_sends_so_much(
    small: None, role: str, sent: int, expected: int
) -> None:
    """403: without a CSRF token, the API refuses what this limit lets through."""
    cookie = await asyncio.to_thread(cookie_of, "ann", role) if role else ""
    status, _, _ = await answer("/api/models", [b"x" * sent], cookie)
    assert status == expected
