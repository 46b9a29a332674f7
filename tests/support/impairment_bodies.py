"""What the tests of delay, jitter and loss do inside private namespaces. Arguments and results are JSON."""

import contextlib
import socket
import statistics
import time
from collections.abc import Iterator
from typing import Any

from emulator.host.namespaces import inside
from emulator.host.priority import children_in_real_time
from emulator.network.measure import fill
from emulator.network.mininet_network import MininetNetwork
from emulator.network.probe import probe
from engine.domain.cluster import ClusterSpec
from engine.domain.scenario import CHANGE
from tests.support.datagrams import Datagrams
from tests.support.network_bodies import connection, opened

ETH_P_ALL = socket.htons(3)  # linux/if_ether.h


def without(spec: dict[str, Any], dilation: float, lacking: list[str]) -> MininetNetwork:
    """The network as it is on a machine that lacks some capabilities."""
    found = probe()
    items = tuple(item._replace(ok=item.ok and item.name not in lacking) for item in found.items)
    return MininetNetwork(ClusterSpec.model_validate(spec), dilation, found._replace(items=items))


@contextlib.contextmanager
def relayed(spec: dict[str, Any], dilation: float = 1.0) -> Iterator[MininetNetwork]:
    """A network whose relays do not wait for other work of this host, as in a run."""
    with without(spec, dilation, ["netem"]) as network:
        children_in_real_time(but=network.shells)
        yield network


def delays(spec: dict[str, Any], dilation: float, count: int) -> dict[str, Any]:
    """Wall seconds of `count` datagrams there and as many back; whether receivers add to them; the rates."""
    with relayed(spec, dilation) as network, Datagrams(network, 0, 1) as there:
        with Datagrams(network, 1, 0) as back:
            ways = {"there": there.one_by_one_s(count), "back": back.one_by_one_s(count)}
        return ways | {
            "backend": network.backend,
            "held": network.holds_delay(0),
            "rates": [m.achieved_bit_per_s / m.asked_bit_per_s for m in network.measure()],
            "after": there.one_by_one_s(5),
        }


def message_s(spec: dict[str, Any], size: int) -> dict[str, Any]:
    """The least wall seconds of messages of `size` bytes over a warm connection."""
    with relayed(spec) as network:
        sender, receiver = connection(network, 0, 1)
        times, buffer = [], bytearray(size)
        with sender, receiver:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * size)
            for _ in range(6):
                began_s = time.monotonic()
                sender.sendall(buffer)
                fill(receiver, buffer)
                times.append(time.monotonic() - began_s)
    return {"backend": network.backend, "message_s": min(times[1:])}


def first_message_s(spec: dict[str, Any], size: int) -> float:
    """Wall seconds of a connection's first long message, of `size` bytes, after a short one and its answer:
    the least of three connections, because whatever else the host does can only delay a message.

    A handshake cannot offer more than 64 KiB: the first acknowledgement does.
    """
    times = []
    with relayed(spec) as network:
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
    with Datagrams(network) as datagrams:
        return count - len(datagrams.in_bursts_s(count))


def changed_delay(spec: dict[str, Any], changes: list[dict[str, Any]]) -> list[tuple[float, float, bool]]:
    """Median wall seconds there and back, and whether the receiver adds to them: first, after each change."""
    result = []
    with relayed(spec) as network:
        for change in [None, *changes]:
            if change is not None:
                network.apply(CHANGE.validate_python({"at_s": 0, **change}))
            with Datagrams(network, 0, 1) as there, Datagrams(network, 1, 0) as back:
                ways = (statistics.median(way.one_by_one_s(9)) for way in (there, back))
                result.append((*ways, network.holds_delay(0)))
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
