"""Sends messages between a session and its caller as lines of JSON over a socket, errors included."""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Sequence
from typing import Any

from engine.domain import errors
from engine.domain.errors import EdgeLoomError, OutOfMemory, RunError, SpecError

MOST_SOCKETS = 250
"""With one message; the kernel passes 253 (unix(7), SCM_RIGHTS)."""


class JsonLines:
    """One end of the socket; `closed` is True once the other end has closed. `sockets` are those that came
    with messages. Where the other end is somebody else's, a message has at most `most_bytes`.
    """

    def __init__(self, sock: socket.socket, most_bytes: float = math.inf):
        self.sock, self.most_bytes = sock, most_bytes
        self.closed = False
        self.sockets: list[socket.socket] = []
        self._pending = b""

    def send(self, message: dict[str, Any], sockets: Sequence[socket.socket] = ()) -> None:
        data, sent = (json.dumps(message) + "\n").encode(), 0
        if sockets:
            sent = socket.send_fds(self.sock, [data], [one.fileno() for one in sockets])
        self.sock.sendall(data[sent:])

    def receive(self, timeout_s: float) -> list[dict[str, Any]]:
        """Wait `timeout_s` at most (0: not at all) for data; return the messages that are complete. Raises
        `RunError` for one that is too long.
        """
        self.sock.settimeout(timeout_s)
        try:
            data, files, _, _ = socket.recv_fds(self.sock, 1 << 20, MOST_SOCKETS)
            self.sockets += [socket.socket(fileno=file) for file in files]
        except (BlockingIOError, TimeoutError):
            return []
        except ConnectionResetError:
            data = b""
        finally:
            self.sock.settimeout(None)
        self.closed = not data
        *lines, self._pending = (self._pending + data).split(b"\n")
        if len(self._pending) > self.most_bytes:
            raise RunError(f"A message has more than {self.most_bytes:,} bytes.")
        return [json.loads(line) for line in lines]


def error_to_json(error: EdgeLoomError) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, SpecError):
        data["fields"] = error.fields
    if isinstance(error, RunError):
        data |= {"device": error.device, "time_s": error.time_s}
    return data


def error_from_json(data: dict[str, Any]) -> EdgeLoomError:
    """Inverse of `error_to_json`: an error of the same class with the same sentence."""
    kind = getattr(errors, data["kind"])
    if kind is SpecError:
        return SpecError(data["message"], [(path, message) for path, message in data["fields"]])
    if kind is OutOfMemory or issubclass(kind, RunError):
        plain = RunError if kind is OutOfMemory else kind
        error: EdgeLoomError = plain(data["message"], data["device"], data["time_s"])
        return error
    made: EdgeLoomError = kind(data["message"])
    return made
