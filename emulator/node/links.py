"""The network between this board and another, measured over one connection: rates and losses, and delay."""

from __future__ import annotations

import queue
import socket
import struct
import threading
import time
from contextlib import closing, suppress
from typing import NamedTuple

from engine.domain.errors import RunError
from engine.worlds.real.gate import Gate, Stranger, open_gate

PINGS = 20
SEND_S = 0.3
TRICKLE_S, TRICKLE_GAP_S = 0.2, 2e-4
TRICKLE_FRAC = 0.1
"""Losses are counted at a tenth of the rate: at the full one, TCP itself makes queues overflow."""
TRICKLE_SEGMENTS, MOST_TRICKLE_S = 200, 2.0
"""So many segments tell a loss of some percent; over a slow path, what goes there in the time."""
PATIENCE_S = 10.0
CHUNK_BYTES = 1 << 16
SMALL_BYTES, HEADER_BYTES = 200, 66
MORE, LAST = b"m", b"l"
_TOOK = struct.Struct("<dQ")
_LOST = struct.Struct("<d")
_TCP_INFO = struct.Struct("=100xI52xI")
"""Of Linux' struct tcp_info: tcpi_total_retrans and tcpi_data_segs_out (include/uapi/linux/tcp.h)."""


class Measured(NamedTuple):
    forward_bit_per_s: float
    backward_bit_per_s: float
    delay_s: float
    forward_loss_frac: float
    backward_loss_frac: float


def be_probed(address: str, key: bytes) -> tuple[int, threading.Thread]:
    """The port at which another board of the run may measure, once, and the thread that answers it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, 0), family=family)
    listener.settimeout(PATIENCE_S)
    thread = threading.Thread(target=_answer, args=(listener, key), daemon=True)
    thread.start()
    return listener.getsockname()[1], thread


def _answer(listener: socket.socket, key: bytes) -> None:
    until_s = time.monotonic() + PATIENCE_S
    with closing(Gate(listener, key, lambda: None)) as gate, suppress(OSError, queue.Empty):
        sock, _ = gate.admitted.get(timeout=PATIENCE_S)  # strangers may have called first
        with sock:
            sock.settimeout(PATIENCE_S)
            _tune(sock)
            for _ in range(PINGS):
                sock.sendall(_read(sock, 1))
            sock.sendall(_TOOK.pack(*_drain(sock, until_s)))
            _fill(sock)
            back = _rate(*_TOOK.unpack(_read(sock, _TOOK.size)))
            _take_trickle(sock, until_s)
            sock.sendall(_LOST.pack(_trickle(sock, back)))
            _read(sock, 1)


def probe(address: str, port: int, key: bytes) -> Measured:
    """Measure to the board that listens there. Raises `RunError` where it cannot be reached."""
    try:
        with socket.create_connection((address, port), PATIENCE_S) as sock:
            open_gate(sock, key, 0)
            _tune(sock)
            trips_s = [_trip_s(sock) for _ in range(PINGS)]
            _fill(sock)
            there = _rate(*_TOOK.unpack(_read(sock, _TOOK.size)))
            took = _drain(sock, time.monotonic() + PATIENCE_S)
            sock.sendall(_TOOK.pack(*took))
            lost_there = _trickle(sock, there)
            _take_trickle(sock, time.monotonic() + PATIENCE_S)
            (lost_back,) = _LOST.unpack(_read(sock, _LOST.size))
            sock.sendall(LAST)
            return Measured(there, _rate(*took), min(trips_s) / 2, lost_there, lost_back)
    except OSError as error:
        raise RunError(
            f"It does not reach the board at {address} ({error}): boards of a run connect to each other "
            "directly, so they need a network in which each reaches the others; --listen ADDRESS names the "
            "address for it."
        ) from error


def _tune(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _trip_s(sock: socket.socket) -> float:
    began_s = time.monotonic()
    sock.sendall(b"p")
    _read(sock, 1)
    return time.monotonic() - began_s


def _fill(sock: socket.socket) -> None:
    until_s = time.monotonic() + SEND_S
    chunk = MORE + bytes(CHUNK_BYTES - 1)
    while time.monotonic() < until_s:
        sock.sendall(chunk)
    sock.sendall(LAST + bytes(CHUNK_BYTES - 1))


def _drain(sock: socket.socket, until_s: float) -> tuple[float, int]:
    """Seconds from the first chunk to the last, and the bytes after the first."""
    began_s, size, kind = 0.0, 0, MORE
    while kind == MORE:
        if time.monotonic() > until_s:
            raise Stranger("it sends without an end")
        kind = _read(sock, CHUNK_BYTES)[:1]
        size, began_s = (size + CHUNK_BYTES, began_s) if began_s else (0, time.monotonic())
    return max(time.monotonic() - began_s, 1e-6), max(size, 1)


def _trickle(sock: socket.socket, bit_per_s: float) -> float:
    """The part of small segments that TCP had to send again, at a tenth of `bit_per_s`."""
    gap_s = max(TRICKLE_GAP_S, 8 * (SMALL_BYTES + HEADER_BYTES) / (TRICKLE_FRAC * bit_per_s))
    lost, sent = _segments(sock)
    began_s, count = time.monotonic(), 0
    while (since_s := time.monotonic() - began_s) < TRICKLE_S or (
        count < TRICKLE_SEGMENTS and since_s < MOST_TRICKLE_S
    ):
        sock.sendall(MORE + bytes(SMALL_BYTES - 1))
        count += 1
        time.sleep(gap_s)
    sock.sendall(LAST + bytes(SMALL_BYTES - 1))
    _read(sock, 1)  # the last has arrived, so what was lost was sent again
    lost_now, sent_now = _segments(sock)
    return min(1.0, (lost_now - lost) / max(1, sent_now - sent))


def _take_trickle(sock: socket.socket, until_s: float) -> None:
    while _read(sock, SMALL_BYTES)[:1] == MORE:
        if time.monotonic() > until_s:
            raise Stranger("it sends without an end")
    sock.sendall(LAST)


def _segments(sock: socket.socket) -> tuple[int, int]:
    """Segments with data that this end has sent again, and all that it has sent."""
    again, sent = _TCP_INFO.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size))
    return int(again), int(sent)


def _rate(took_s: float, size: int) -> float:
    return 8 * size / took_s


def _read(sock: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = sock.recv(size - len(found))
        if not piece:
            raise Stranger("it hangs up")
        found += piece
    return bytes(found)
