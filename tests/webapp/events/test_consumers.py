"""The WebSocket of a run, through the whole application: origin, session, routing, feed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import InterfaceError, OperationalError

from engine.domain.events import EVENTS, Event, Logged
from tests.support.web import Browser, RedisServer, person, recorded
from tests.webapp.events.test_live import in_pieces, new_run, published
from webapp.accounts import sockets, tokens
from webapp.accounts.models import ApiToken
from webapp.asgi import application
from webapp.events import tail
from webapp.events.publisher import Publisher
from webapp.jobs.lease import owner_of
from webapp.runs import services
from webapp.runs.models import Run

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]
PATIENCE_S = 600


@pytest.fixture
def cookie(transactional_db: None) -> str:
    """victor's session cookie: viewers may watch."""
    person("victor", "viewer")
    browser = Browser()
    browser.log_in("victor")
    return f"edgeloom_session={browser.client.cookies['edgeloom_session'].value}"


class Socket(ApplicationCommunicator):
    """A client's end of the WebSocket, in the messages of ASGI."""

    async def connect(self) -> bool:
        await self.send_input({"type": "websocket.connect"})
        message = await self.receive_output(PATIENCE_S)
        return message["type"] == "websocket.accept"

    async def frame(self) -> dict[str, Any]:
        return json.loads((await self.receive_output(PATIENCE_S))["text"])

    async def frames(self, enough: int) -> list[dict[str, Any]]:
        """Frames until together they have `enough` events."""
        found: list[dict[str, Any]] = []
        while sum(len(frame["events"]) for frame in found) < enough:
            found.append(await self.frame())
        return found

    async def close_code(self) -> int:
        while True:
            message = await self.receive_output(PATIENCE_S)
            if message["type"] == "websocket.close":
                return message["code"]

    async def disconnect(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(PATIENCE_S)


def socket(run_id: int, cookie: str = "", since: str = "0", **changed: str) -> Socket:
    given = {"host": "localhost:8000", "origin": "http://localhost:8000", "cookie": cookie} | changed
    headers = [(name.encode(), value.encode()) for name, value in given.items() if value]
    return Socket(
        application,
        {
            "type": "websocket",
            "path": f"/ws/runs/{run_id}",
            "query_string": f"since={since}".encode(),
            "headers": headers,
            "subprotocols": [],
        },
    )


def events_in(found: list[dict[str, Any]]) -> list[Event]:
    return EVENTS.validate_python([event for frame in found for event in frame["events"]])


def publish_all(run: Run, events: list[Event], size: int = 50) -> None:
    with Publisher(owner_of(run)) as publisher:
        for piece in in_pieces(events, size):
            published(publisher, piece)


async def test_a_socket_without_a_session_is_refused(live_redis) -> None:
    run = await asyncio.to_thread(new_run)
    assert not await socket(run.pk).connect()


async def test_a_socket_from_a_foreign_page_is_refused(live_redis, cookie: str) -> None:
    run = await asyncio.to_thread(new_run)
    assert not await socket(run.pk, cookie, origin="http://evil.example").connect()


@pytest.mark.parametrize(
    "changed",
    [
        {"origin": "http://localhost:9000"},  # another program of this machine
        {"origin": "https://localhost:8000"},
        {"origin": "null"},
        {"origin": ""},
        {"host": "evil.example:8000", "origin": "http://evil.example:8000"},  # a name that leads here
        {"authorization": "Bearer loom_guess"},
        {"authorization": " ", "origin": "http://evil.example"},  # an empty one, which no program sends
        {"authorization": "Basic YWxpY2U6eA=="},
    ],
)
async def test_a_socket_needs_this_sites_host_scheme_and_port(live_redis, cookie: str, changed) -> None:
    run = await asyncio.to_thread(new_run)
    assert not await socket(run.pk, cookie, **changed).connect()


async def test_a_path_that_does_not_exist_is_refused(live_redis, cookie: str) -> None:
    communicator = socket(1, cookie)
    communicator.scope["path"] = "/ws/nowhere"
    assert not await communicator.connect()


async def test_a_trusted_origin_may_open_a_socket(live_redis, cookie: str, settings) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://lab.example"]
    run = await asyncio.to_thread(new_run)
    communicator = socket(run.pk, cookie, origin="https://lab.example")
    assert await communicator.connect()
    await communicator.disconnect()


async def test_behind_https_the_page_is_https(live_redis, cookie: str, settings) -> None:
    settings.HTTPS = True
    run = await asyncio.to_thread(new_run)
    proxied = {"x-forwarded-proto": "https", "origin": "https://localhost:8000"}
    communicator = socket(run.pk, cookie, **proxied)
    assert await communicator.connect()
    await communicator.disconnect()
    assert not await socket(run.pk, cookie, **{**proxied, "origin": "http://localhost:8000"}).connect()


def log_out(secret: str) -> None:
    Session.objects.all().delete()


def end_the_account(secret: str) -> None:
    User.objects.update(is_active=False)


def change_the_password(secret: str) -> None:
    user = User.objects.get()
    user.set_password("anvil basket 77")
    user.save()


def revoke_the_token(secret: str) -> None:
    ApiToken.objects.all().delete()


@pytest.mark.parametrize(
    ("with_token", "end"),
    [
        (False, log_out),
        (False, end_the_account),
        (False, change_the_password),
        (True, revoke_the_token),
        (True, end_the_account),
    ],
)
async def test_an_open_socket_ends_with_what_opened_it(
    live_redis, cookie: str, monkeypatch: pytest.MonkeyPatch, with_token: bool, end: Callable[[str], None]
) -> None:
    monkeypatch.setattr("webapp.accounts.sockets.CHECK_S", 0.05)
    run = await asyncio.to_thread(new_run)
    secret = await asyncio.to_thread(lambda: tokens.make(User.objects.get(), "script", "viewer")[1])
    opened_by = {"authorization": f"Bearer {secret}", "origin": ""} if with_token else {"cookie": cookie}
    communicator = socket(run.pk, **opened_by)
    assert await communicator.connect()
    assert await communicator.frame() is not None
    await asyncio.to_thread(end, secret)
    assert await communicator.close_code() == 4401
    await communicator.disconnect()


@pytest.mark.parametrize("failure", [OperationalError, InterfaceError])
def test_a_database_that_does_not_answer_ends_no_socket_and_no_watch(monkeypatch, failure) -> None:
    """PostgreSQL's driver raises `InterfaceError` for a connection that was closed."""

    def fails(scope) -> None:
        raise failure("closed")

    monkeypatch.setattr(sockets, "who", fails)
    assert sockets.may_stay({})


async def test_a_live_run_is_seen_as_it_happens(live_redis, cookie: str) -> None:
    events, _ = await asyncio.to_thread(recorded)
    run = await asyncio.to_thread(new_run)
    communicator = socket(run.pk, cookie)
    assert await communicator.connect()
    publishing = asyncio.create_task(asyncio.to_thread(publish_all, run, events))
    found = await communicator.frames(len(events))
    await publishing
    await communicator.disconnect()
    assert events_in(found) == events
    assert all(frame["server_time"] > 1e9 for frame in found)


async def test_reconnecting_with_the_last_cursor_loses_nothing_and_repeats_nothing(
    live_redis, cookie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.events.consumers.FRAME_CHARS", 500)
    events, _ = await asyncio.to_thread(recorded)
    run = await asyncio.to_thread(new_run)
    publishing = asyncio.create_task(asyncio.to_thread(publish_all, run, events, 10))
    seen: list[dict[str, Any]] = []
    cursor = "0"
    connections = 0
    while len(seen) < len(events):
        communicator = socket(run.pk, cookie, since=cursor)
        assert await communicator.connect()
        connections += 1
        for frame in await communicator.frames(1):
            seen += frame["events"]
            cursor = frame["cursor"]
        await communicator.disconnect()
    await publishing
    assert EVENTS.validate_python(seen) == events
    assert connections > 5


async def test_a_finished_run_is_replayed_from_its_archive(live_redis, cookie: str) -> None:
    events, _ = await asyncio.to_thread(recorded)
    run = await asyncio.to_thread(new_run)
    await asyncio.to_thread(publish_all, run, events)
    live_redis.delete(f"run:{run.pk}")
    communicator = socket(run.pk, cookie)
    assert await communicator.connect()
    assert events_in(await communicator.frames(len(events))) == events
    await communicator.disconnect()


async def test_silence_is_filled_with_heartbeats_that_keep_the_cursor(
    live_redis, cookie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "HEARTBEAT_S", 0.05)
    run = await asyncio.to_thread(new_run)
    await asyncio.to_thread(publish_all, run, [Logged(level="info", text="hello")])
    communicator = socket(run.pk, cookie)
    assert await communicator.connect()
    at_once, *beats, first = await communicator.frames(1)  # a busy host may be silent between the two
    assert (at_once["cursor"], at_once["events"], at_once["head"]) == ("0", [], first["cursor"])
    assert {beat["cursor"] for beat in beats} <= {"0"}
    for _ in range(3):
        beat = await communicator.frame()
        assert beat["events"] == [] and beat["cursor"] == first["cursor"]
    await communicator.disconnect()


async def test_a_long_history_comes_in_several_frames(live_redis, cookie: str, monkeypatch) -> None:
    monkeypatch.setattr("webapp.events.consumers.FRAME_CHARS", 500)
    events, _ = await asyncio.to_thread(recorded)
    run = await asyncio.to_thread(new_run)
    await asyncio.to_thread(publish_all, run, events, 5)
    communicator = socket(run.pk, cookie)
    assert await communicator.connect()
    found = await communicator.frames(len(events))
    await communicator.disconnect()
    assert events_in(found) == events
    assert len(found) > 10
    # the client can tell how far the past goes: up to the last of these frames
    assert {frame["head"] for frame in found} == {found[-1]["cursor"]}


@pytest.mark.parametrize("since", ["yesterday", "-1", "1.5", "%C2%B2", "%FF", "9" * 5000, "9" * 19])
async def test_a_bad_cursor_closes_the_socket(live_redis, cookie: str, since: str) -> None:
    run = await asyncio.to_thread(new_run)
    communicator = socket(run.pk, cookie, since=since)
    assert await communicator.connect()
    assert await communicator.close_code() == 4400


@pytest.mark.parametrize("run_id", [4711, 10**30])
async def test_an_unknown_run_closes_the_socket(live_redis, cookie: str, run_id: int) -> None:
    communicator = socket(run_id, cookie)
    assert await communicator.connect()
    assert await communicator.close_code() == 4404


async def test_deleting_the_run_closes_its_sockets(live_redis, cookie: str, monkeypatch) -> None:
    monkeypatch.setattr(tail, "HEARTBEAT_S", 0.05)
    run = await asyncio.to_thread(new_run, "finished")
    communicator = socket(run.pk, cookie)
    assert await communicator.connect()
    await asyncio.to_thread(services.delete, run)
    assert await communicator.close_code() == 4404


async def test_without_redis_a_live_socket_says_try_again_later(own_redis: RedisServer, cookie: str) -> None:
    run = await asyncio.to_thread(new_run)
    communicator = socket(run.pk, cookie)
    assert await communicator.connect()
    await asyncio.to_thread(own_redis.stop)
    assert await communicator.close_code() == 1013
