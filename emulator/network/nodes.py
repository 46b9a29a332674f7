"""Builds the nodes of a cluster with Mininet, each in its own namespaces, and joins them by veth pairs.

Mininet makes and ends the nodes. It would need some ten commands to make a link and would delete links one by
one (4 and 6 s for 64 devices). Here one `ip` command makes all; the kernel deletes them with the namespaces.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Node
from mininet.topo import Topo

from emulator.network.layout import NetworkLayout
from engine.domain.command_name import COMMAND
from engine.domain.errors import HostError


class ClusterTopo(Topo):  # type: ignore[misc]  # Mininet has no types
    """Mininet's topology of a cluster. Devices and switches alike are plain nodes: they forward at layer 3,
    so no bridge is involved.

    `ip=None`, because Mininet would otherwise put its own default address on each node's first interface.
    """

    def build(self, layout: NetworkLayout) -> None:
        for node in layout.nodes:
            self.addHost(node.name, ip=None)


def build_nodes(layout: NetworkLayout) -> Mininet:
    """Start one process per node that keeps its namespaces. End them with `end_nodes`."""
    setLogLevel("error")
    # Mininet would raise limits and buffer sizes of the whole machine at its start: prevent it.
    Mininet.inited = True
    network = Mininet(topo=ClusterTopo(layout=layout), controller=None, host=Node, build=False)
    network.build()
    return network


def join_nodes(layout: NetworkLayout, pids: dict[str, int], without: frozenset[int]) -> None:
    """Make a veth pair per link, except for the links `without`; `pids` by node. Raises `HostError`."""
    lines = []
    for at_a, at_b in layout.ends:
        if at_a.link not in without:
            end = f"{at_a.name} address {at_a.mac} netns {pids[at_a.node]}"
            peer = f"{at_b.name} address {at_b.mac} netns {pids[at_b.node]}"
            lines.append(f"link add {end} type veth peer name {peer}\n")
    done = subprocess.run(
        ("ip", "-batch", "-"), input="".join(lines), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise HostError(f"Making the links failed: {done.stderr.strip()}: run {COMMAND} doctor.")


def close_shells(network: Mininet) -> None:
    """Close the terminals of all shells in a process that was forked from the one that started them.

    A device beside hundreds of others has hundreds of sockets, and `select` takes no number from 1,024 on.
    """
    for node in network.hosts:
        node.stdin.close()
        os.close(node.slave)


def end_nodes(network: Mininet) -> None:
    """End the processes that keep the namespaces; the kernel deletes the links with them."""
    for node in network.hosts:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(node.shell.pid, signal.SIGKILL)
    for node in network.hosts:
        node.terminate()
