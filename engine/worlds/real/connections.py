"""Tensors over TCP: one connection per ordered pair of devices, all sockets in one non-blocking loop.

Writing never blocks: bytes that a slow link does not accept now wait in the backlog of its connection. A
message arrives when its last byte has been read. Pings of peers (`Connections.ping`) are answered here.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from engine.program.frames import FRAME_HEADER_BYTES, FrameHeader
from engine.worlds.real.gate import Gate, open_gate

SEND_BUFFER_BYTES = 128 * 1024
USER_TIMEOUT_S = 10.0
"""Virtual seconds without any acknowledgement after which TCP gives a connection up."""

WARM_UP_BYTES = 16 * 1024
CONNECT_TIMEOUT_S = 5.0
READ_TURN_BYTES = 1 << 20
WAKE_BYTES = 64 * 1024
JOINED_BYTES = 16 * 1024
"""A payload up to this size is copied behind its header, so that one buffer is sent."""

STAGE_BYTES = 64 * 1024
"""What is read at once of small messages: most arrive with their header in one call of the kernel."""

HELLO = struct.Struct("<I")
PING, PONG = -1, -2
"""Message numbers of frames that carry no message."""


class Incoming(NamedTuple):
    """A complete message, which arrived at `arrived_s` (wall)."""

    src: int
    header: FrameHeader
    body: bytearray
    arrived_s: float


def tune(sock: socket.socket, in_flight_bytes: int = 0) -> None:
    """Set the socket options that make a message's time predictable on a shaped link.

    The send buffer also holds what is in flight. An emulated device's network gives new sockets one that is
    large enough (tcp_wmem), since the system's limit holds for what a program asks for.
    """
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    size = SEND_BUFFER_BYTES + in_flight_bytes
    # the kernel counts twice what is asked for
    if not in_flight_bytes or sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) < 2 * size:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
    # cubic grows its window with wall seconds, reno with round trips, which the dilation stretches
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


class SendConnection:
    """The connection on which this device sends to one peer.

    A message's `done(wall time)` is called when the kernel has taken its last byte.
    """

    def __init__(self, rank: int, address: tuple[str, int], in_flight_bytes: int = 0, key: bytes = b""):
        self.sock = socket.create_connection(address, timeout=CONNECT_TIMEOUT_S)
        if key:
            try:
                open_gate(self.sock, key, rank)
            except OSError:
                self.sock.close()
                raise
        self.sock.sendall(HELLO.pack(rank) + bytes(WARM_UP_BYTES))
        tune(self.sock, in_flight_bytes)
        self.backlog: deque[tuple[memoryview, Callable[[float], None] | None]] = deque()
        self.broken = False
        self.num_messages = 0  # without pings and pongs

    def write(
        self, header: FrameHeader, note: bytes, payload: memoryview, done: Callable[[float], None]
    ) -> None:
        self.num_messages += header.message >= 0
        head = header.pack() + note
        if len(payload) > JOINED_BYTES:
            self.backlog += [(memoryview(head), None), (payload, done)]
        else:
            self.backlog.append((memoryview(head + payload), done))
        self.flush()

    def set_user_timeout(self, wall_s: float) -> None:
        """Let TCP close the connection when the peer has acknowledged nothing for `wall_s`."""
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(wall_s * 1e3))

    def abandon(self) -> None:
        """Close the connection to a failed peer; the messages in the backlog count as sent."""
        self.broken = True
        self.sock.close()
        while self.backlog:
            _, done = self.backlog.popleft()
            if done is not None:
                done(time.monotonic())

    def flush(self) -> None:
        """Write what the kernel takes. A broken connection drops it: the receiver reports the failure."""
        while self.backlog and not self.broken:
            try:
                if len(self.backlog) == 1:
                    sent = self.sock.send(self.backlog[0][0])
                else:
                    sent = self.sock.sendmsg([data for data, _ in islice(self.backlog, 8)])
            except BlockingIOError:
                return
            except OSError:
                self.broken = True
                return
            self._written(sent)

    def _written(self, sent: int) -> None:
        """Take what the kernel has taken off the backlog, all of it before the first `done`: that may let a
        program go on, which writes at once.
        """
        taken = []
        while sent:
            data, done = self.backlog[0]
            if sent < len(data):
                self.backlog[0] = (data[sent:], done)
                break
            sent -= len(data)
            self.backlog.popleft()
            taken.append(done)
        now_s = time.monotonic()
        for done in filter(None, taken):
            done(now_s)


class ReceiveConnection:
    """The connection on which one peer sends to this device: a greeting and warm-up bytes, then frames.

    `src` is the peer's rank, -1 before its greeting; `last_byte_s` the wall time of its last byte. `proven`
    is the rank that it has proved to be, if it had to (`gate.py`): a greeting with another ends it.
    """

    def __init__(self, sock: socket.socket, proven: int | None = None):
        tune(sock)
        self.proven = proven
        self.sock = sock
        self.src = -1
        self.last_byte_s = time.monotonic()
        self.low_water = 1
        self.header: FrameHeader | None = None
        self.num_messages = 0  # without pings and pongs
        self._stage = memoryview(bytearray(STAGE_BYTES))
        self._expect(HELLO.size + WARM_UP_BYTES)

    def _expect(self, size: int) -> None:
        self.data = bytearray(size)
        self.left = memoryview(self.data)

    def read(self) -> tuple[list[Incoming], bool]:
        """Read what has arrived: the messages that are complete now, and whether the peer closed."""
        messages: list[Incoming] = []
        budget = READ_TURN_BYTES
        while budget > 0:
            staged = len(self.left) < STAGE_BYTES
            room = self._stage if staged else self.left
            try:
                count = self.sock.recv_into(room)
            except BlockingIOError:
                break
            except OSError:
                return messages, True
            if count == 0:
                return messages, True
            budget -= count
            self.last_byte_s = time.monotonic()
            if staged:
                self._take(self._stage[:count], messages)
            else:
                self.left = self.left[count:]
                self._take(self._stage[:0], messages)
            if count < len(room):  # that was all
                break
        else:
            return messages, False
        self._set_low_water(min(len(self.left), WAKE_BYTES))
        return messages, False

    def _take(self, data: memoryview, messages: list[Incoming]) -> None:
        """Fill what is expected with `data`, and append the messages that are complete then."""
        while True:
            count = min(len(self.left), len(data))
            if count:
                self.left[:count] = data[:count]
                self.left, data = self.left[count:], data[count:]
            if len(self.left):
                return
            message = self._complete()
            if message is not None:
                messages.append(message)

    def _set_low_water(self, size: int) -> None:
        """Let `select` ignore less than `size` bytes: saves thousands of wake-ups a second at 100 Mbit/s."""
        if size != self.low_water:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
            self.low_water = size

    def _complete(self) -> Incoming | None:
        message = None
        if self.src < 0:
            (src,) = HELLO.unpack_from(self.data)
            if self.proven not in (None, src):
                self.sock.shutdown(socket.SHUT_RDWR)
            self.src = src if self.proven is None else self.proven
        elif self.header is None:
            self.header = FrameHeader.unpack(self.data)
            self._expect(self.header.body_bytes)
            return None
        else:
            message = Incoming(self.src, self.header, self.data, time.monotonic())
            self.num_messages += self.header.message >= 0
        self.header = None
        self._expect(FRAME_HEADER_BYTES)
        return message


class Connections:
    """All sockets of one device, and a way for its other threads to wake its main thread.

    What had arrived at wall time `served_s` has been read, and all pings in it are answered. With a `key`
    only peers that have it are connected.
    """

    def __init__(self, rank: int, address: str, key: bytes = b""):
        self.rank, self.key = rank, key
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listener = socket.create_server((address, 0), family=family, backlog=128)
        self.listener.setblocking(bool(key))
        self.port: int = self.listener.getsockname()[1]
        self.addresses: dict[int, tuple[str, int]] = {}
        self.user_timeout_s = 0.0  # wall; 0: the kernel's default, about 15 minutes
        self.in_flight_bytes: dict[int, int] = {}  # on their way to a peer, if TCP sees the path's delay
        self.sending: dict[int, SendConnection] = {}
        self.receiving: list[ReceiveConnection] = []
        self.served_s = 0.0
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self.gate = Gate(self.listener, key, self.wake) if key else None

    def open(self, peer: int) -> bool:
        """Connect to `peer`, whose address is in `addresses`; False if it cannot be reached."""
        try:
            in_flight_bytes = self.in_flight_bytes.get(peer, 0)
            connection = SendConnection(self.rank, self.addresses[peer], in_flight_bytes, self.key)
        except OSError:
            return False
        connection.set_user_timeout(self.user_timeout_s)
        self.sending[peer] = connection
        return True

    def dilate(self, dilation: float) -> None:
        """Make TCP's user timeout virtual time, on open connections and on those opened later."""
        self.user_timeout_s = USER_TIMEOUT_S * dilation
        for connection in self.sending.values():
            if not connection.broken:
                connection.set_user_timeout(self.user_timeout_s)

    @property
    def num_connected(self) -> int:
        """The number of peers that have connected to this device and sent their warm-up bytes."""
        return sum(connection.src >= 0 for connection in self.receiving)

    @property
    def has_peers(self) -> bool:
        """Whether anybody has connected, or was connected to."""
        return bool(self.receiving or self.sending)

    def close(self, peer: int) -> None:
        """Close the connections to and from `peer`, which has failed."""
        sending = self.sending.pop(peer, None)
        if sending is not None:
            sending.abandon()
        for connection in [connection for connection in self.receiving if connection.src == peer]:
            self.receiving.remove(connection)
            connection.sock.close()

    @property
    def is_writing(self) -> bool:
        """Whether the kernel has not taken all messages yet."""
        return any(connection.backlog and not connection.broken for connection in self.sending.values())

    @property
    def is_moving_much(self) -> bool:
        """Whether a large message is on its way: then the kernel should say when there is enough to do."""
        return self.is_writing or any(len(found.left) >= STAGE_BYTES for found in self.receiving)

    def num_sent(self) -> dict[int, int]:
        """The messages written to each peer, over the connection that is open now."""
        return {peer: connection.num_messages for peer, connection in self.sending.items()}

    def num_received(self) -> dict[int, int]:
        """The messages that have arrived from each peer, over the connection that is open now."""
        return {connection.src: connection.num_messages for connection in self.receiving}

    def last_byte_s(self, peer: int) -> float:
        """The wall time of the last byte from `peer`; 0 if none has come."""
        return max((found.last_byte_s for found in self.receiving if found.src == peer), default=0.0)

    def ping(self, peer: int) -> None:
        """Send `peer` a ping, unless messages to it are in the backlog: TCP would send those first."""
        self._write_signal(peer, PING)

    def _write_signal(self, peer: int, number: int) -> None:
        connection = self.sending.get(peer)
        if connection is not None and not connection.backlog:
            now_s = time.monotonic()
            header = FrameHeader(number, 0, (-1, -1), now_s, now_s, "int64", (0,), "")
            connection.write(header, b"", memoryview(b""), lambda at_s: None)

    def poll(self) -> tuple[list[Incoming], list[int]]:
        """What `wait(0)` returns, from all peers that are connected. Writes nothing."""
        messages: list[Incoming] = []
        closed: list[int] = []
        begun_s = time.monotonic()
        for connection in tuple(self.receiving):
            arrived, ended = connection.read()
            messages += arrived
            if ended:
                self._end(connection, closed)
        if messages:
            messages = self._answer_pings(messages)
        self.served_s = begun_s
        return messages, closed

    def _end(self, connection: ReceiveConnection, closed: list[int]) -> None:
        """Act on a connection that its peer has closed."""
        self.receiving.remove(connection)
        connection.sock.close()
        closed.append(connection.src)

    def wake(self) -> None:
        """Make `wait` return; any thread may call this. If the pipe is full, a wake-up is pending already."""
        try:
            self._waker.send(b"!")
        except BlockingIOError:
            return

    def _watched(self) -> list[socket.socket]:
        """The sockets from which something may come."""
        listeners = [] if self.gate else [self.listener]
        return [*listeners, self._woken, *(connection.sock for connection in self.receiving)]

    def wait(self, timeout_s: float) -> tuple[list[Incoming], list[int]]:
        """Wait up to `timeout_s` for something to happen: complete messages, and peers that have closed.

        `select`, because it alone has a resolution of microseconds.
        """
        blocked = {
            connection.sock: connection
            for connection in self.sending.values()
            if connection.backlog and not connection.broken
        }
        begun_s = time.monotonic()
        readable, writable, _ = select.select(self._watched(), list(blocked), [], timeout_s)
        for sock in writable:
            blocked[sock].flush()
        if writable:  # what was sent lets programs go on, which may have read what was readable
            readable, _, _ = select.select(self._watched(), [], [], 0.0)
        receiving = {connection.sock: connection for connection in self.receiving}
        messages: list[Incoming] = []
        closed: list[int] = []
        for sock in readable:
            if sock is self._woken:
                self._woken.recv(4096)
                self._let_in()
            elif sock is self.listener:
                self.receiving.append(ReceiveConnection(self.listener.accept()[0]))
            else:
                arrived, ended = receiving[sock].read()
                messages += arrived
                if ended:
                    self._end(receiving[sock], closed)
        messages = self._answer_pings(messages)
        self.served_s = begun_s
        return messages, closed

    def _let_in(self) -> None:
        """Receive from those that have proved to be of this run."""
        while self.gate is not None and not self.gate.admitted.empty():
            self.receiving.append(ReceiveConnection(*self.gate.admitted.get()))

    def _answer_pings(self, messages: list[Incoming]) -> list[Incoming]:
        """Answer the pings among `messages` with pongs; return the other messages."""
        for message in messages:
            if message.header.message == PING:
                self._write_signal(message.src, PONG)
        return [message for message in messages if message.header.message >= 0]
