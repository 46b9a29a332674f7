"""The cluster as a Mininet network: nodes in namespaces of their own, joined by veth pairs."""

from __future__ import annotations

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Node
from mininet.topo import Topo

from emulator.layout import Layout


class ClusterTopo(Topo):  # type: ignore[misc]  # Mininet has no types
    """Devices and switches alike are plain nodes: they forward at layer 3, so no bridge is involved.

    `ip=None`, because Mininet would otherwise put its own default address on each node's first interface.
    """

    def build(self, layout: Layout, without: frozenset[int]) -> None:
        for node in layout.nodes:
            self.addHost(node.name, ip=None)
        for at_a, at_b in layout.ends:
            if at_a.link in without:
                continue
            self.addLink(
                at_a.node, at_b.node,
                intfName1=at_a.name, intfName2=at_b.name, addr1=at_a.mac, addr2=at_b.mac,
            )


def build_nodes(layout: Layout, without: frozenset[int] = frozenset()) -> Mininet:
    """Make namespaces and links, but for the links `without`. Stop it with `.stop()`."""
    setLogLevel("error")
    # Mininet's first act is to raise limits and buffer sizes of the whole machine: not ours to change.
    Mininet.inited = True
    topo = ClusterTopo(layout=layout, without=without)
    network = Mininet(topo=topo, controller=None, host=Node, build=False)
    network.build()
    return network
