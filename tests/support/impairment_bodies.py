"""What the tests of delay, jitter and loss do inside private namespaces. Arguments and results are JSON."""

import contextlib
import socket
import statistics
import time
from typing import Any

from emulator.host.namespaces import inside
from emulator.network.measure import fill
from emulator.network.mininet_network import MininetNetwork
from emulator.network.probe import probe
from engine.domain.cluster import ClusterSpec
from engine.domain.scenario import CHANGE
from tests.support.network_bodies import connection, opened

ETH_P_ALL = socket.htons(3)  # linux/if_ether.h
SETTLE_S = 1.0  # patience with a datagram that may be lost


def without(spec: dict[str, Any], dilation: float, lacking: list[str]) -> MininetNetwork:
    """The network as it is on a machine that lacks some capabilities."""
    found = probe()
    items = tuple(item._replace(ok=item.ok and item.name not in lacking) for item in found.items)
    return MininetNetwork(ClusterSpec.model_validate(spec), dilation, found._replace(items=items))


class Echo:
    """Datagrams from device 0 to device 1, timed one way: all namespaces share a clock."""

    def __init__(self, network: MininetNetwork, src: int = 0, dst: int = 1):
        self.sender, self.receiver = (
            inside(network.pid(rank), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            for rank in (src, dst)
        )
        self.receiver.bind((network.address(dst), 0))
        self.receiver.settimeout(SETTLE_S)

    def one_way_s(self) -> float | None:
        """Seconds of one datagram on its way; None if it is lost."""
        began_s = time.monotonic()
        self.sender.sendto(repr(began_s).encode(), self.receiver.getsockname())
        try:
            while self.receiver.recv(100) != repr(began_s).encode():
                continue
        except TimeoutError:
            return None
        return time.monotonic() - began_s

    def close(self) -> None:
        self.sender.close()
        self.receiver.close()


def delays(spec: dict[str, Any], dilation: float, count: int) -> dict[str, Any]:
    """Wall seconds of `count` datagrams there and as many back; whether receivers add to them; the rates."""
    with without(spec, dilation, ["netem"]) as network:
        there, back = Echo(network, 0, 1), Echo(network, 1, 0)
        result = {
            "backend": network.backend,
            "there": [there.one_way_s() for _ in range(count)],
            "back": [back.one_way_s() for _ in range(count)],
            "held": network.holds_delay(0),
            "rates": [m.achieved_bit_per_s / m.asked_bit_per_s for m in network.measure()],
            "after": statistics.median(there.one_way_s() for _ in range(5)),
        }
        there.close()
        back.close()
    return result


def message_s(spec: dict[str, Any], size: int) -> dict[str, Any]:
    """Median wall seconds of messages of `size` bytes over a warm connection."""
    with without(spec, 1.0, ["netem"]) as network:
        sender, receiver = connection(network, 0, 1)
        times, buffer = [], bytearray(size)
        with sender, receiver:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * size)
            for _ in range(4):
                began_s = time.monotonic()
                sender.sendall(buffer)
                fill(receiver, buffer)
                times.append(time.monotonic() - began_s)
    return {"backend": network.backend, "message_s": statistics.median(times[1:])}


def first_message_s(spec: dict[str, Any], size: int) -> float:
    """Wall seconds of a connection's first long message, of `size` bytes, after a short one and its answer:
    the least of three connections, because whatever else the host does can only delay a message.

    A handshake cannot offer more than 64 KiB: the first acknowledgement does.
    """
    times = []
    with without(spec, 1.0, ["netem"]) as network:
        for _ in range(3):
            sender, receiver = connection(network, 0, 1)
            buffer, word = bytearray(size), bytearray(1)
            with sender, receiver:
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * size)
                for one, other in ((sender, receiver), (receiver, sender)):
                    one.sendall(word)
                    fill(other, word)
                began_s = time.monotonic()
                sender.sendall(buffer)
                fill(receiver, buffer)
                times.append(time.monotonic() - began_s)
    return min(times)


def begins_with(spec: dict[str, Any]) -> list[str]:
    """The congestion control of new sockets, over all nodes."""

    def ask() -> str:
        with socket.socket() as sock:
            return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()

    with opened(spec) as network:
        return sorted({inside(pid, ask) for pid in network._pids.values()})


def largest_frame_bytes(spec: dict[str, Any], size: int) -> int:
    """Of a message of `size` bytes, as it comes out of the network at its receiver."""
    with without(spec, 1.0, ["netem"]) as network:
        sender, receiver = connection(network, 0, 1)
        tap = inside(network.pid(1), lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, ETH_P_ALL))
        with sender, receiver, tap:
            tap.setblocking(False)
            tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * size)
            tap.bind((network.layout.receiver(0, True).name, 0))
            sender.sendall(bytes(size))
            fill(receiver, bytearray(size))
            largest = 0
            with contextlib.suppress(BlockingIOError):
                while frame := tap.recv(1 << 17):
                    largest = max(largest, len(frame))
    return largest


def lost(spec: dict[str, Any], lacking: list[str], count: int, changes: list[dict[str, Any]]) -> list[Any]:
    """How many of `count` datagrams are lost, at the start and after each change, and the backend then."""
    with without(spec, 1.0, lacking) as network:
        result = [(_lost(network, count), network.backend)]
        for change in changes:
            network.apply(CHANGE.validate_python({"at_s": 0, **change}))
            result.append((_lost(network, count), network.backend))
    return result


def _lost(network: MininetNetwork, count: int) -> int:
    echo, arrived = Echo(network), 0
    echo.receiver.settimeout(SETTLE_S / 4)
    for start in range(0, count, 50):
        sent = min(50, count - start)
        for _ in range(sent):
            echo.sender.sendto(b"x", echo.receiver.getsockname())
        try:
            for _ in range(sent):
                echo.receiver.recv(10)
                arrived += 1
        except TimeoutError:
            continue
    echo.close()
    return count - arrived


def changed_delay(spec: dict[str, Any], changes: list[dict[str, Any]]) -> list[tuple[float, float, bool]]:
    """Wall seconds there and back, and whether the receiver adds to them: at the start, after each change."""
    result = []
    with without(spec, 1.0, ["netem"]) as network:
        there, back = Echo(network, 0, 1), Echo(network, 1, 0)
        for change in [None, *changes]:
            if change is not None:
                network.apply(CHANGE.validate_python({"at_s": 0, **change}))
            ways = (statistics.median(echo.one_way_s() for _ in range(9)) for echo in (there, back))
            result.append((*ways, network.holds_delay(0)))
        there.close()
        back.close()
    return result


def refused(spec: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Apply a change that a running network cannot take: raises its `HostError`."""
    with without(spec, 1.0, ["netem"]) as network:
        return network.apply(CHANGE.validate_python({"at_s": 0, **change}))


def beside(spec: dict[str, Any]) -> int:
    """File descriptors of this process that entering and leaving a network leaves open."""
    from pathlib import Path

    with opened(spec):
        pass
    before = len(list(Path("/proc/self/fd").iterdir()))
    with without(spec, 1.0, ["netem"]):
        pass
    return len(list(Path("/proc/self/fd").iterdir())) - before
