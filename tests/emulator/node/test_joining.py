"""A node dials, says who it is, and knows when to call again and when to give up with a sentence."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from emulator.calibration import known
from emulator.calibration.known import host_name
from emulator.node import joining
from emulator.node.joining import Joining, address_of
from engine.domain.calibration import Calibration
from engine.domain.cluster import DeviceSpec
from engine.domain.errors import EdgeLoomError, HostError, SpecError
from tests.support.host_profiles import a_profile

FOUND = Calibration(
    profile=a_profile(host_name()),
    device=DeviceSpec(name="this-machine", flop_per_s=1e11, memory_bytes=1e9, memory_byte_per_s=1e10),
)
WELCOME = '{"kind": "welcome", "name": "desk-pi"}'
Answer = Callable[[ServerConnection], Awaitable[None]]


@pytest.fixture(autouse=True)
def measured_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    known.keep(FOUND, {})
    monkeypatch.setattr(joining, "BEAT_S", 0.01)


@asynccontextmanager
async def serving(answer: Answer, port: int = 0, **more: Any) -> AsyncIterator[int]:
    """The port of a server that answers calls so."""
    async with serve(answer, "127.0.0.1", port, **more) as server:
        yield server.sockets[0].getsockname()[1]


class Said(list[str]):
    def __call__(self, sentence: str) -> None:
        self.append(sentence)


async def given_up(port: int, said: Said, scheme: str = "http") -> EdgeLoomError:
    with pytest.raises(EdgeLoomError) as caught:
        await Joining(f"{scheme}://127.0.0.1:{port}", "node_secret", said).stay()
    assert str(caught.value).count("\n") == 0 and str(caught.value).endswith(".")
    return caught.value


async def test_a_node_says_who_it_is_then_its_row_once_and_signs_of_life_with_its_token() -> None:
    heard: list[dict[str, Any]] = []

    async def answer(socket: ServerConnection) -> None:
        assert socket.request.path == "/ws/node/"
        assert socket.request.headers["Authorization"] == "Bearer node_secret"
        heard.append(json.loads(await socket.recv()))
        await socket.send(WELCOME)
        while [one["kind"] for one in heard].count("beat") < 4 or "measured" not in str(heard):
            heard.append(json.loads(await socket.recv()))
        await socket.send('{"kind": "refused", "sentence": "Enough."}')

    said = Said()
    async with serving(answer) as port:
        assert str(await given_up(port, said)) == "Enough."
    assert heard[0]["kind"] == "hello" and heard[0]["processor"] == host_name()
    rows = [one["calibration"] for one in heard if one["kind"] == "measured"]
    assert [Calibration.parse(row, "row") for row in rows] == [FOUND]
    assert said == [f"Joined: http://127.0.0.1:{port} calls this machine desk-pi."]


async def test_a_refusal_is_heard_although_the_server_hung_up_right_after_it() -> None:
    async def answer(socket: ServerConnection) -> None:
        await socket.send('{"kind": "refused", "sentence": "The token lapsed."}')
        await socket.close(4400, "refused")

    async with serving(answer) as port:
        assert str(await given_up(port, Said())) == "The token lapsed."


async def test_a_node_calls_again_until_a_server_that_restarts_is_back(monkeypatch) -> None:
    async def welcome(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(WELCOME)
        await socket.recv()
        await socket.close(1012, "restarts")

    async def refuse(socket: ServerConnection) -> None:
        await socket.send('{"kind": "refused", "sentence": "Enough."}')

    async def restart(port: int) -> None:
        while not said:
            await asyncio.sleep(0.001)
        first.close()
        await first.wait_closed()
        while len(said) < 2:
            await asyncio.sleep(0.001)
        async with serving(refuse, port):
            await done.wait()

    monkeypatch.setattr("websockets.asyncio.client.backoff", lambda: iter(lambda: 0.01, None))
    said, done = Said(), asyncio.Event()
    first = await serve(welcome, "127.0.0.1", 0)
    port = first.sockets[0].getsockname()[1]
    again = asyncio.create_task(restart(port))
    assert str(await given_up(port, said)) == "Enough."
    done.set()
    await again
    assert (
        said[1] == f"http://127.0.0.1:{port} has gone: it is called again until it answers. Ctrl-C ends that."
    )


async def test_a_server_that_never_was_there_is_not_called_again() -> None:
    async with serving(lambda socket: socket.wait_closed()) as port:
        pass  # nothing listens there any more
    error = await given_up(port, Said())
    assert isinstance(error, HostError) and "does not answer" in str(error)


async def test_an_address_without_nodes_is_named_with_its_status() -> None:
    def nowhere(socket: ServerConnection, request: Any) -> Any:
        return socket.respond(HTTPStatus.NOT_FOUND, "nothing here")

    async with serving(lambda socket: socket.wait_closed(), process_request=nowhere) as port:
        assert "HTTP status 404" in str(await given_up(port, Said()))


async def test_https_where_the_server_speaks_http_ends_in_a_sentence() -> None:
    async with serving(lambda socket: socket.wait_closed()) as port:
        assert "http or https" in str(await given_up(port, Said(), "https"))


async def test_a_certificate_that_is_not_trusted_is_called_that_and_the_call_not_repeated() -> None:
    error = ssl.SSLCertVerificationError("self-signed certificate")
    assert "its certificate is not trusted" in str(Joining("https://a", "", Said())._final(error))


@pytest.mark.parametrize(
    "text", ["nonsense", "[]", '{"kind": "welcome", "name": "Not A Name"}', "[" * 50_000]
)
async def test_what_no_server_of_ours_says_ends_in_a_sentence(text) -> None:
    async def answer(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(text)
        await socket.wait_closed()

    async with serving(answer) as port:
        assert isinstance(await given_up(port, Said()), SpecError)


async def test_a_calibration_that_fails_ends_the_node_with_the_reason(monkeypatch) -> None:
    def fails(*given: Any, **more: Any) -> None:
        raise HostError("Calibrating this machine failed: no memory.")

    async def answer(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(WELCOME)
        await socket.wait_closed()

    known.calibration_file().unlink()
    monkeypatch.setattr(joining, "calibrate_host", fails)
    async with serving(answer) as port:
        assert "no memory" in str(await given_up(port, Said()))


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("https://loom.example", "wss://loom.example/ws/node/"),
        ("http://10.0.0.5:8000/", "ws://10.0.0.5:8000/ws/node/"),
        ("http://[fe80::1]:8000", "ws://[fe80::1]:8000/ws/node/"),
        ("10.0.0.5:8000", "ws://10.0.0.5:8000/ws/node/"),
        ("https://loom.example/machines", "wss://loom.example/ws/node/"),
    ],
)
def test_an_address_of_a_page_is_that_of_its_server(server: str, address: str) -> None:
    assert address_of(server) == address


@pytest.mark.parametrize("server", ["", "ftp://loom.example", "https://", "http://a:port", "http://[::1"])
def test_what_is_no_address_is_refused(server: str) -> None:
    with pytest.raises(SpecError, match="is no address of a server"):
        address_of(server)
