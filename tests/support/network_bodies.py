"""What the network tests do inside private namespaces. Arguments and results are JSON."""

import json
import os
import select
import socket
import struct
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from emulator.calibration.children import at_once
from emulator.host.namespaces import inside
from emulator.network.counters import sent_bytes
from emulator.network.measure import fill
from emulator.network.mininet_network import MininetNetwork
from engine.domain.cluster import ClusterSpec
from engine.domain.network import LinkMeasurement
from engine.domain.scenario import SetLoss
from tests.support.datagrams import Datagrams
from tests.support.network_stream import Stream, connection
from tests.support.tries import least, tries

RTO_AT, RTT_AT = 8, 8 + 15 * 4  # likewise: tcpi_rto, tcpi_rtt, in microseconds
NEAR = 0.05
"""A measured rate that is off by no more is the asked one."""


def opened(spec: dict[str, Any], dilation: float = 1.0) -> MininetNetwork:
    return MininetNetwork(ClusterSpec.model_validate(spec), dilation)


def dilated(spec: dict[str, Any], dilation: float) -> tuple[list[Any], float, list[LinkMeasurement]]:
    """A network that is set to another dilation: its shapes, a connection's timer, and its rates measured."""
    with opened(spec, 1.0) as network:
        network.measure()
        network.dilate(dilation)
        return _shapes(network), _timer_s(network), network.measure()


def files_of_devices(spec: dict[str, Any]) -> list[int]:
    """How many files are open in a process that was forked for the first device."""

    def count(network: MininetNetwork) -> int:
        network.enter(0)
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    with opened(spec) as network:
        return at_once([partial(count, network)])


def qdiscs(network: MininetNetwork, interface: str) -> list[dict[str, Any]]:
    """What the kernel says about one interface, asked independently of the code under test."""
    pid = network._pids[interface.partition("-")[0]]
    line = ["mnexec", "-a", str(pid), "tc", "-s", "-j", "qdisc", "show", "dev", interface]
    found: list[dict[str, Any]] = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
    return found


def timer_s(spec: dict[str, Any], dilation: float, enough_s: float) -> float:
    """Wall seconds by which the retransmission time-out of a connection that has carried something exceeds
    its round trip: the least of several, because a pause of this host lengthens a connection's time-out.
    """
    with opened(spec, dilation) as network:
        return least(lambda: _timer_s(network), enough_s)


def _timer_s(network: MininetNetwork) -> float:
    sender, receiver = connection(network, 0, 1)
    with sender, receiver:
        for _ in range(50):
            sender.sendall(bytes(1000))
            fill(receiver, bytearray(1000))
        info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
        timeout_us, round_trip_us = (struct.unpack_from("I", info, at)[0] for at in (RTO_AT, RTT_AT))
        return (timeout_us - round_trip_us) / 1e6


def piece_frames(spec: dict[str, Any], dilation: float) -> list[int]:
    """`gso_max_segs` of every sending interface."""
    with opened(spec, dilation) as network:
        found = []
        for pair in network.layout.ends:
            for end in pair:
                pid = str(network._pids[end.node])
                line = ["mnexec", "-a", pid, "ip", "-d", "-j", "link", "show", end.name]
                (link,) = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
                found.append(link["gso_max_segs"])
        return found


def packet_bytes_around_loss(spec: dict[str, Any], link: str) -> list[float]:
    """Mean bytes per packet that device 0 hands over in one stream: before and after a loss set by hand."""
    with opened(spec) as network:
        stream = Stream(network, 0, 1)
        found = []
        for loss_frac in (0.0, 0.001):
            network.apply(SetLoss(at_s=0, link=link, loss_frac=loss_frac))
            stream.wait_for(1_000_000)  # what was handed over before is through
            before = handed_over(network.pid(0), "d0-eth0")
            stream.wait_for(2_000_000)
            after = handed_over(network.pid(0), "d0-eth0")
            found.append((after[0] - before[0]) / (after[1] - before[1]))
        stream.close()
        return found


def handed_over(pid: int, interface: str) -> tuple[int, int]:
    """Bytes and packets that an interface has sent; a piece counts as one packet."""
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
    words = next(line.split() for line in lines if line.strip().startswith(f"{interface}:"))
    return int(words[9]), int(words[10])


def shapes(spec: dict[str, Any], dilation: float) -> list[tuple[int, bool, str, float]]:
    """(link, forward, kind, frame bit/s) of the root qdisc of every sending interface."""
    with opened(spec, dilation) as network:
        return _shapes(network)


def _shapes(network: MininetNetwork) -> list[tuple[int, bool, str, float]]:
    result = []
    for pair in network.layout.ends:
        for end in pair:
            (found,) = qdiscs(network, end.name)
            result.append((end.link, end.forward, found["kind"], found["options"]["rate"] * 8))
    return result


def crossed_links(spec: dict[str, Any], size: int) -> dict[str, list[tuple[int, bool]]]:
    """`"src dst"` → directions of links that carried `size` bytes sent from src to dst, for all pairs."""
    network = opened(spec)
    crossed = {}
    with network:
        for src in range(len(network.cluster.devices)):
            for dst in range(len(network.cluster.devices)):
                if src == dst:
                    continue
                sender, receiver = connection(network, src, dst)
                with sender, receiver:
                    before = {(s.link, s.forward): s.sent_bytes for s in network.state()}
                    sender.sendall(bytes(size))
                    fill(receiver, bytearray(size))
                    crossed[f"{src} {dst}"] = [
                        (s.link, s.forward)
                        for s in network.state()
                        if s.sent_bytes - before[s.link, s.forward] >= size
                    ]
    return crossed


def measured(spec: dict[str, Any], dilation: float = 1.0) -> list[tuple[int, bool, float, float]]:
    """(link, forward, asked, achieved) of every direction: of several measurements the fastest."""
    with opened(spec, dilation) as network:
        return fastest(network)


def fastest(network: MininetNetwork) -> list[tuple[int, bool, float, float]]:
    def best(found: list[list[LinkMeasurement]]) -> list[LinkMeasurement]:
        return [max(one, key=lambda m: m.achieved_bit_per_s) for one in zip(*found, strict=True)]

    def enough(found: list[list[LinkMeasurement]]) -> bool:
        return all(m.achieved_bit_per_s >= (1 - NEAR) * m.asked_bit_per_s for m in best(found))

    return [tuple(m[:4]) for m in best(tries(network.measure, enough))]


def lost_packets(spec: dict[str, Any], count: int) -> int:
    """How many of `count` datagrams from device 0 to device 1 do not arrive."""
    with opened(spec) as network, Datagrams(network) as datagrams:
        return count - len(datagrams.in_bursts_s(count))


def beside_another_mininet(spec: dict[str, Any]) -> list[float]:
    """Ratios of measured to asked rates while a plain Mininet with the same node names runs next door."""
    from mininet.net import Mininet
    from mininet.topo import Topo

    topo = Topo()
    for name in ("d0", "d1"):
        topo.addHost(name)
    topo.addLink("d0", "d1", intfName1="d0-eth0", intfName2="d1-eth0")
    other = Mininet(topo=topo, controller=None)
    other.start()
    try:
        with opened(spec) as network:
            ratios = [achieved / asked for _, _, asked, achieved in fastest(network)]
        assert "0% packet loss" in other["d0"].cmd(f"ping -c 1 {other['d1'].IP()}") or reaches(other)
    finally:
        other.stop()
    return ratios


def reaches(other: Any) -> bool:
    """Whether host d0 of a Mininet reaches d1 (there may be no ping on this machine)."""
    listener = inside(other["d1"].pid, lambda: socket.create_server((other["d1"].IP(), 0)))
    with listener:
        target = listener.getsockname()
        inside(other["d0"].pid, lambda: socket.create_connection(target, timeout=600)).close()
    return True


def sysctls(spec: dict[str, Any]) -> list[str]:
    """tcp_slow_start_after_idle of every node."""
    with opened(spec) as network:
        path = Path("/proc/sys/net/ipv4/tcp_slow_start_after_idle")
        return [inside(pid, path.read_text).strip() for pid in network._pids.values()]


def order_of_ends(spec: dict[str, Any], sizes: list[int]) -> list[int]:
    """The order in which messages of these sizes are complete that the first device sends to one device each,
    one after the other, without a pause.
    """
    with opened(spec) as network:
        pairs = [connection(network, 0, dst) for dst in range(1, len(sizes) + 1)]
        for (sender, _), size in zip(pairs, sizes, strict=True):
            sender.sendall(bytes(size))
        left = dict(zip([receiver for _, receiver in pairs], sizes, strict=True))
        order: list[int] = []
        while len(order) < len(sizes):
            for receiver in select.select([sock for sock in left if left[sock]], [], [])[0]:
                left[receiver] -= len(receiver.recv(left[receiver]))
                if not left[receiver]:
                    order.append(list(left).index(receiver))
        for pair in pairs:
            for sock in pair:
                sock.close()
        return order


def left_behind(spec: dict[str, Any]) -> dict[str, list[str]]:
    """Interfaces and processes in this session's namespaces after a network has been left."""
    before = interfaces()
    with opened(spec):
        processes = running()
    return {"interfaces": sorted(interfaces() - before), "during": processes, "after": running()}


def interfaces() -> set[str]:
    return set(sent_bytes(Path("/proc/net/dev").read_text()))


def running() -> list[str]:
    return sorted(path.name for path in Path("/proc").iterdir() if path.name.isdigit())
