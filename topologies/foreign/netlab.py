"""netlab's topologies (`topology.yml`): nodes and links of network devices, read as a cluster.

Its links have no rate: `bandwidth` configures what routing protocols count (netlab.tools/links).
"""

from __future__ import annotations

from typing import Any

from topologies.drawn import refusal
from topologies.foreign.build import Edge, Graph, Node

OF_OTHERS = frozenset({"lab", "directed", "num_nodes"})
"""Keys of other programs' documents with nodes and links."""


def is_netlab(data: Any) -> bool:
    """Whether nodes have names, and there are links, or a provider for them."""
    if not isinstance(data, dict) or OF_OTHERS & data.keys() or not {"links", "provider"} & data.keys():
        return False
    nodes = data.get("nodes")
    if isinstance(nodes, list):
        return bool(nodes) and all(
            isinstance(one.get("name") if isinstance(one, dict) else one, str) for one in nodes
        )
    return isinstance(nodes, dict) and bool(nodes)


def graph_of(data: dict[str, Any], where: str) -> Graph:
    """The nodes and links, a link of more than two nodes as a switch; what else a node or link states is
    named as left out. Raises `SpecError`.
    """
    given, links, left_out = data["nodes"], data.get("links") or [], set[str]()
    named = given.items() if isinstance(given, dict) else [(_name(one), one) for one in given]
    rows = {str(name): row for name, row in named}
    nodes = []
    for name, row in rows.items():
        fields = row if isinstance(row, dict) else {}
        left_out |= {f"{key} of nodes" for key in fields.keys() - {"name", "role"}}
        nodes.append(Node(name, name, fields.get("role") == "bridge", {}, None))
    if not isinstance(links, list):
        raise refusal(f"{where}, links", "expected a list of links, without groups")
    edges = []
    for index, link in enumerate(links):
        ends = _ends(link, rows)
        if not ends or not all(end in rows for end in ends):
            expected = "expected nodes of it: A-B, [A, B], or A: and B: as keys"
            raise refusal(f"{where}, links[{index}]", expected)
        if isinstance(link, dict):
            left_out |= {f"{key} of links" for key in map(str, link) if key not in (*rows, "interfaces")}
        if len(ends) == 1:
            left_out.add("links of one node")
        elif len(ends) == 2:
            edges.append(Edge(ends[0], ends[1], {}))
        else:
            hub = f"lan {index + 1}"  # as no node is called
            nodes.append(Node(hub, hub, True, {}, None))
            edges += [Edge(end, hub, {}) for end in ends]
    left_out |= {str(key) for key in data.keys() - {"nodes", "links", "name"}}
    return Graph(str(data.get("name", "")), tuple(nodes), tuple(edges), tuple(sorted(left_out)))


def _name(one: Any) -> str:
    return str(one["name"] if isinstance(one, dict) else one)


def _ends(link: Any, rows: dict[str, Any]) -> list[str]:
    """The nodes of a link. The names of nodes may have hyphens themselves."""
    if isinstance(link, str):
        if link in rows:
            return [link]
        splits = [(link[:at], link[at + 1 :]) for at, sign in enumerate(link) if sign == "-"]
        return list(next(((a, b) for a, b in splits if a in rows and b in rows), ()))
    if isinstance(link, dict) and "interfaces" in link:
        given = link["interfaces"] if isinstance(link["interfaces"], list) else []
        return [str(one.get("node")) if isinstance(one, dict) else str(one) for one in given]
    if isinstance(link, list):
        return [str(end) for end in link]
    return [end for end in map(str, link) if end in rows] if isinstance(link, dict) else []
