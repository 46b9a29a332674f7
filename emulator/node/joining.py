"""Keeps this machine a node of a server: dials out, says signs of life, and dials again when the server is
back.

The machine is calibrated once, beside the connection, and whatever happens to that: its row is said on each
new connection. A server that is away is called again until it answers, at longer and longer intervals; one
that refuses, or that never was there, ends the command with the reason.
"""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import threading
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from emulator.calibration.known import known_calibration, time_needed_s
from emulator.calibration.shapes import SHORT
from emulator.node import machine
from emulator.node.run_folders import remove_leftovers
from emulator.node.runs import DEFAULT, Allowed, NodeRuns
from emulator.session.calibrating import calibrate_host
from engine.domain.calibration import Calibration
from engine.domain.errors import Cancelled, EdgeLoomError, HostError, SpecError
from engine.domain.node_messages import (
    BEAT_S,
    PATH,
    SILENT_S,
    NodeClosed,
    NodeMeasured,
    NodeMessage,
    NodeOpen,
    NodePass,
    NodeRefused,
    NodeWelcome,
    server_message,
)
from engine.domain.units import human_s

LARGEST_ANSWER_BYTES = 1 << 20
SERVERS_FAULT = 500
"""The first status of HTTP that says that the same request may do later."""


def address_of(server: str) -> str:
    """Where the nodes of a server dial in, of the address that a browser has. Raises `SpecError`."""
    try:
        parts = urlsplit(server if "://" in server else f"http://{server}")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise SpecError(
            f"--join {server}: is no address of a server: give what the browser shows, as in "
            "https://loom.example:8000."
        )
    return f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}{PATH}"


class Joining:
    """One node of one server, from the first call to Ctrl-C. `say` gets a sentence for the person."""

    def __init__(self, server: str, token: str, say: Callable[[str], None], allowed: Allowed = DEFAULT):
        self.server, self.allowed = server, allowed
        self.address = address_of(server)
        self.token = token
        self.say = say
        self.name = ""
        self.was_reached = self.is_away = False
        self.doing = ""
        self.has_joined = asyncio.Event()
        self.ending = threading.Event()

    async def stay(self) -> None:
        """Be a node until this task is cancelled. Raises `EdgeLoomError`."""
        remove_leftovers()  # of a node that was killed
        calibration = asyncio.create_task(self._calibrated())
        calls = connect(
            self.address,
            additional_headers={"Authorization": f"Bearer {self.token}"},
            max_size=LARGEST_ANSWER_BYTES,
            process_exception=self._final,
        )
        try:
            async for socket in calls:
                self.was_reached = True
                try:
                    await self._speak(socket, calibration)
                except (ConnectionClosed, TimeoutError):
                    await self._last_words(socket)
                    self._say_away()
                    await asyncio.sleep(BEAT_S)
        finally:
            self.ending.set()
            if calibration.cancel():  # its thread ends by itself
                await asyncio.wait([calibration])

    async def _speak(self, socket: ClientConnection, calibration: asyncio.Task[Calibration]) -> None:
        """Say who this is, then signs of life for as long as the connection lasts."""
        await socket.send(machine.hello().model_dump_json())
        async with asyncio.timeout(SILENT_S):
            self._take(await socket.recv())

        async def send(message: NodeMessage) -> None:
            await socket.send(message.model_dump_json())

        runs = NodeRuns(self.allowed, send)
        try:
            await self._listen(socket, calibration, runs)
        finally:
            await runs.end()

    async def _listen(
        self, socket: ClientConnection, calibration: asyncio.Task[Calibration], runs: NodeRuns
    ) -> None:
        said, beats_s, address = False, 0.0, socket.local_address[0]
        while True:
            if calibration.done() and not said:
                found = json.loads(calibration.result().as_in_runs().to_json())
                await socket.send(NodeMeasured(calibration=found).model_dump_json())
                said = True
            if (left_s := beats_s - time.monotonic()) <= 0:
                await socket.send(machine.beat(self.doing or runs.doing).model_dump_json())
                beats_s = time.monotonic() + (left_s := BEAT_S)
            try:
                async with asyncio.timeout(left_s):
                    message = self._take(await socket.recv())
            except TimeoutError:
                continue
            if message is not None:
                await runs.take(message, address)

    async def _last_words(self, socket: ClientConnection) -> None:
        """What the server said before it hung up, and nobody has read yet: it may be a refusal."""
        await socket.close()
        try:
            while True:
                self._take(await socket.recv())
        except ConnectionClosed:
            return

    def _take(self, text: str | bytes) -> NodeOpen | NodePass | NodeClosed | None:
        """Read a message of the server; returns it if it concerns a run. Raises `SpecError` if it refuses."""
        try:
            message = server_message(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise SpecError(f"{self.server} says what no EdgeLoom does ({str(error)[:100]}).") from error
        if isinstance(message, NodeRefused):
            raise SpecError(message.sentence)
        if not isinstance(message, NodeWelcome):
            return message
        again = " again" if self.name else ""
        self.say(f"Joined{again}: {self.server} calls this machine {message.name}.")
        self.name, self.is_away = message.name, False
        self.has_joined.set()
        return None

    def _final(self, error: Exception) -> Exception | None:
        """Why calling again would not help after this error of a call; None if it may."""
        if isinstance(error, InvalidStatus):
            return self._refusal(error)
        if isinstance(error, ssl.SSLCertVerificationError):
            return HostError(
                f"{self.server}: its certificate is not trusted here ({str(error)[:200]}): have "
                "SSL_CERT_FILE name the file with the certificate of who issued it, or use http:// where it "
                "has none."
            )
        if not isinstance(error, OSError | TimeoutError | WebSocketException):
            return error
        if self.was_reached:
            self._say_away()
            return None
        return HostError(
            f"{self.server} does not answer ({str(error)[:200] or type(error).__name__}): check the address "
            "(http or https, the port), and that the server runs and can be reached from this machine."
        )

    def _refusal(self, error: InvalidStatus) -> EdgeLoomError | None:
        status = error.response.status_code
        if status >= SERVERS_FAULT and self.was_reached:
            self._say_away()
            return None
        return HostError(
            f"{self.server} answers with HTTP status {status}: nodes cannot join there: check the address, "
            "whether a proxy before it passes WebSockets on, and that the server has this version of "
            "EdgeLoom."
        )

    def _say_away(self) -> None:
        if not self.is_away:
            self.say(f"{self.server} has gone: it is called again until it answers. Ctrl-C ends that.")
        self.is_away = True

    async def _calibrated(self) -> Calibration:
        await self.has_joined.wait()
        return await asyncio.to_thread(self._calibration)

    # In a thread ----------------------------------------------------------------------------------
    def _calibration(self) -> Calibration:
        """This machine's calibration: the one that is kept, else one that is made now."""
        known = known_calibration()
        if known is not None:
            return known
        about = human_s(time_needed_s(SHORT))
        self.say(f"This machine is measured once, for about {about}: leave it idle meanwhile.")
        found = calibrate_host(SHORT, progress=self._measures, check=self._check).calibration
        self.doing = ""
        self.say("This machine is measured; the result is kept.")
        return found

    def _measures(self, what: str) -> None:
        self.doing = f"calibrating: {what}"

    def _check(self) -> None:
        if self.ending.is_set():
            raise Cancelled("The node ends.")


def join(server: str, token: str, say: Callable[[str], None], allowed: Allowed = DEFAULT) -> None:
    """Be a node of this server until Ctrl-C or SIGTERM. Raises `EdgeLoomError`."""
    joining = Joining(server, token, say, allowed)

    async def stay() -> None:
        task = asyncio.current_task()
        assert task is not None, "asyncio runs this"
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await joining.stay()

    try:
        asyncio.run(stay())
    except asyncio.CancelledError:
        say("This node has left.")
