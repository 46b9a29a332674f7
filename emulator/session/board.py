"""A device process on a board, as its supervisor sees it: the same messages, through the server.

What comes from a board is somebody else's word: its size, its kind and its fields are checked, and no other
fields are passed on.
"""

from __future__ import annotations

import base64
import json
import math
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from emulator.session.slices import CutSlices
from engine.domain.addresses import LEAST_PORT, Origin, read
from engine.domain.cluster import DeviceSpec
from engine.domain.errors import RunError, SpecError
from engine.domain.events import TRACE
from engine.domain.node_messages import LARGEST_LINE_BYTES
from engine.domain.plan import Plan
from engine.domain.trace import Mark, Span
from engine.runs.children import Child, Message
from engine.runs.output import MOST_LINES, FirstLines
from engine.worlds.real.pacing import PacingStats

MOST_RESULT_BYTES = MOST_TRACE_BYTES = 1 << 30
"""Of a run's files and of its trace, by board: a trace of ten thousand tokens of a small model has less."""
PIECE_BYTES = 1 << 18
LARGEST = 1e18
"""Of any number that a board says: seconds, bytes, counts."""

Check = Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST


def _is_port(value: Any) -> bool:
    return _is_count(value) and LEAST_PORT <= value < 1 << 16


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 10_000


def _are(value: Any, is_right: Check, most: int = 1 << 20) -> bool:
    return isinstance(value, list) and len(value) <= most and all(map(is_right, value))


def _are_lines(value: Any) -> bool:
    return _are(value, _is_text, MOST_LINES + 1)  # the last says that there were more


def _are_counts_of_ranks(value: Any) -> bool:
    return isinstance(value, dict) and all(
        rank.isdecimal() and rank.isascii() and len(rank) < 10 and _is_count(count)
        for rank, count in value.items()
    )


PACING: dict[str, Check] = dict.fromkeys(PacingStats._fields, _is_number) | {
    "operations": _is_count,
    "late": _is_count,
    "errors": lambda value: _are(value, _is_number),
    "used": lambda value: _are(value, _is_number),
}


def _is_pacing(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == PACING.keys() and _are_right(value, PACING)


def _are_right(value: dict[str, Any], checks: dict[str, Check]) -> bool:
    return all(is_right(value.get(name)) for name, is_right in checks.items())


def _is_class(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"index", "probability"}
        and _is_count(value["index"])
        and _is_number(value["probability"])
    )


OF_REQUEST: dict[str, Check] = {"request": _is_count}
FACTS: dict[str, dict[str, Check]] = {
    "request_arrived": OF_REQUEST,
    "request_begun": OF_REQUEST,
    "request_finished": OF_REQUEST,
    "request_cancelled": OF_REQUEST,
    "token_emitted": OF_REQUEST
    | {
        "index": _is_count,
        "token": lambda value: _is_count(value) and value < 1 << 31,
        "latency_s": _is_number,
    },
    "classified": OF_REQUEST | {"classes": lambda value: _are(value, _is_class)},
    "memory": {"peak_bytes": _is_count},
    "decided": {"decision": _is_text, "answer": lambda value: value is not None},
}
"""What the facts of a mark must be that is read during a run, or of any method; by the mark's name."""
OF_SUPERVISOR = (
    "link_changed",
    "replanned",
    "loss_detected",
    "device_lost",
    "device_frozen",
    "device_joined",
)
"""Marks of what only the supervisor knows."""


def _is_item(item: Span | Mark) -> bool:
    if isinstance(item, Span):
        sizes = (
            item.bytes,
            item.payload_bytes,
            item.flops,
            item.layer,
            item.request,
            item.token,
            item.message,
        )
        return all(map(_is_number, (item.start_s, item.end_s, *sizes)))
    known = FACTS.get(item.name, {})
    return _is_number(item.time_s) and item.name not in OF_SUPERVISOR and _are_right(item.facts, known)


def _is_trace(value: Any) -> bool:
    with suppress(ValidationError):
        return all(map(_is_item, TRACE.validate_python(value)))
    return False


def _is_part(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_row(value: Any) -> bool:
    """Whether it is a device's row, or none: a board that is not calibrated has none."""
    with suppress(ValidationError):
        return value is None or bool(DeviceSpec.model_validate(value))
    return False


FIELDS: dict[str, dict[str, Check]] = {
    "listening": {"port": _is_port},
    "ready": {},
    "alive": {},
    "halted": {},
    "stuck": {"pacing": _is_pacing},
    "finished": {"pacing": _is_pacing},
    "log": {"lines": _are_lines},
    "trace": {"items": _is_trace},
    "pong": {"served_s": _is_number},
    "suspect": {"rank": _is_count, "last_byte_s": lambda value: value is None or _is_number(value)},
    "status": {
        "question": _is_count,
        "waits": lambda value: isinstance(value, bool),
        "waiting_for": lambda value: _are(value, _is_text),
        "sent": _are_counts_of_ranks,
        "received": _are_counts_of_ranks,
    },
    "error": {"kind": _is_text, "message": _is_text},
    "need": {"digest": _is_text, "start": _is_count},
    "file": {"name": _is_text, "start": _is_count, "data": lambda value: isinstance(value, str)},
    "ended": {"words": _is_text},
    # of the server, before all that is of the board
    "origin": {"address": _is_text, "own": lambda value: _are(value, _is_text)},
    # before a device process has begun
    "hello": {"version": _is_text, "address": _is_text, "available_bytes": _is_count, "row": _is_row},
    "clock": {"at_s": _is_number},
    "probing": {"port": _is_port},
    "probed": {
        "forward_bit_per_s": lambda value: _is_number(value) and value > 0,
        "backward_bit_per_s": lambda value: _is_number(value) and value > 0,
        "delay_s": lambda value: _is_number(value) and value >= 0,
        "forward_loss_frac": _is_part,
        "backward_loss_frac": _is_part,
    },
    "refused": {"sentence": _is_text},
}
"""What a board may say, by the type of message, and what the fields must be that are read of it."""


class Board(Child):
    """The device process of one board. `results` gets its files, `slices` has the weights that it may ask
    for; it has them, and `devices`, the names of all, once it has a part of the plan.
    """

    def __init__(self, rank: int, name: str, node: str, sock: socket.socket, results: Path):
        super().__init__(rank, name, os.getpid(), sock)
        self.node, self.results = node, results
        self.origin: Origin | None = None
        self.slices: CutSlices | None = None
        self.sends_weights = False  # random ones are drawn on the board
        self.devices: tuple[str, ...] = ()
        self.first = FirstLines()
        self.available_bytes = 0  # of its memory
        self.begun, self.begun_bytes = list[bytes](), 0  # a message whose end has not come
        self.result_bytes = self.trace_bytes = 0
        self.words = ""

    def send(self, **message: Any) -> None:
        """Send a message; one with a new plan names the files of its slices."""
        if message["type"] == "resume":
            message["files"] = self.files_of(Plan.model_validate(message["plan"]))
        super().send(**message)

    def files_of(self, plan: Plan) -> list[tuple[str, int]]:
        """Digest and size of the file of each slice that the plan gives to this board."""
        if self.slices is None or not self.sends_weights:
            return []
        held = dict.fromkeys(one.slice for one in plan.holdings if one.device == self.rank)
        return [self.slices.add(piece) for piece in held]

    def ask(self, wanted: str, timeout_s: float, **message: Any) -> Message:
        """Send `message`, and wait for the answer of type `wanted`. Raises `RunError`."""
        self.send(**message)
        until_s = time.monotonic() + timeout_s
        while (left_s := until_s - time.monotonic()) > 0:
            self.sock.settimeout(left_s)
            try:
                found = self.receive()
            except TimeoutError:
                break
            finally:
                self.sock.settimeout(None)
            if found is None:
                raise self.gone()
            for answer in found:
                if answer["type"] == "refused":
                    raise RunError(f"Board {self.node} refuses: {answer['sentence']}", self.name)
                if answer["type"] == wanted:
                    return answer
        raise RunError(
            f"Board {self.node} does not answer within {timeout_s:.0f} s: look at it on the page Machines.",
            self.name,
        )

    def listens_at(self, said: str) -> str:
        """The address at which the board says that others reach it, in its plain form. Raises `RunError`
        for one where nobody should connect because a board says so.
        """
        origin = self.origin or Origin("")
        if why := origin.why_not(said):
            raise RunError(
                f"Board {self.node} says that others reach it at {said[:60]!r}, {why}; it has joined from "
                f"{origin.address or 'an unknown address'}: name an address of the board's with "
                "edgeloom node --listen.",
                self.name,
            )
        return str(read(said))

    def gone(self) -> RunError:
        return RunError(f"Board {self.node} has left: {self.how_ended()}.", self.name)

    def receive(self) -> list[Message] | None:
        data = self._arrived()
        if not data:
            return None
        first, *more = data.split(b"\n")
        self.begun.append(first)
        self.begun_bytes += len(first)
        if self.begun_bytes > LARGEST_LINE_BYTES:
            raise self._nonsense(f"a message of more than {LARGEST_LINE_BYTES >> 20} MiB")
        if not more:
            return []
        lines = [b"".join(self.begun), *more[:-1]]
        self.begun, self.begun_bytes = [more[-1]], len(more[-1])
        return [message for line in lines for message in self._handled(self._read(line))]

    def _read(self, line: bytes) -> Message:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise self._nonsense("a line that is no JSON") from None
        kind = message.get("type") if isinstance(message, dict) else None
        if not isinstance(kind, str) or kind not in FIELDS:
            raise self._nonsense(f"a message of the type {str(kind)[:40]!r}")
        for field, is_right in FIELDS[kind].items():
            if not is_right(message.get(field)):
                raise self._nonsense(f"a message {kind} with a wrong {field}")
        self.trace_bytes += len(line) * (kind == "trace")
        return {"type": kind} | {field: message.get(field) for field in FIELDS[kind]}

    def _nonsense(self, what: str) -> RunError:
        return RunError(f"Board {self.node} says what no device process does: {what}.", self.name)

    def _handled(self, message: Message) -> list[Message]:
        """Act on what concerns the board alone; the rest is for the supervisor."""
        match message["type"]:
            case "need":
                self._give(message["digest"], message["start"])
            case "file":
                self._keep(message["name"], message["start"], message["data"])
            case "origin" if self.origin is None:
                self.origin = Origin(message["address"], tuple(message["own"]))
            case "origin":
                raise self._nonsense("where it comes from")
            case "ended":
                self.words = message["words"]
            case "refused" if self.slices is not None:
                return [{"type": "error", "kind": "failed", "message": message["sentence"]}]
            case "log":
                lines = self.first.of(message["lines"])
                return [message | {"lines": lines}] if lines else []
            case "suspect" if message["rank"] >= len(self.devices):
                raise self._nonsense("a suspicion of no device")
            case "trace" if self.trace_bytes > MOST_TRACE_BYTES:
                raise self._nonsense(f"more than {MOST_TRACE_BYTES >> 20} MiB of trace")
            case "trace" if not all(map(self._is_own, message["items"])):
                raise self._nonsense("a trace that is not of its device, or with a peer that is none")
            case _:
                return [message]
        return []

    def _is_own(self, item: dict[str, Any]) -> bool:
        peer, needed = item.get("peer"), item.get("kind") in ("send", "recv")
        return item.get("device") == self.name and (peer in self.devices if peer or needed else True)

    def _give(self, digest: str, start: int) -> None:
        part = self.slices.part(digest, start, PIECE_BYTES) if self.slices else None
        if part is None:
            raise self._nonsense("a question for weights that are none of its slices")
        self.send(type="piece", digest=digest, start=start, data=base64.b64encode(part).decode())

    def _keep(self, name: str, start: int, data: str) -> None:
        """Append to one of the files that a device process leaves, or begin it anew: after a halt it comes
        again.
        """
        if self.slices is None:
            raise self._nonsense("a file before it has a part of the plan")
        if name not in ("outputs.safetensors", f"pieces-{self.rank}.safetensors"):
            raise self._nonsense(f"a file {name[:40]!r}")
        self.result_bytes += len(data)
        if self.result_bytes > MOST_RESULT_BYTES:
            raise self._nonsense(f"more than {MOST_RESULT_BYTES >> 20} MiB of results")
        try:
            content = base64.b64decode(data, validate=True)
        except ValueError:
            raise self._nonsense("a file that is no base64") from None
        with (self.results / name).open("ab" if start else "wb") as file:
            file.write(content)

    # a process that is elsewhere
    def kill(self) -> None:
        """Hang up: the board then ends the process."""
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def signal(self, number: signal.Signals) -> None:
        if number != signal.SIGUSR1:
            raise SpecError(f"{self.name} is the board {self.node}: its process takes no {number.name}.")
        self.send(type="stacks")

    def is_stopped(self) -> bool:
        return False

    def how_ended(self) -> str:
        return self.words or f"the connection of board {self.node} has ended"

    def has_ended(self) -> bool:
        """Whether the board has hung up; what it still says is dropped."""
        self.sock.settimeout(0.02)
        with suppress(TimeoutError):
            try:
                return not self.sock.recv(1 << 20)
            except OSError as error:
                if isinstance(error, TimeoutError):
                    raise
                return True
        return False

    def processor_s(self) -> float:
        return math.nan
