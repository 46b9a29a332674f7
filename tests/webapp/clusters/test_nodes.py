"""Boards join over their WebSocket, with the whole application: tokens, what they say, and the palette."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.db import OperationalError
from django.utils import timezone

from engine.domain.node_messages import LARGEST_BYTES, PROTOCOL
from tests.support.web import Browser, person
from tests.webapp.clusters.test_machines import BOARD
from webapp.accounts.rates import Rates, rates
from webapp.asgi import application
from webapp.clusters import node_socket, nodes
from webapp.clusters.models import Node

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_S = 600
CALIBRATION = json.loads(BOARD.to_json())
BEAT = {
    "kind": "beat",
    "load_1min": 0.25,
    "available_bytes": 3e9,
    "temperature_celsius": 47.5,
    "frequency_hz": 1.5e9,
    "doing": "",
}


def hello(**changed: Any) -> dict[str, Any]:
    return {
        "kind": "hello",
        "protocol": PROTOCOL,
        "edgeloom": "0.4.0",
        "torch": "2.13.0",
        "python": "3.11.7",
        "host": "pi",
        "processor": "Raspberry Pi 4 Model B Rev 1.4",
        "architecture": "aarch64",
        "cores": 4,
        "memory_bytes": 4e9,
        "clock_s": time.time(),
    } | changed


BUSY = CALIBRATION | {"profile": CALIBRATION["profile"] | {"core_frac": 0.5}}
MEASURED = {"kind": "measured", "calibration": BUSY}
"""Beside other work."""

CAME_FROM = "192.0.2.7"


class Board(ApplicationCommunicator):
    """A board's end of the WebSocket, in the messages of ASGI."""

    def __init__(self, token: str, host: str = "localhost:8000"):
        headers = [(b"host", host.encode()), (b"authorization", f"Bearer {token}".encode())]
        scope = {"type": "websocket", "path": "/ws/node/", "query_string": b"", "headers": headers}
        super().__init__(application, scope | {"subprotocols": [], "client": [CAME_FROM, 50_000]})

    async def call(self) -> None:
        await self.send_input({"type": "websocket.connect"})
        assert (await self.receive_output(PATIENCE_S))["type"] == "websocket.accept"

    async def say(self, *messages: Any) -> None:
        for message in messages:
            text = message if isinstance(message, str) else json.dumps(message)
            await self.send_input({"type": "websocket.receive", "text": text})

    async def heard(self) -> dict[str, Any]:
        return json.loads((await self.receive_output(PATIENCE_S))["text"])

    async def refusal(self) -> str:
        """What is said before the server hangs up."""
        message = await self.heard()
        assert message["kind"] == "refused"
        assert (await self.receive_output(PATIENCE_S))["code"] == 4400
        await self.hang_up()
        return message["sentence"]

    async def join(self) -> str:
        await self.call()
        await self.say(hello())
        welcome = await self.heard()
        return welcome["name"]

    async def hang_up(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(PATIENCE_S)


@pytest.fixture(autouse=True)
def nobody_has_said_anything() -> None:
    rates.buckets.clear()


@pytest.fixture
def operator(transactional_db: None) -> Browser:
    person("ada", "operator")
    browser = Browser()
    browser.log_in("ada")
    return browser


@pytest.fixture
def token(operator: Browser) -> str:
    return operator.post("/nodes", {"name": "desk-pi"}).json()["token"]


async def listed(browser: Browser) -> dict[str, Any]:
    (row,) = (await asyncio.to_thread(browser.get, "/nodes")).json()
    return row


async def names(browser: Browser) -> list[str]:
    presets = (await asyncio.to_thread(browser.get, "/catalogue")).json()["presets"]
    return [preset["name"] for preset in presets]


async def caught_up(board: Board) -> None:
    """Until the server has read all that this board has said: it reads in order, and answers a hello."""
    await board.say(hello())
    await board.heard()


async def test_a_board_joins_is_shown_with_signs_of_life_and_is_a_device_of_the_palette(
    operator, token
) -> None:
    row = await listed(operator)
    assert (row["connected"], row["hello"], row["device"]) == (False, None, None)
    board = Board(token)
    assert await board.join() == "desk-pi"
    await board.say(BEAT, MEASURED)
    await board.say({**BEAT, "kind": "nothing"})  # its answer tells that all before is kept
    assert "expected one of hello, beat, measured" in await board.refusal()
    row = await listed(operator)
    assert row["hello"]["processor"] == "Raspberry Pi 4 Model B Rev 1.4" and row["hello"]["cores"] == 4
    assert row["beat"] == BEAT
    assert (row["device"]["name"], row["device"]["flop_per_s"]) == ("desk-pi", 7e9)
    assert "with a core for 50%" in row["caution"]
    assert row["connected"] is False and row["seen_at"] is not None, "it has hung up"
    assert "desk-pi" in await names(operator)


async def test_a_board_is_connected_until_it_hangs_up(operator, token) -> None:
    board = Board(token)
    await board.join()
    assert (await listed(operator))["connected"] is True
    await board.hang_up()
    assert (await listed(operator))["connected"] is False


async def test_a_board_that_was_silent_for_long_is_not_connected_although_nobody_hung_up(
    operator, token
) -> None:
    """As after a server that lost its power."""
    board = Board(token)
    await board.join()
    long_ago = timezone.now() - timedelta(minutes=1)
    await asyncio.to_thread(lambda: Node.objects.update(seen_at=long_ago))
    assert (await listed(operator))["connected"] is False
    await board.hang_up()


async def test_a_silent_board_is_hung_up_on(token, monkeypatch) -> None:
    monkeypatch.setattr(node_socket, "SILENT_S", 0.05)
    board = Board(token)
    await board.call()
    assert (await board.receive_output(PATIENCE_S))["code"] == 4408
    await board.hang_up()


@pytest.mark.parametrize("said", ["", "node_guess", "loom_guess", "\udcff"])
async def test_an_unknown_token_is_refused_and_not_logged(token, caplog, said) -> None:
    board = Board("")
    board.scope["headers"] = [
        (b"host", b"localhost:8000"),
        (b"authorization", b"Bearer " + said.encode(errors="surrogateescape")),
    ]
    with caplog.at_level(logging.INFO):
        await board.call()
        assert "unknown or was revoked" in await board.refusal()
    assert "guess" not in caplog.text


async def test_the_token_of_a_person_joins_nothing_and_that_of_a_board_reads_nothing(operator, token) -> None:
    own = (await asyncio.to_thread(operator.post, "/account/tokens", {"name": "script"})).json()["secret"]
    board = Board(own)
    await board.call()
    assert "unknown or was revoked" in await board.refusal()
    answer = await asyncio.to_thread(
        lambda: Browser().client.get("/api/nodes", headers={"Authorization": f"Bearer {token}"})
    )
    assert answer.status_code == 401


async def test_a_server_does_not_answer_to_other_names(token) -> None:
    board = Board(token, host="evil.example")
    await board.call()
    assert "evil.example: add that to ALLOWED_HOSTS" in await board.refusal()


@pytest.mark.parametrize(
    ("made", "seen", "lapsed"),
    [
        (timedelta(hours=23), None, False),
        (timedelta(hours=25), None, True),
        (timedelta(days=900), timedelta(days=89), False),
        (timedelta(days=900), timedelta(days=91), True),
    ],
)
async def test_a_token_lapses_a_day_after_it_was_made_unused_or_90_days_after_its_board_was_seen(
    token, made, seen, lapsed
) -> None:
    now = timezone.now()
    at = {"created_at": now - made, "seen_at": None if seen is None else now - seen}
    await asyncio.to_thread(lambda: Node.objects.update(**at))
    board = Board(token)
    await board.call()
    await board.say(hello())
    message = await board.heard()
    assert message["kind"] == ("refused" if lapsed else "welcome")
    assert not lapsed or "The token of desk-pi lapsed on" in message["sentence"]
    await board.hang_up()


async def test_revoking_ends_the_connection_at_the_next_sign_of_life(operator, token) -> None:
    board = Board(token)
    await board.join()
    await board.say(MEASURED)
    answer = await asyncio.to_thread(operator.delete, "/nodes/desk-pi")
    assert answer.status_code == 204
    await board.say(BEAT)
    assert "was revoked" in await board.refusal()
    assert "desk-pi" not in await names(operator)
    again = Board(token)
    await again.call()
    assert "unknown or was revoked" in await again.refusal()


async def test_a_second_process_with_the_same_token_takes_over(token) -> None:
    first, second = Board(token), Board(token)
    await first.join()
    await second.join()
    await first.say(BEAT)
    assert "another process has joined with it" in await first.refusal()
    await second.say(BEAT)
    await caught_up(second)
    assert await asyncio.to_thread(lambda: nodes.is_connected(Node.objects.get()))
    await second.hang_up()


WRONG = [
    ("", "no JSON"),
    ("nonsense", "no JSON"),
    ("[" * 100_000, "nested deeper"),
    ("[]", "kind 'list'"),
    (b"\xff".decode("latin1"), "no JSON"),
    ('{"kind": "beat", "load_1min": NaN}', "NaN"),
    (BEAT | {"available_bytes": -1}, "available_bytes"),
    (BEAT | {"available_bytes": 1e300}, "available_bytes"),
    (BEAT | {"temperature_celsius": "hot"}, "temperature_celsius"),
    (BEAT | {"doing": "x" * 201}, "doing"),
    (BEAT | {"doing": "a\0b"}, "NUL"),
    (BEAT | {"more": 1}, "more"),
    (hello(protocol=PROTOCOL + 1), f"version {PROTOCOL + 1} of the nodes' protocol"),
    ({"kind": "hello", "protocol": "nine", "new": "key"}, "install the same version of EdgeLoom"),
    (hello(clock_s=time.time() + 3600), "ahead of the server's"),
    (hello(clock_s=time.time() - 3600), "behind the server's"),
    (hello(cores=10**9), "cores"),
    (hello(memory_bytes=0), "memory_bytes"),
    ({"kind": "measured", "calibration": {}}, "profile"),
    ({"kind": "measured", "calibration": {"profile": {}, "device": {}}}, "profile"),
    ({"kind": "measured", "calibration": CALIBRATION | {"device": {}}}, "device"),
    ("x" * (LARGEST_BYTES + 1), "expected at most"),
]


@pytest.mark.parametrize(("said", "words"), WRONG, ids=[words for _, words in WRONG])
async def test_what_is_wrong_is_refused_in_a_sentence_and_changes_nothing(
    operator, token, said, words
) -> None:
    good = Board(await asyncio.to_thread(nodes.add, "good", await asyncio.to_thread(User.objects.get)))
    await good.join()
    before = await asyncio.to_thread(
        lambda: list(Node.objects.order_by("pk").values("hello", "beat", "device"))
    )
    board = Board(token)
    if isinstance(said, dict) and said["kind"] == "hello":
        await board.call()
    else:
        await board.join()
        before[0] = await asyncio.to_thread(
            lambda: Node.objects.values("hello", "beat", "device").get(name="desk-pi")
        )
    await board.say(said)
    sentence = await board.refusal()
    assert words in sentence and sentence.endswith(".") and len(sentence) < 500
    after = await asyncio.to_thread(
        lambda: list(Node.objects.order_by("pk").values("hello", "beat", "device"))
    )
    assert after == before
    await good.say(BEAT)
    await caught_up(good)
    await good.hang_up()


async def test_a_board_that_says_no_hello_is_refused(token) -> None:
    board = Board(token)
    await board.call()
    await board.say(BEAT)
    assert "joined" in await board.refusal()


async def test_too_many_messages_end_the_connection_and_calling_again_does_not_help(
    token, monkeypatch
) -> None:
    at_once = partial(Rates.spend, rates, now_s=0.0)  # however long this machine takes
    monkeypatch.setattr(rates, "spend", lambda who, limit, now_s: at_once(who, limit))
    board = Board(token)
    await board.call()
    await board.say(*[hello() for _ in range(node_socket.PER_MINUTE + 5)])
    for _ in range(node_socket.PER_MINUTE):
        assert (await board.heard())["kind"] == "welcome"
    assert "more than 60 things in a minute" in await board.refusal()
    again = Board(token)
    await again.call()
    await again.say(hello())
    assert "more than 60 things in a minute" in await again.refusal()


async def test_a_database_that_does_not_answer_asks_the_board_to_call_again(token, monkeypatch) -> None:
    board = Board(token)
    await board.join()

    def away(*given: Any) -> None:
        raise OperationalError("locked")

    monkeypatch.setattr(nodes, "heard", away)
    await board.say(BEAT)
    assert (await board.receive_output(PATIENCE_S))["code"] == 1013
    await board.hang_up()


# Over HTTP ----------------------------------------------------------------------------------------
def test_a_token_is_shown_once_and_its_digest_kept(operator, token) -> None:
    assert token not in json.dumps(operator.get("/nodes").json())
    assert token not in str(Node.objects.values().get())


@pytest.mark.parametrize("name", ["raspberry-pi-4", "desk-pi", "imported"])
def test_a_board_is_called_as_nothing_else_in_the_palette(operator, token, settings, tmp_path, name) -> None:
    settings.MACHINES_DIR = tmp_path
    (tmp_path / "imported.json").write_text(BOARD.to_json())
    answer = operator.post("/nodes", {"name": name})
    assert answer.status_code == 409 and name in answer.json()["detail"]


def test_an_imported_machine_is_not_called_as_a_board(operator, token, settings, tmp_path) -> None:
    settings.MACHINES_DIR = tmp_path
    answer = operator.post("/machines", {"name": "desk-pi", "calibration": CALIBRATION})
    assert answer.status_code == 409 and "desk-pi" in answer.json()["detail"]


def test_a_board_is_revoked_by_who_added_it(operator, token, alice) -> None:
    (row,) = alice.get("/nodes").json()
    assert row["locked"] == "Board desk-pi belongs to ada: ask them or an administrator."
    answer = alice.delete("/nodes/desk-pi")
    assert answer.status_code == 403 and "belongs to ada" in answer.json()["detail"]
    assert operator.delete("/nodes/desk-pi").status_code == 204
    assert operator.delete("/nodes/desk-pi").status_code == 404


def test_there_are_at_most_so_many_boards(operator, token, monkeypatch) -> None:
    monkeypatch.setattr(nodes, "MOST_NODES", 1)
    answer = operator.post("/nodes", {"name": "another"})
    assert answer.status_code == 409 and "revoke one first" in answer.json()["detail"]
