"""Measures the rate of every link: sends data over TCP between its ends and times it at the receiver.

Links are measured in waves of one direction, since acknowledgements would disturb a measurement the other
way. A wave is small enough for this machine's cores to carry. Each connection sends some data first, so that
TCP's slow start is not measured.
"""

from __future__ import annotations

import fcntl
import socket
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence
from statistics import linear_regression
from typing import NamedTuple

from emulator.host.namespaces import inside
from engine.domain.errors import HostError
from engine.domain.token_bucket import FRAME_BYTES, SEGMENT_BYTES
from engine.domain.units import BITS_PER_BYTE, transfer_s

Achieved = dict[tuple[int, bool], float]

BUDGET_S = 1.0
FIRST_SECONDS, AGAIN_SECONDS, MIN_SECONDS = 0.05, 0.2, 0.02
"""Of one link's timed transfer, the first time and when it is repeated, at most; and at least. Beside a load
of 16 on two cores, links were off by 0.3 % in the mean and 1.6 % at most in 0.05 s, by 1.2 and 2.9 % in 0.2 s
(something is in the way more often).
"""
LIVE_S, LIVE_MIN_BYTES = 0.03, 16 * 1024  # of a measurement in the middle of a run
LIVE_LONGEST_S = 0.5  # which keeps the run's own messages waiting for so long at most
MIN_BYTES = 24 * 1024
WARM_UP_FRAC = 0.4
CHUNKS = 24  # per timed transfer: the receiver wakes once per chunk, not once per frame
TIMEOUT_S = 20.0
TOGETHER_BIT_PER_S = 600e6
"""Wall bit/s that one core carries through several namespaces without slowing them."""

RETRY_ERROR = 0.03
"""A link that is off by more is measured again, with fewer others: the host may have been busy."""

RETRY_SHARES = (1 / 4, 1 / 16, 0.0)
"""Fractions of TOGETHER_BIT_PER_S in the repeated waves; 0: one link at a time."""


class LinkTransfer(NamedTuple):
    """One direction to measure: from `sender_pid`'s namespace to `address`, with the wall bit/s expected."""

    link: int
    forward: bool
    sender_pid: int
    receiver_pid: int
    address: str
    bit_per_s: float


def measure_links(transfers: Sequence[LinkTransfer], budget_s: float = BUDGET_S) -> Achieved:
    """Measure links: (link, forward) → wall payload bit/s achieved; raises `HostError` if a link carries
    nothing.
    """
    achieved = _measure(plan_waves(transfers, TOGETHER_BIT_PER_S), budget_s, FIRST_SECONDS)
    for share in RETRY_SHARES:
        doubtful = [s for s in transfers if abs(achieved[s.link, s.forward] / s.bit_per_s - 1) > RETRY_ERROR]
        if not doubtful:
            break
        again = _measure(plan_waves(doubtful, TOGETHER_BIT_PER_S * share), budget_s / 2, AGAIN_SECONDS)
        for transfer in doubtful:
            key, asked = (transfer.link, transfer.forward), transfer.bit_per_s
            achieved[key] = min((achieved[key], again[key]), key=lambda rate: abs(rate - asked))
    return achieved


def plan_waves(transfers: Sequence[LinkTransfer], together_bit_per_s: float) -> list[list[LinkTransfer]]:
    """Divide transfers into groups to measure at once: one direction each, at most `together_bit_per_s` in
    all or a single link.
    """
    waves: list[list[LinkTransfer]] = []
    for forward in (True, False):
        total = float("inf")
        for transfer in sorted((s for s in transfers if s.forward == forward), key=lambda s: -s.bit_per_s):
            if total + transfer.bit_per_s > together_bit_per_s:
                waves.append([])
                total = 0.0
            waves[-1].append(transfer)
            total += transfer.bit_per_s
    return waves


def _measure(waves: Sequence[Sequence[LinkTransfer]], budget_s: float, most_s: float) -> Achieved:
    seconds = budget_s / max(1, len(waves)) / (1 + WARM_UP_FRAC)
    achieved: Achieved = {}
    for wave in waves:
        achieved |= _measure_together(wave, min(most_s, max(MIN_SECONDS, seconds)))
    return achieved


def _measure_together(wave: Sequence[LinkTransfer], seconds: float) -> Achieved:
    achieved: Achieved = {}
    errors: list[str] = []
    pairs = [connect(transfer) for transfer in wave]
    threads = []
    for transfer, (sender, receiver) in zip(wave, pairs, strict=True):
        chunk = max(MIN_BYTES, int(transfer.bit_per_s * seconds / BITS_PER_BYTE)) // CHUNKS
        warm_chunks = round(CHUNKS * WARM_UP_FRAC)

        def receive(
            transfer: LinkTransfer = transfer,
            sock: socket.socket = receiver,
            chunk: int = chunk,
            warm_chunks: int = warm_chunks,
        ) -> None:
            try:
                achieved[transfer.link, transfer.forward] = _timed(sock, chunk, warm_chunks)
            except OSError as error:
                errors.append(f"link {transfer.link} carried no data: {error}")

        threads.append(threading.Thread(target=receive))
        threads.append(threading.Thread(target=_send, args=(sender, chunk, warm_chunks + CHUNKS)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for pair in pairs:
        for sock in pair:
            sock.close()
    if errors:
        raise HostError(f"Measuring the links failed: {errors[0]}.")
    return achieved


def measure_busy(transfer: LinkTransfer, sent_bytes: Callable[[], int]) -> float | None:
    """Payload bit/s of a link in use, from the kernel's count of all bytes that it sends meanwhile.

    Sends as little data as gives the rate. None if the link carries nothing in time, or is too slow to be
    measured without holding the run up.
    """
    size = max(LIVE_MIN_BYTES, int(transfer.bit_per_s * LIVE_S / BITS_PER_BYTE))
    if (1 + WARM_UP_FRAC) * transfer_s(size, transfer.bit_per_s) > LIVE_LONGEST_S:
        return None
    chunk = size // CHUNKS
    try:
        sender, receiver = connect(transfer)
    except OSError:
        return None
    with sender, receiver:
        warm_chunks = round(CHUNKS * WARM_UP_FRAC)
        thread = threading.Thread(target=_send, args=(sender, chunk, warm_chunks + CHUNKS))
        thread.start()
        try:
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, chunk)
            buffer = bytearray(chunk)
            for _ in range(warm_chunks):
                fill(receiver, buffer)
            times_s, counts = [time.monotonic()], [sent_bytes()]
            # The last chunks stay out: after them the link would idle.
            for _ in range(CHUNKS - 2):
                fill(receiver, buffer)
                times_s.append(time.monotonic())
                counts.append(sent_bytes())
        except OSError:
            return None
        finally:
            sender.shutdown(socket.SHUT_RDWR)
            thread.join()
    # A line through all readings: a busy host may pause this thread between clock and counter of one.
    frame_byte_per_s = linear_regression(times_s, counts).slope
    return frame_byte_per_s * BITS_PER_BYTE * SEGMENT_BYTES / FRAME_BYTES


def connect(transfer: LinkTransfer) -> tuple[socket.socket, socket.socket]:
    """Open a TCP connection across the link. A socket stays in the namespace in which it was made."""
    listener = inside(transfer.receiver_pid, lambda: socket.create_server((transfer.address, 0)))
    listener.settimeout(TIMEOUT_S)
    target = listener.getsockname()
    sender = inside(transfer.sender_pid, lambda: socket.create_connection(target, timeout=TIMEOUT_S))
    with listener:
        receiver, _ = listener.accept()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 256 * 1024)
    sender.settimeout(TIMEOUT_S)
    receiver.settimeout(TIMEOUT_S)
    return sender, receiver


def _send(sock: socket.socket, chunk: int, count: int) -> None:
    data = bytes(chunk)
    try:
        for _ in range(count):
            sock.sendall(data)
    except OSError:
        return  # the receiver times out and reports it


def _timed(sock: socket.socket, chunk: int, warm_chunks: int) -> float:
    """Payload bit/s from the end of the warm-up until the last byte. Bytes that already wait to be read when
    the warm-up ends do not count: this thread was late. 0 if no others come.
    """
    # Below this level the kernel does not wake the reader: at 100 Mbit/s that spares 8600 wake-ups a second.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, chunk)
    buffer = bytearray(chunk)
    for _ in range(warm_chunks):
        fill(sock, buffer)
    start_s, before = time.monotonic(), waiting_bytes(sock)
    for _ in range(CHUNKS):
        fill(sock, buffer)
    return max(0, CHUNKS * chunk - before) * BITS_PER_BYTE / (time.monotonic() - start_s)


def waiting_bytes(sock: socket.socket) -> int:
    """Bytes that have come and nobody has read yet."""
    count = bytearray(4)
    fcntl.ioctl(sock, termios.FIONREAD, count)
    return int.from_bytes(count, sys.byteorder)


def fill(sock: socket.socket, buffer: bytearray) -> None:
    view = memoryview(buffer)
    while view:
        count = sock.recv_into(view)
        if not count:
            raise ConnectionError("the connection ended early")
        view = view[count:]
