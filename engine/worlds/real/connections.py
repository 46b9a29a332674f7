"""Tensors over TCP: one connection per ordered pair of devices, all sockets in one non-blocking loop.

Whoever writes never waits for another peer: what a slow link does not take now stays in that peer's
backlog. A message is timed at the receiver, when its last byte has been read.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from engine.program.frames import FRAME_HEADER_BYTES, FrameHeader

SEND_BUFFER_BYTES = 128 * 1024
SO_SNDBUFFORCE = 32  # asm-generic/socket.h
USER_TIMEOUT_S = 10.0
"""Virtual seconds without any acknowledgement after which TCP gives a connection up."""

WARM_UP_BYTES = 16 * 1024
CONNECT_TIMEOUT_S = 5.0
READ_TURN_BYTES = 1 << 20
WAKE_BYTES = 64 * 1024
HELLO = struct.Struct("<I")


class Incoming(NamedTuple):
    """A message that arrived whole at `arrived_s` (wall)."""

    src: int
    header: FrameHeader
    body: bytearray
    arrived_s: float


def tune(sock: socket.socket) -> None:
    """The socket options that make a message's time predictable on a shaped link."""
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    # cubic opens its window by wall seconds, reno by round trips, which dilation stretches
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def widen(sock: socket.socket, size: int) -> None:
    """Let so much be under way; beyond the system's limit only root may."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, size)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)


class Outlet:
    """The sending end towards one peer. `done(wall time)` is called when a message has left the program."""

    def __init__(self, rank: int, address: tuple[str, int], in_flight_bytes: int = 0):
        self.sock = socket.create_connection(address, timeout=CONNECT_TIMEOUT_S)
        self.sock.sendall(HELLO.pack(rank) + bytes(WARM_UP_BYTES))
        tune(self.sock)
        if in_flight_bytes:
            widen(self.sock, SEND_BUFFER_BYTES + in_flight_bytes)
        self.backlog: deque[tuple[memoryview, Callable[[float], None] | None]] = deque()
        self.broken = False

    def write(
        self, header: FrameHeader, note: bytes, payload: memoryview, done: Callable[[float], None]
    ) -> None:
        head = memoryview(header.pack() + note)
        if payload:
            self.backlog += [(head, None), (payload, done)]
        else:
            self.backlog.append((head, done))
        self.flush()

    def give_up_after(self, wall_s: float) -> None:
        """Let TCP end the connection when nothing was acknowledged for so long."""
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(wall_s * 1e3))

    def abandon(self) -> None:
        """Nobody reads any more: what is left counts as sent."""
        self.broken = True
        self.sock.close()
        while self.backlog:
            _, done = self.backlog.popleft()
            if done is not None:
                done(time.monotonic())

    def flush(self) -> None:
        """Write what the kernel takes; a broken connection swallows the rest (its reader end reports it)."""
        while self.backlog and not self.broken:
            try:
                sent = self.sock.sendmsg([data for data, _ in list(self.backlog)[:8]])
            except BlockingIOError:
                return
            except OSError:
                self.broken = True
                return
            while sent and self.backlog:
                data, done = self.backlog[0]
                if sent < len(data):
                    self.backlog[0] = (data[sent:], done)
                    break
                sent -= len(data)
                self.backlog.popleft()
                if done is not None:
                    done(time.monotonic())


class Inlet:
    """The receiving end of one peer's connection: hello and warm-up first, then frames.

    `heard_s` is when (wall) its last byte came.
    """

    def __init__(self, sock: socket.socket):
        tune(sock)
        self.sock = sock
        self.src = -1
        self.heard_s = time.monotonic()
        self.low_water = 1
        self.header: FrameHeader | None = None
        self._expect(HELLO.size + WARM_UP_BYTES)

    def _expect(self, size: int) -> None:
        self.data = bytearray(size)
        self.left = memoryview(self.data)

    def read(self) -> tuple[list[Incoming], bool]:
        """Messages completed by what has arrived, and whether the connection has ended."""
        messages: list[Incoming] = []
        budget = READ_TURN_BYTES
        while budget > 0:
            if len(self.left):
                try:
                    count = self.sock.recv_into(self.left)
                except BlockingIOError:
                    self._wake_at(min(len(self.left), WAKE_BYTES))
                    return messages, False
                except OSError:
                    return messages, True
                if count == 0:
                    return messages, True
                budget -= count
                self.heard_s = time.monotonic()
                self.left = self.left[count:]
            if not len(self.left):
                message = self._complete()
                if message is not None:
                    messages.append(message)
        return messages, False

    def _wake_at(self, size: int) -> None:
        """Do not wake us for less: at 100 Mbit/s that spares thousands of wake-ups per second."""
        if size != self.low_water:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
            self.low_water = size

    def _complete(self) -> Incoming | None:
        message = None
        if self.src < 0:
            (self.src,) = HELLO.unpack_from(self.data)
        elif self.header is None:
            self.header = FrameHeader.unpack(self.data)
            self._expect(self.header.body_bytes)
            return None
        else:
            message = Incoming(self.src, self.header, self.data, time.monotonic())
        self.header = None
        self._expect(FRAME_HEADER_BYTES)
        return message


class Connections:
    """All sockets of one device, and a wake-up for its other threads."""

    def __init__(self, rank: int, address: str):
        self.rank = rank
        self.listener = socket.create_server((address, 0), backlog=128)
        self.listener.setblocking(False)
        self.port: int = self.listener.getsockname()[1]
        self.addresses: dict[int, tuple[str, int]] = {}
        self.user_timeout_s = 0.0  # wall; 0: the kernel's own, about a quarter of an hour
        self.in_flight_bytes: dict[int, int] = {}  # what the path to a peer holds, if TCP feels its delay
        self.outlets: dict[int, Outlet] = {}
        self.inlets: list[Inlet] = []
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)

    def open(self, peer: int) -> bool:
        """Connect to `peer`, whose address is in `addresses`; False if it cannot be reached."""
        try:
            in_flight_bytes = self.in_flight_bytes.get(peer, 0)
            outlet = Outlet(self.rank, self.addresses[peer], in_flight_bytes)
        except OSError:
            return False
        outlet.give_up_after(self.user_timeout_s)
        self.outlets[peer] = outlet
        return True

    def dilate(self, dilation: float) -> None:
        """From now on, and for what is opened later: TCP's patience is virtual time, as its timers are."""
        self.user_timeout_s = USER_TIMEOUT_S * dilation
        for outlet in self.outlets.values():
            if not outlet.broken:
                outlet.give_up_after(self.user_timeout_s)

    @property
    def num_connected(self) -> int:
        """How many peers have connected here and warmed up."""
        return sum(inlet.src >= 0 for inlet in self.inlets)

    def close(self, peer: int) -> None:
        """Let go of what is open to and from `peer`: it is lost."""
        outlet = self.outlets.pop(peer, None)
        if outlet is not None:
            outlet.abandon()
        for inlet in [inlet for inlet in self.inlets if inlet.src == peer]:
            self.inlets.remove(inlet)
            inlet.sock.close()

    def heard_s(self, peer: int) -> float:
        """When (wall) the last byte came from `peer`; 0 if nothing ever did."""
        return max((inlet.heard_s for inlet in self.inlets if inlet.src == peer), default=0.0)

    def wake(self) -> None:
        """From any thread: make `wait` return. A full pipe wakes it just as well."""
        try:
            self._waker.send(b"!")
        except BlockingIOError:
            return

    def wait(self, timeout_s: float) -> tuple[list[Incoming], list[int]]:
        """Up to `timeout_s` for something to happen: messages that are whole, peers that have gone.

        `select`, because it alone has a resolution of microseconds.
        """
        inlets = {inlet.sock: inlet for inlet in self.inlets}
        blocked = {
            outlet.sock: outlet for outlet in self.outlets.values() if outlet.backlog and not outlet.broken
        }
        watched = [self.listener, self._woken, *inlets]
        readable, writable, _ = select.select(watched, list(blocked), [], timeout_s)
        messages: list[Incoming] = []
        gone: list[int] = []
        for sock in writable:
            blocked[sock].flush()
        for sock in readable:
            if sock is self._woken:
                self._woken.recv(4096)
            elif sock is self.listener:
                self.inlets.append(Inlet(self.listener.accept()[0]))
            else:
                arrived, ended = inlets[sock].read()
                messages += arrived
                if ended:
                    self.inlets.remove(inlets[sock])
                    sock.close()
                    gone.append(inlets[sock].src)
        return messages, gone
