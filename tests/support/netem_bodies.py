"""What the netem tests do inside a kernel that has it. Arguments and results are JSON."""

import socket
import struct
import time
from typing import Any

from emulator.network.measure import fill
from emulator.network.mininet_network import MininetNetwork
from engine.domain.scenario import CHANGE
from tests.support.impairment_bodies import SETTLE_S, Echo
from tests.support.network_bodies import connection, opened, qdiscs

BURST = 50  # datagrams at a time: their frames pass the bucket in much less than a millisecond
SO_TIMESTAMPNS = 35  # asm-generic/socket.h: the kernel says when a datagram came, whenever it is read
WARM = 6  # a connection's first messages pay for its slow start


def impaired(
    spec: dict[str, Any],
    phases: list[tuple[dict[str, Any] | None, list[tuple[int, int]], bool]],
    count: int,
    message_bytes: int,
) -> dict[str, Any]:
    """What the kernel has on the first link, whether receivers help, and what is measured in each phase.

    A phase begins with a change or None. Then `count` datagrams go from the first to the second of each of
    its pairs, and messages from device 0 to 1 if it asks for them.
    """
    with opened(spec) as network:
        kinds = [qdisc["kind"] for qdisc in qdiscs(network, network.layout.ends[0][0].name)]
        found = []
        for change, pairs, with_messages in phases:
            if change is not None:
                network.apply(CHANGE.validate_python({"at_s": 0, **change}))
            found.append(
                {
                    "one_way_s": [one_way_s(network, src, dst, count) for src, dst in pairs],
                    "message_s": message_s(network, message_bytes) if with_messages else [],
                }
            )
        return {
            "backend": network.backend,
            "kinds": kinds,
            "held": network.holds_delay(0),
            "phases": found,
        }


def one_way_s(network: MininetNetwork, src: int, dst: int, count: int) -> list[float]:
    """Wall seconds of those of `count` datagrams that arrive."""
    echo, taken_s = Echo(network, src, dst), []
    echo.receiver.settimeout(SETTLE_S / 4)
    echo.receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    for _ in range(0, count, BURST):
        for _ in range(BURST):
            echo.sender.sendto(str(time.time_ns()).encode(), echo.receiver.getsockname())
        try:
            for _ in range(BURST):
                sent_ns, ((_, _, stamp),), *_ = echo.receiver.recvmsg(100, 100)
                seconds, nanoseconds = struct.unpack("qq", stamp)
                taken_s.append((seconds * 10**9 + nanoseconds - int(sent_ns)) / 1e9)
        except TimeoutError:
            continue
    echo.close()
    return taken_s


def message_s(network: MininetNetwork, size: int) -> list[float]:
    """Wall seconds of messages over a warm connection from device 0 to 1."""
    sender, receiver = connection(network, 0, 1)
    times_s, buffer = [], bytearray(size)
    with sender, receiver:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * size)
        for _ in range(WARM + 10):
            began_s = time.monotonic()
            sender.sendall(buffer)
            fill(receiver, buffer)
            times_s.append(time.monotonic() - began_s)
    return times_s[WARM:]
