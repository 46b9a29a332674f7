"""What the netem tests do inside a kernel that has it. Arguments and results are JSON."""

import socket
import time
from typing import Any

from emulator.network.measure import fill
from emulator.network.mininet_network import MininetNetwork
from engine.domain.scenario import CHANGE
from tests.support.datagrams import Datagrams
from tests.support.network_bodies import opened, qdiscs
from tests.support.network_stream import connection

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
    with Datagrams(network, src, dst) as datagrams:
        return datagrams.in_bursts_s(count)


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
