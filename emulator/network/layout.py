"""Computes names, addresses and routes of an emulated cluster, before anything is built.

Every node, device or switch, becomes one Mininet node that forwards at layer 3. It has one /32 address
(on its loopback) and one static route per device, which follows `ClusterSpec.next_hop`. So any graph
works, rings and loops of switches included, and packets take exactly the paths that plans assume.
Neighbour entries are static too, so nodes never broadcast.
"""

from __future__ import annotations

from typing import NamedTuple

from emulator.network.windows import first_window_frames
from engine.domain.cluster import ClusterSpec

RTO_MIN_S = 0.2
"""Least retransmission timeout of TCP, virtual seconds: Linux's default (include/net/tcp.h, TCP_RTO_MIN)."""

FIRST_METRIC = 1000
"""The metric of routes before they are renewed; the kernel takes the route of the smallest."""

Direction = tuple[int, bool]
"""One direction of a link: the link's index, and whether it is a→b."""


class Interface(NamedTuple):
    """One end of a link. It sends the link's packets a→b if `forward`, else b→a."""

    name: str
    node: str
    mac: str
    link: int
    forward: bool


class NodeLayout(NamedTuple):
    """One namespace. `spec_name` is the cluster's name, `name` Mininet's (short: interfaces hold it)."""

    name: str
    spec_name: str
    address: str
    interfaces: tuple[Interface, ...]


class NetworkLayout(NamedTuple):
    """Names of nodes and interfaces. `nodes` lists devices in rank order, then switches; `ends[link]` is
    (interface at a, the one at b).
    """

    nodes: tuple[NodeLayout, ...]
    ends: tuple[tuple[Interface, Interface], ...]
    batches: dict[str, tuple[str, ...]]
    """Interface name → the `ip -batch` lines that make its neighbours and routes."""

    def node(self, name: str) -> NodeLayout:
        return next(node for node in self.nodes if node.name == name)

    def sender(self, link: int, forward: bool) -> Interface:
        """The interface that sends this direction of a link."""
        return self.ends[link][0 if forward else 1]

    def receiver(self, link: int, forward: bool) -> Interface:
        return self.ends[link][1 if forward else 0]

    def base_batch(self, node: NodeLayout) -> tuple[str, ...]:
        """The `ip -batch` lines that a node needs once: its loopback and its address."""
        return ("link set lo up", f"address add {node.address}/32 dev lo")


def network_layout(
    cluster: ClusterSpec, dilation: float = 1.0, lossy: bool = False, renewals: int = 0
) -> NetworkLayout:
    """Name nodes d0, d1, … in rank order and s0, s1, …, interfaces d0-eth0, d0-eth1, … in link order.

    With `dilation` D routes make TCP's retransmission timer D times as long. Where packets may be lost
    (`lossy`) every frame is acknowledged at once: otherwise a window of one frame waits for the delayed
    acknowledgement timer of 40 ms of wall time, which cannot be dilated.

    Routes that were renewed come before the older ones, which stay: with its route the kernel would take an
    open connection's interface away, and cut what is sent next into segments of 36 bytes.
    """
    timers = f"rto_min {max(1, round(RTO_MIN_S * dilation * 1e3))}ms" + " quickack 1" * lossy
    settings = f"metric {FIRST_METRIC - renewals} {timers}"
    names = {device.name: f"d{rank}" for rank, device in enumerate(cluster.devices)}
    names |= {switch.name: f"s{index}" for index, switch in enumerate(cluster.switches)}
    addresses = {device.name: _address(0, rank) for rank, device in enumerate(cluster.devices)}
    addresses |= {switch.name: _address(128, index) for index, switch in enumerate(cluster.switches)}
    interfaces: dict[str, list[Interface]] = {name: [] for name in names}
    ends = []
    for index, link in enumerate(cluster.links):
        pair = []
        for spec_name, forward in ((link.a, True), (link.b, False)):
            node, port = names[spec_name], len(interfaces[spec_name])
            interface = Interface(f"{node}-eth{port}", node, _mac(index, forward), index, forward)
            interfaces[spec_name].append(interface)
            pair.append(interface)
        ends.append((pair[0], pair[1]))
    nodes = tuple(
        NodeLayout(names[spec_name], spec_name, addresses[spec_name], tuple(interfaces[spec_name]))
        for spec_name in names
    )
    batches = {
        interface.name: _batch(cluster, node, interface, ends[interface.link], addresses, settings)
        for node in nodes
        for interface in node.interfaces
    }
    return NetworkLayout(nodes, tuple(ends), batches)


def _batch(
    cluster: ClusterSpec,
    node: NodeLayout,
    interface: Interface,
    ends: tuple[Interface, Interface],
    addresses: dict[str, str],
    settings: str,
) -> tuple[str, ...]:
    """Routes of `node` that leave by `interface`: the devices behind it, and a switch next door."""
    link = cluster.links[interface.link]
    peer = ends[1 if interface.forward else 0]
    peer_name = link.b if interface.forward else link.a
    destinations = [
        device.name
        for device in cluster.devices
        if device.name != node.spec_name
        and cluster.next_hop(node.spec_name, device.name)[1].link == interface.link
    ]
    next_door = any(switch.name == peer_name for switch in cluster.switches)
    if next_door and cluster.carries(interface.link, interface.forward):
        destinations.append(peer_name)
    lines = [f"link set {interface.name} up"]
    ranks = {device.name: rank for rank, device in enumerate(cluster.devices)}
    for destination in destinations:
        lines.append(
            f"neigh replace {addresses[destination]} lladdr {peer.mac} dev {interface.name} nud permanent"
        )
        window = _window(cluster, ranks.get(node.spec_name), ranks.get(destination))
        route = f"route replace {addresses[destination]}/32 dev {interface.name} src {node.address}"
        lines.append(f"{route} {settings}{window}")
    return tuple(lines)


def _window(cluster: ClusterSpec, src: int | None, dst: int | None) -> str:
    """The `initcwnd` option of the route from rank `src` to `dst`; empty if either is a switch."""
    if src is None or dst is None:
        return ""
    frames = first_window_frames(cluster, src, dst)
    return "" if frames is None else f" initcwnd {frames}"


def _address(block: int, index: int) -> str:
    number = index + 1
    return f"10.{block}.{number // 250}.{number % 250 + 1}"


def _mac(link: int, forward: bool) -> str:
    """A locally administered MAC address made from the link's index and end."""
    return f"02:00:{link >> 8:02x}:{link & 255:02x}:00:{1 if forward else 2:02x}"
