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
from emulator.node import links
from emulator.node.links import be_probed
from engine.domain.cluster import ClusterSpec
from engine.domain.scenario import CHANGE
from tests.support.datagrams import Datagrams
from tests.support.network_bodies import fastest, opened
from tests.support.network_stream import connection
from tests.support.tries import least, tries

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


def delays(spec: dict[str, Any], dilation: float, enough_s: tuple[float, float]) -> dict[str, Any]:
    """The least wall seconds of datagrams there and back; whether receivers add to them; the rates; there
    again.
    """
    with relayed(spec, dilation) as network:
        there_s, back_s = both_ways_s(network, enough_s)
        return {
            "backend": network.backend,
            "held": network.holds_delay(0),
            "there": there_s,
            "back": back_s,
            "rates": [achieved / asked for _, _, asked, achieved in fastest(network)],
            "after": both_ways_s(network, enough_s)[0],
        }


def both_ways_s(network: MininetNetwork, enough_s: tuple[float, float]) -> tuple[float, float]:
    """The least wall seconds of datagrams there and back: a busy host makes none earlier."""
    with Datagrams(network, 0, 1) as there, Datagrams(network, 1, 0) as back:
        there_s, back_s = (
            least(lambda way=way: way.one_by_one_s(1)[0], enough)  # type: ignore[misc]
            for way, enough in zip((there, back), enough_s, strict=True)
        )
        return there_s, back_s


def spreads(spec: dict[str, Any], count: int, enough_s: list[float]) -> dict[str, Any]:
    """Batches of `count` delays (wall s) of datagrams, until the quartiles of one are at most `enough_s`."""

    def settled(found: list[list[float]]) -> bool:
        pairs = zip(statistics.quantiles(found[-1], n=4), enough_s, strict=True)
        return all(quartile <= enough for quartile, enough in pairs)

    with relayed(spec) as network, Datagrams(network, 0, 1) as there:
        return {"backend": network.backend, "delays": tries(lambda: there.one_by_one_s(count), settled)}


def message_s(spec: dict[str, Any], size: int, enough_s: float) -> dict[str, Any]:
    """The least wall seconds of messages of `size` bytes over a warm connection."""
    with relayed(spec) as network:
        sender, receiver = connection(network, 0, 1)
        with sender, receiver:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * size)
            taken_s(sender, receiver, size)
            least_s = least(lambda: taken_s(sender, receiver, size), enough_s)
    return {"backend": network.backend, "message_s": least_s}


def taken_s(sender: socket.socket, receiver: socket.socket, size: int) -> float:
    """Wall seconds of one message."""
    buffer = bytearray(size)
    began_s = time.monotonic()
    sender.sendall(buffer)
    fill(receiver, buffer)
    return time.monotonic() - began_s


def first_message_s(spec: dict[str, Any], size: int, enough_s: float) -> float:
    """Wall seconds of a connection's first long message, of `size` bytes, after a short one and its answer:
    the least of several connections, because whatever else the host does can only delay a message.

    A handshake cannot offer more than 64 KiB: the first acknowledgement does.
    """

    def of_a_new_connection() -> float:
        sender, receiver = connection(network, 0, 1)
        with sender, receiver:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * size)
            for one, other in ((sender, receiver), (receiver, sender)):
                taken_s(one, other, 1)
            return taken_s(sender, receiver, size)

    with relayed(spec) as network:
        return least(of_a_new_connection, enough_s)


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


def changed_delay(
    spec: dict[str, Any], steps: list[tuple[dict[str, Any] | None, tuple[float, float]]]
) -> list[tuple[float, float, bool]]:
    """The least wall seconds there and back, and whether the receiver adds to them: after each step, which is
    a change or None, and the seconds that are enough.
    """
    result = []
    with relayed(spec) as network:
        for change, enough_s in steps:
            if change is not None:
                network.apply(CHANGE.validate_python({"at_s": 0, **change}))
            result.append((*both_ways_s(network, enough_s), network.holds_delay(0)))
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


def probed(spec: dict[str, Any]) -> dict[str, float]:
    """What two boards in the network measure between them, which do not know how it is shaped."""
    key = b"k" * 32
    with opened(spec) as network:
        address = network.address(1)
        port, thread = inside(network.pid(1), lambda: be_probed(address, key))
        found = inside(network.pid(0), lambda: links.probe(address, port, key))
        thread.join()
    return found._asdict()
