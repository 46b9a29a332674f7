"""Messages between a process and its server of confined calls: a length, then so many bytes."""

from __future__ import annotations

import socket
import struct

LENGTH = struct.Struct("!Q")
MOST_BYTES = 64_000_000


def send(connection: socket.socket, message: bytes) -> None:
    connection.sendall(LENGTH.pack(len(message)) + message)


def receive(connection: socket.socket) -> bytes:
    """One message. Raises `EOFError` if the other end is gone, or sends more than `MOST_BYTES`."""
    (length,) = LENGTH.unpack(_exactly(connection, LENGTH.size))
    if length > MOST_BYTES:
        raise EOFError
    return _exactly(connection, length)


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        piece = connection.recv(min(1 << 20, count - len(parts)))
        if not piece:
            raise EOFError
        parts += piece
    return bytes(parts)
