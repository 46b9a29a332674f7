"""Tensors over TCP: one connection and one writer per ordered pair of devices, one reader per connection.

A slow link holds up nobody else's messages. Messages are timed at the receiver, when their last byte is
there; what the kernel's links cannot do (delay without netem, staging) the receiver adds as a hold.
"""

from __future__ import annotations

import queue
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from engine.frames import FRAME_HEADER_BYTES, FrameHeader
from engine.worlds.pacing import sleep_until

SEND_BUFFER_BYTES = 128 * 1024
USER_TIMEOUT_MS = 10_000
WARM_UP_BYTES = 16 * 1024
CONNECT_TIMEOUT_S = 20.0
HELLO = struct.Struct("<I")


class Outgoing(NamedTuple):
    """A message to write. It may start at `ready_s` (wall), plus `hold_s` after its predecessor."""

    header: FrameHeader
    payload: memoryview
    hold_s: float
    done: Callable[[float], None]


class Incoming(NamedTuple):
    """A message that arrived whole at `arrived_s` (wall)."""

    src: int
    header: FrameHeader
    payload: bytearray
    arrived_s: float


class Closed(NamedTuple):
    """The connection from `src` has ended."""

    src: int


def tune(sock: socket.socket) -> None:
    """The socket options that make a message's time predictable on a shaped link."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    except OSError:  # some kernels do not let a namespace choose: reno behaves alike under TBF
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


class Writer(threading.Thread):
    """Writes messages to one peer in order, on a connection opened before the run starts."""

    def __init__(self, rank: int, peer: int, address: tuple[str, int], failed: Callable[[int], None]):
        super().__init__(name=f"to-{peer}", daemon=True)
        self.peer = peer
        self.failed = failed
        self.queue: queue.SimpleQueue[Outgoing] = queue.SimpleQueue()
        self.sock = socket.create_connection(address, timeout=CONNECT_TIMEOUT_S)
        self.sock.settimeout(None)
        tune(self.sock)
        self.sock.sendall(HELLO.pack(rank) + bytes(WARM_UP_BYTES))
        self.start()

    def run(self) -> None:
        departed_s = 0.0
        while True:
            message = self.queue.get()
            sleep_until(max(message.header.sent_s, departed_s) + message.hold_s)
            try:
                self._write(message)
            except OSError:
                self.failed(self.peer)
                return
            departed_s = time.monotonic()
            message.done(departed_s)

    def _write(self, message: Outgoing) -> None:
        head = message.header.pack()
        sent = self.sock.sendmsg([head, message.payload])
        if sent < len(head):
            self.sock.sendall(head[sent:])
            sent = len(head)
        if sent - len(head) < len(message.payload):
            self.sock.sendall(message.payload[sent - len(head) :])


class Listener:
    """Accepts peers' connections and reads each in a thread of its own."""

    def __init__(self, address: str, post: Callable[[Any], None]):
        self.post = post
        self.warm: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.sock = socket.create_server((address, 0), backlog=128)
        self.port: int = self.sock.getsockname()[1]
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def _accept(self) -> None:
        while True:
            sock, _ = self.sock.accept()
            tune(sock)
            threading.Thread(target=self._read, args=(sock,), name="from", daemon=True).start()

    def _read(self, sock: socket.socket) -> None:
        hello = bytearray(HELLO.size + WARM_UP_BYTES)
        if not read_exactly(sock, hello):
            return
        (src,) = HELLO.unpack_from(hello)
        self.warm.put(src)
        head = bytearray(FRAME_HEADER_BYTES)
        while read_exactly(sock, head):
            header = FrameHeader.unpack(head)
            payload = bytearray(header.payload_bytes)
            if not read_exactly(sock, payload):
                break
            self.post(Incoming(src, header, payload, time.monotonic()))
        self.post(Closed(src))


def read_exactly(sock: socket.socket, into: bytearray) -> bool:
    """Fill `into`; False if the connection ended before."""
    view = memoryview(into)
    while view:
        try:
            count = sock.recv_into(view)
        except OSError:
            return False
        if count == 0:
            return False
        view = view[count:]
    return True
