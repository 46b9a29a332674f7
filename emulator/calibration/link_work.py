"""Measures how much work of this host's cores each byte on an emulated link is.

A stream flows from one device to another at the rate of their links, while a counter on every core gets the
time that the stream leaves: its processes mostly wait. What the counters lack then is the work of both
processes, of the kernel's packets and of the switch between them.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from functools import partial

from emulator.calibration.children import at_once
from engine.domain.errors import HostError
from engine.domain.network import Network
from engine.worlds.real.connections import tune

STREAM_S = 0.6
WARM_UP_S = 0.3
"""The stream begins so long before it counts: TCP's slow start is over then."""

PORT = 29500
TIMEOUT_S, RETRY_S = 5.0, 2e-3
BLOCK_BYTES = 1 << 18
STEPS = 1000
"""Steps of a counter between two looks at the clock."""


def link_byte_s(network: Network) -> float:
    """Seconds of work on a core per byte from device 0 to device 1. Raises `HostError`."""
    cores = sorted(os.sched_getaffinity(0))
    begin_s = time.monotonic() + WARM_UP_S
    alone = at_once([partial(_count, core, begin_s) for core in cores])
    if not all(alone):
        raise HostError("Calibrating this machine failed: other processes use it up. Stop them, and repeat.")
    begin_s = time.monotonic() + WARM_UP_S
    counters = [partial(_count, core, begin_s) for core in cores]
    received, _, *beside = at_once(
        [partial(_receive, network, begin_s), partial(_send, network, begin_s), *counters]
    )
    if not received:
        raise HostError(
            f"Calibrating this machine failed: no byte of a stream arrived within {STREAM_S:g} s. Other "
            "processes use it up: stop them, and repeat."
        )
    carried_s: float = work_s(alone, beside)
    return carried_s / int(received)


def work_s(alone: Sequence[int], beside: Sequence[int]) -> float:
    """The work of others while the counters of all cores got to `beside`, in place of to `alone`."""
    return STREAM_S * sum(
        max(0.0, 1.0 - found / expected) for found, expected in zip(beside, alone, strict=True)
    )


def _count(core: int, begin_s: float) -> int:
    """How far a counter on `core` gets in `STREAM_S`."""
    os.sched_setaffinity(0, {core})
    count = 0
    while (now_s := time.monotonic()) < begin_s + STREAM_S:
        for _ in range(STEPS):
            pass
        count += now_s >= begin_s
    return count


def _send(network: Network, begin_s: float) -> None:
    network.enter(0)
    sock = _connected(network.address(1), begin_s)
    tune(sock)
    sock.settimeout(TIMEOUT_S)
    block = bytes(BLOCK_BYTES)
    with sock:
        while time.monotonic() < begin_s + STREAM_S:
            sock.sendall(block)


def _connected(address: str, until_s: float) -> socket.socket:
    """A connection to the receiver, which may not listen yet."""
    while True:
        try:
            return socket.create_connection((address, PORT), timeout=TIMEOUT_S)
        except ConnectionRefusedError:
            if time.monotonic() > until_s:
                raise
            time.sleep(RETRY_S)


def _receive(network: Network, begin_s: float) -> int:
    """The bytes that arrive while the counters run."""
    network.enter(1)
    buffer, received = bytearray(BLOCK_BYTES), 0
    with socket.create_server((network.address(1), PORT)) as listener:
        listener.settimeout(TIMEOUT_S)
        sock, _ = listener.accept()
    with sock:
        sock.settimeout(TIMEOUT_S)
        while size := sock.recv_into(buffer):
            received += size * (begin_s <= time.monotonic() < begin_s + STREAM_S)
    return received
