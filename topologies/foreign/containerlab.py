"""Containerlab's topologies (`*.clab.yml`): nodes and links of containers, read as a cluster.

Their containers state no rates: devices are like the default preset, and links have the default rate.
"""

from __future__ import annotations

from typing import Any

from topologies.drawn import refusal
from topologies.foreign.build import Edge, Graph, Node

SWITCHES = frozenset({"bridge", "ovs-bridge"})
READ = frozenset({"kind"})


def is_containerlab(data: Any) -> bool:
    return isinstance(data, dict) and isinstance((data.get("topology") or {}), dict) and "topology" in data


def graph_of(data: dict[str, Any], where: str) -> Graph:
    """The nodes and links; what else a node or link states is named as left out. Raises `SpecError`."""
    topology = data["topology"]
    given, links = topology.get("nodes"), topology.get("links") or []
    if not isinstance(given, dict) or not isinstance(links, list):
        raise refusal(where, "no topology of containerlab: expected topology.nodes and topology.links")
    nodes, left_out = [], set[str]()
    for name, row in given.items():
        fields = row if isinstance(row, dict) else {}
        left_out |= {f"{key} of nodes" for key in fields.keys() - READ}
        nodes.append(Node(str(name), str(name), fields.get("kind") in SWITCHES, {}, None))
    edges = []
    for index, link in enumerate(links):
        ends = link.get("endpoints") if isinstance(link, dict) else None
        if not isinstance(ends, list) or len(ends) != 2 or not all(isinstance(end, str) for end in ends):
            raise refusal(
                f"{where}, topology.links[{index}]", "expected endpoints of two nodes, NODE:INTERFACE"
            )
        left_out |= {f"{key} of links" for key in link.keys() - {"endpoints"}}
        a, b = (end.partition(":")[0] for end in ends)
        edges.append(Edge(a, b, {}))
    left_out |= {key for key in topology.keys() - {"nodes", "links"}}
    return Graph(str(data.get("name", "")), tuple(nodes), tuple(edges), tuple(sorted(left_out)))
