"""What the network tests do inside private namespaces. Arguments and results are JSON."""

import json
import os
import select
import socket
import struct
import subprocess
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from emulator.calibration.children import at_once
from emulator.host.namespaces import inside
from emulator.network.counters import sent_bytes
from emulator.network.measure import LinkTransfer, connect, fill, waiting_bytes
from emulator.network.mininet_network import MininetNetwork
from engine.domain.cluster import ClusterSpec
from engine.domain.network import LinkMeasurement, LinkState
from engine.domain.scenario import DropDevice, JoinDevice, LinkDown, LinkUp, SetLoss, SetRate
from tests.support.datagrams import Datagrams
from tests.support.tries import largest, least, tries

RTO_AT, RTT_AT = 8, 8 + 15 * 4  # likewise: tcpi_rto, tcpi_rtt, in microseconds
DATA_SEGMENTS_AT = 156  # tcpi_data_segs_out
NEAR = 0.05
"""A measured rate that is off by no more is the asked one."""
WINDOW_S = 0.2


def opened(spec: dict[str, Any], dilation: float = 1.0) -> MininetNetwork:
    return MininetNetwork(ClusterSpec.model_validate(spec), dilation)


def dilated(spec: dict[str, Any], dilation: float) -> tuple[list[Any], float, list[LinkMeasurement]]:
    """A network that is set to another dilation: its shapes, a connection's timer, and its rates measured."""
    with opened(spec, 1.0) as network:
        network.measure()
        network.dilate(dilation)
        return _shapes(network), _timer_s(network), network.measure()


def segments_around(spec: dict[str, Any], loss_frac: float) -> list[int]:
    """The segments in which an open connection sends two thousand bytes: at first, after the network is set
    to another dilation, and after a link has got a loss.
    """
    with opened(spec, 1.0) as network:
        sender, receiver = connection(network, 0, 1)
        with sender, receiver:
            counts = [_segments(sender, receiver)]
            network.dilate(4.0)
            counts.append(_segments(sender, receiver))
            network.apply(SetLoss(at_s=0.0, link=network.cluster.links[0].name, loss_frac=loss_frac))
            counts.append(_segments(sender, receiver))
            return counts


def _segments(sender: socket.socket, receiver: socket.socket) -> int:
    def sent() -> int:
        info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
        return int(struct.unpack_from("I", info, DATA_SEGMENTS_AT)[0])

    before = sent()
    sender.sendall(bytes(2000))
    fill(receiver, bytearray(2000))
    return sent() - before


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


def connection(network: MininetNetwork, src: int, dst: int) -> tuple[socket.socket, socket.socket]:
    return connect(LinkTransfer(0, True, network.pid(src), network.pid(dst), network.address(dst), 1.0))


def drops(network: MininetNetwork) -> int:
    """The frames that the queues of all links have dropped. TCP repeats some that are only late, too."""
    ends = (end for both in network.layout.ends for end in both)
    return sum(qdisc["drops"] for end in ends for qdisc in qdiscs(network, end.name))


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


class Stream:
    """Bulk data from one device to another until closed; counts what arrives."""

    def __init__(self, network: MininetNetwork, src: int, dst: int):
        self.sender, self.receiver = connection(network, src, dst)
        self.sender.settimeout(None)
        self.receiver.setblocking(False)
        self.arrived = 0
        self.reading = threading.Lock()
        self.threads = [threading.Thread(target=self._send), threading.Thread(target=self._receive)]
        for thread in self.threads:
            thread.start()

    def _send(self) -> None:
        data = bytes(16 * 1024)
        try:
            while True:
                self.sender.sendall(data)
        except OSError:
            return

    def _receive(self) -> None:
        buffer = bytearray(64 * 1024)
        try:
            while True:
                select.select([self.receiver], [], [])
                with self.reading:
                    count = self.receiver.recv_into(buffer)
                    self.arrived += count
                if not count:
                    return
        except OSError:
            return

    def wait_for(self, more: int, deadline_s: float = 60.0) -> None:
        """Until `more` bytes have arrived; raises if they never do."""
        began_s, goal = time.monotonic(), self.arrived + more
        while self.arrived < goal:
            if time.monotonic() - began_s > deadline_s:
                raise TimeoutError(f"{goal - self.arrived} bytes missing")
            time.sleep(0.002)

    def bit_per_s(self, size: int) -> float:
        """The rate at which about `size` more bytes come out of the network, whenever they are read."""
        began_s, before = time.monotonic(), self._come()
        self.wait_for(size)
        come = self._come() - before
        return come * 8 / (time.monotonic() - began_s)

    def _come(self) -> int:
        """Bytes that have been read or wait to be."""
        with self.reading:
            return self.arrived + waiting_bytes(self.receiver)

    def close(self) -> None:
        self.sender.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        self.sender.close()
        self.receiver.close()


def rate_change(
    spec: dict[str, Any], link: str, direction: str, bit_per_s: float, expected_bit_per_s: float
) -> dict[str, Any]:
    """A stream from device 0 to device 1 while a rate changes: facts, the fastest bit/s after it, drops."""
    network = opened(spec)
    with network:
        stream = Stream(network, 0, 1)
        stream.wait_for(500_000)
        facts = network.apply(
            SetRate.model_validate({"at_s": 0, "link": link, "direction": direction, "bit_per_s": bit_per_s})
        )
        stream.wait_for(100_000)
        size = int(expected_bit_per_s / 8 * WINDOW_S)
        fastest_bit_per_s = largest(lambda: stream.bit_per_s(size), (1 - NEAR) * expected_bit_per_s)
        result = {
            "facts": facts,
            "bit_per_s": fastest_bit_per_s,
            "drops": drops(network),
            "kernel": {
                end.forward: qdiscs(network, end.name)[0]["options"]["rate"] * 8
                for end in network.layout.ends[network.cluster.link_index(link)]
            },
        }
        stream.close()
    return result


def live_measurement(spec: dict[str, Any], link: int, bit_per_s: float) -> dict[str, Any]:
    """Rates that `state` shows after a live change of a link that is in use all the time: before it is
    measured, and of several brief measurements those nearest to what is asked.
    """
    with opened(spec) as network:
        stream = Stream(network, 0, 1)
        stream.wait_for(200_000)
        network.apply(SetRate(at_s=0, link=network.cluster.links[link].name, bit_per_s=bit_per_s))

        def shown() -> dict[bool, LinkState]:
            return {state.forward: state for state in network.state() if state.link == link}

        def error(found: list[dict[bool, float]], forward: bool) -> float:
            return min(abs(one[forward] - bit_per_s) for one in found)

        def measure() -> dict[bool, float]:
            ends = {forward: state.probe_ends + 2 for forward, state in shown().items()}
            network.measure([link])
            while any(state.probe_ends < ends[forward] for forward, state in shown().items()):
                time.sleep(0.01)
            return {forward: state.measured_bit_per_s or 0.0 for forward, state in shown().items()}

        before = shown()[True].measured_bit_per_s
        # a pause between clock and counter makes a brief measurement too large as well as too small
        found = tries(measure, lambda all_: max(error(all_, True), error(all_, False)) <= NEAR * bit_per_s)
        stream.close()
    forward, backward = (
        min((one[way] for one in found), key=lambda rate: abs(rate - bit_per_s)) for way in (True, False)
    )
    return {"before": before, "forward": forward, "backward": backward}


def cut_and_restored(spec: dict[str, Any], link: str) -> dict[str, Any]:
    """Bytes that cross a cut link, whether the connection lives on, and the shape after it is restored."""
    network = opened(spec)
    with network:
        stream = Stream(network, 0, 1)
        stream.wait_for(200_000)
        down = network.apply(LinkDown(at_s=0, link=link))
        index = network.cluster.link_index(link)
        at_cut = sent(network, index)
        again = network.apply(LinkDown(at_s=0, link=link))
        time.sleep(0.3)  # the time in which nothing may happen
        during = sent(network, index) - at_cut
        shown = [s.up for s in network.state() if s.link == index]
        up = network.apply(LinkUp(at_s=0, link=link))
        stream.wait_for(200_000)
        shape = [qdiscs(network, end.name)[0]["kind"] for end in network.layout.ends[index]]
        stream.close()
        return {"down": down, "again": again, "during": during, "shown": shown, "up": up, "shape": shape}


def sent(network: MininetNetwork, link: int) -> int:
    return sum(s.sent_bytes for s in network.state() if s.link == link)


def dropped_device(spec: dict[str, Any], name: str) -> list[bool]:
    """Which links are up after a device is dropped."""
    with opened(spec) as network:
        network.apply(DropDevice(at_s=0, device=name))
        return [s.up for s in network.state() if s.forward]


def dropped_and_joined(
    spec: dict[str, Any], name: str, cut: str, slow: str, bit_per_s: float
) -> dict[str, Any]:
    """Device `name` is dropped and joins again; meanwhile the rate of link `slow` changes, and link `cut` is
    down for another reason. Which links are up at each step, what the network answers, and the rates then.
    """
    with opened(spec) as network:
        steps = (
            LinkDown(at_s=0, link=cut),
            DropDevice(at_s=0, device=name),
            SetRate(at_s=0, link=slow, bit_per_s=bit_per_s),
            JoinDevice(at_s=0, device=name),
        )
        facts, up = [], []
        for change in steps:
            facts.append(network.apply(change))
            up.append([s.up for s in network.state() if s.forward])
        measured = {(link, forward): achieved for link, forward, _, achieved in fastest(network)}
        network.apply(LinkUp(at_s=0, link=cut))
        sender, receiver = connection(network, 0, len(network.cluster.devices) - 1)
        with sender, receiver:
            sender.sendall(bytes(1000))
            fill(receiver, bytearray(1000))
        return {"facts": facts, "up": up, "rates": measured[network.cluster.link_index(slow), True]}


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
