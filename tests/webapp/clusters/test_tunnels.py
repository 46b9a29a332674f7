"""The way from a worker to a board and back, with the whole application, Redis and the board's WebSocket."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import ExitStack
from functools import partial

import pytest
from django.db import OperationalError

from engine.domain.errors import SpecError
from tests.support.small_clusters import star
from tests.webapp.clusters.test_nodes import CAME_FROM, PATIENCE_S, Board, hello
from webapp.accounts.rates import Rates, rates
from webapp.base.redis import client
from webapp.clusters import node_socket, tunnels
from webapp.clusters.models import Node
from webapp.clusters.nodes import add
from webapp.clusters.tunnels import tunnels_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("live_redis")]


@pytest.fixture(autouse=True)
def nobody_has_said_anything() -> None:
    rates.buckets.clear()


def desk(*nodes: str):
    cluster = star(max(1, len(nodes)))
    devices = tuple(
        device.model_copy(update={"node": node}) for device, node in zip(cluster.devices, nodes, strict=True)
    )
    return cluster.model_copy(update={"devices": devices})


class Worker:
    """The worker's end, which waits in threads."""

    def __init__(self) -> None:
        self.stack = ExitStack()

    async def open(self, *nodes: str) -> list[socket.socket]:
        """Sockets from which what the server says of the boards, before they can, has been read."""
        socks = await asyncio.to_thread(self.stack.enter_context, tunnels_of(desk(*nodes), 7))
        self.origins = [json.loads(await read(sock)) for sock in socks]
        return socks

    async def close(self) -> None:
        await asyncio.to_thread(self.stack.close)


async def read(sock: socket.socket) -> bytes:
    return await asyncio.to_thread(sock.recv, 1 << 20)


@pytest.fixture
def token(transactional_db: None) -> str:
    from django.contrib.auth.models import User

    return add("desk-pi", User.objects.create(username="ada"))


async def joined(token: str) -> Board:
    board = Board(token)
    assert await board.join() == "desk-pi"
    return board


async def test_what_either_says_arrives_whole_and_in_order_and_the_end_is_told(token: str) -> None:
    board, worker = await joined(token), Worker()
    (sock,) = await worker.open("desk-pi")
    (origin,) = worker.origins
    assert (origin["type"], origin["address"]) == ("origin", CAME_FROM) and "127.0.0.1" in origin["own"]
    opened = await board.heard()
    assert opened["kind"] == "open" and opened["run"].startswith("7-")
    run = opened["run"]
    text = "x" * 500_000 + "\n"
    await asyncio.to_thread(sock.sendall, text.encode())
    got = ""
    while len(got) < len(text):
        message = await board.heard()
        assert (message["kind"], message["run"]) == ("pass", run)
        got += message["text"]
    assert got == text
    for part in ('{"type":', '"alive"}\n'):
        await board.say({"kind": "pass", "run": run, "text": part})
    back = b""
    while not back.endswith(b"\n"):
        back += await read(sock)
    assert back == b'{"type":"alive"}\n'
    await worker.close()
    assert await board.heard() == {"kind": "closed", "run": run, "rank": 0, "why": ""}
    await board.hang_up()
    assert not client().keys("node:up:*")


async def test_each_device_of_a_board_has_a_tunnel_of_its_own(token: str) -> None:
    board, worker = await joined(token), Worker()
    first, second = await worker.open("desk-pi", "desk-pi")
    opened = [await board.heard(), await board.heard()]
    assert [(one["kind"], one["rank"]) for one in opened] == [("open", 0), ("open", 1)]
    run = opened[0]["run"]
    assert opened[1]["run"] == run
    await board.say({"kind": "pass", "run": run, "rank": 1, "text": '"of the second"\n'})
    await board.say({"kind": "pass", "run": run, "rank": 0, "text": '"of the first"\n'})
    assert await read(first) == b'"of the first"\n' and await read(second) == b'"of the second"\n'
    await asyncio.to_thread(second.sendall, b'"to the second"\n')
    heard = await board.heard()
    assert (heard["kind"], heard["rank"], heard["text"]) == ("pass", 1, '"to the second"\n')
    await board.say({"kind": "closed", "run": run, "rank": 1, "why": "it is tired"})
    assert json.loads(await read(second))["words"] == "it is tired"
    await board.say({"kind": "pass", "run": run, "rank": 0, "text": '"it goes on"\n'})
    assert await read(first) == b'"it goes on"\n'
    await worker.close()
    await board.hang_up()


async def test_a_board_that_hangs_up_ends_its_tunnel_with_the_reason(token: str) -> None:
    board, worker = await joined(token), Worker()
    (sock,) = await worker.open("desk-pi")
    await board.heard()
    await board.hang_up()
    said = json.loads(await read(sock))
    assert said == {"type": "ended", "words": "its connection to the server has ended"}
    assert await read(sock) == b""
    await worker.close()


async def test_a_board_that_is_lost_within_a_line_has_not_said_it(token: str) -> None:
    board, worker = await joined(token), Worker()
    (sock,) = await worker.open("desk-pi")
    run = (await board.heard())["run"]
    for text in ('{"type": "ali', 've"}\n{"type": "trace", "it', "ems"):
        await board.say({"kind": "pass", "run": run, "text": text})
    await board.hang_up()
    got = b""
    while part := await read(sock):
        got += part
    first, last = map(json.loads, got.splitlines())
    assert first == {"type": "alive"}
    assert last == {"type": "ended", "words": "its connection to the server has ended"}
    await worker.close()


async def test_a_line_without_an_end_is_not_held_for_ever(token: str, monkeypatch) -> None:
    monkeypatch.setattr(tunnels, "LARGEST_LINE_BYTES", 10)
    board, worker = await joined(token), Worker()
    (sock,) = await worker.open("desk-pi")
    run = (await board.heard())["run"]
    for text in ("x" * 10, "y"):
        await board.say({"kind": "pass", "run": run, "text": text})
    assert await read(sock) == b"x" * 10 + b"y"
    await worker.close()
    await board.hang_up()


async def test_a_database_that_fails_ends_a_tunnel_with_the_reason(token: str, monkeypatch) -> None:
    def fails(node: Node) -> bool:
        raise OperationalError("the disk is full")

    monkeypatch.setattr(tunnels, "GONE_S", 0.0)
    monkeypatch.setattr(tunnels.nodes, "is_connected", fails)
    board, worker = await joined(token), Worker()
    monkeypatch.setattr(tunnels.nodes, "boards_of", lambda cluster: list(Node.objects.all()))
    (sock,) = await worker.open("desk-pi")
    assert "database does not say" in json.loads(await read(sock))["words"]
    assert await read(sock) == b""
    await worker.close()
    await board.hang_up()


async def test_a_board_that_refuses_the_run_says_why(token: str) -> None:
    board, worker = await joined(token), Worker()
    (sock,) = await worker.open("desk-pi")
    run = (await board.heard())["run"]
    await board.say({"kind": "closed", "run": run, "why": "it cannot start a process"})
    assert json.loads(await read(sock))["words"] == "it cannot start a process"
    await worker.close()
    await board.hang_up()


async def test_a_board_hears_that_its_run_is_over_when_redis_has_gone(token: str, monkeypatch) -> None:
    """The worker, which gives the run up, cannot say so."""
    board, worker = await joined(token), Worker()
    await worker.open("desk-pi")
    run = (await board.heard())["run"]
    monkeypatch.setattr(tunnels, "push", lambda *given: None)
    killed = [one["id"] for one in client().client_list() if one["cmd"] == "blpop"]
    for one in killed:
        client().client_kill_filter(_id=one)
    assert killed and await board.heard() == {"kind": "closed", "run": run, "rank": 0, "why": ""}
    await worker.close()
    await board.hang_up()


async def test_nothing_of_runs_that_a_board_was_not_asked_for_is_kept(token: str) -> None:
    board = await joined(token)
    for run in ("7-0", "8-ffffffff"):
        await board.say({"kind": "pass", "run": run, "text": "x"})
    await board.say(hello())
    await board.heard()
    assert not client().keys("node:up:*")
    await board.hang_up()


async def test_a_board_that_goes_on_with_a_run_that_is_over_is_to_call_again_and_may(
    token: str, monkeypatch
) -> None:
    """What it said before it knew is no fault of it: as much as that is dropped."""
    at_once = partial(Rates.spend, rates, now_s=0.0)  # however long this machine takes
    monkeypatch.setattr(rates, "spend", lambda who, limit, now_s: at_once(who, limit))
    board = await joined(token)
    late = {"kind": "pass", "run": "7-0", "text": "x"}
    await board.say(*[late] * (node_socket.PER_MINUTE + 1))
    await board.say(hello())
    assert (await board.heard())["kind"] == "welcome"
    await board.say(*[late] * node_socket.LATE_PER_MINUTE)
    assert (await board.receive_output(PATIENCE_S))["code"] == 1013
    await board.hang_up()
    again = await joined(token)
    await again.hang_up()


async def test_a_board_that_takes_nothing_ends_its_tunnel(token: str, monkeypatch) -> None:
    """Its WebSocket's process has stopped: what is for it waits in Redis, up to a limit."""
    board, worker = await joined(token), Worker()
    (sock,) = await worker.open("desk-pi")
    run = (await board.heard())["run"]
    await board.hang_up()
    assert json.loads(await read(sock))["type"] == "ended"
    await worker.close()
    monkeypatch.setattr(tunnels, "MOST_WAITING", 0)
    monkeypatch.setattr(tunnels, "FULL_S", 0.1)
    board, worker = await joined(token), Worker()
    (sock,) = await worker.open("desk-pi")
    assert (await board.heard())["run"] != run
    await asyncio.to_thread(sock.sendall, b"x")
    assert "has taken nothing" in json.loads(await read(sock))["words"]
    await worker.close()
    await board.hang_up()


@pytest.mark.parametrize(
    ("node", "words"), [("other-pi", "which this server does not know"), ("desk-pi", "has never joined")]
)
def test_a_board_that_is_away_or_unknown_is_named(token: str, node: str, words: str) -> None:
    with pytest.raises(SpecError, match=words), tunnels_of(desk(node), 7):
        pass
