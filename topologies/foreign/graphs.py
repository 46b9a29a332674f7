"""GraphML and GML, read by networkx.

A node is a switch if its attribute `type`, `kind` or `role` says switch, router or hub, else a device;
attributes that a device has (`flop_per_s`, `memory_bytes`, …) and `preset` are taken over. A link takes the
attributes of `LinkSpec`, those of Mininet (`bw`, `delay`, `loss`) and `LinkSpeedRaw` of the Internet Topology
Zoo (bit/s).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.parsers import expat

from engine.domain.cluster import DeviceSpec, LinkSpec
from engine.domain.extras import naming_extras
from topologies.drawn import refusal
from topologies.foreign.build import Edge, Graph, Node, check_size
from topologies.foreign.miniedit import link_options, number_of

WRONG_TEXT = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What networkx raises, besides its own errors, for text that it does not expect."""

SWITCHES = ("switch", "router", "hub")
TABLES = {"family_rates", "format_rates", "efficiencies"}
OF_DEVICE = frozenset(DeviceSpec.model_fields) - {"name", *TABLES} | {"preset"}
REVERSED = {"bit_per_s": "reverse_bit_per_s", "delay_s": "reverse_delay_s", "loss_frac": "reverse_loss_frac"}
OF_LINK = frozenset(LinkSpec.model_fields) - {"a", "b", "parallel", *REVERSED.values()}
"""The keys of a link, without those of a direction: the edges of an undirected graph have none, a directed
one has two edges.
"""


@naming_extras()
def read_graphml(text: str, where: str) -> Graph:
    """The graph in a GraphML file. Raises `SpecError` for other text, and for a document type definition."""
    _count(r"<(?:\w+:)?node\b", r"<(?:\w+:)?edge\b", text, where)
    _refuse_definitions(text, where)
    import networkx

    return _graph_of(lambda: networkx.parse_graphml(text, force_multigraph=True), "GraphML", where)


@naming_extras()
def read_gml(text: str, where: str) -> Graph:
    """The graph in a GML file. Raises `SpecError` for other text."""
    _count(r"\bnode\s*\[", r"\bedge\s*\[", text, where)
    import networkx

    def parse() -> Any:
        try:
            return networkx.parse_gml(text, label="id")
        except networkx.NetworkXError as error:
            if "duplicated" not in str(error):
                raise
            told = re.sub(r"\bgraph\s*\[", "graph [\n multigraph 1", text, count=1)
            return networkx.parse_gml(told, label="id")

    return _graph_of(parse, "GML", where)


def _count(node: str, edge: str, text: str, where: str) -> None:
    """Refuse a graph that is too large before anything is built of it; the patterns begin nodes and edges."""
    check_size(len(re.findall(node, text)), len(re.findall(edge, text)), where)


def _refuse_definitions(text: str, where: str) -> None:
    """Entities of a document type definition can grow without bounds; GraphML needs none."""

    def refuse(*_: object) -> None:
        raise refusal(where, "has a document type definition (<!DOCTYPE …>): remove it, GraphML needs none")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text.encode(), True)
    except (expat.ExpatError, ValueError) as error:
        raise refusal(where, f"no valid XML: {error}") from error


def _graph_of(parse: Callable[[], Any], what: str, where: str) -> Graph:
    import networkx

    try:
        graph = parse()
    except (networkx.NetworkXException, *WRONG_TEXT) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise refusal(where, f"no valid {what}: {reason}") from error
    nodes = tuple(_node(str(key), dict(data), where) for key, data in graph.nodes(data=True))
    edges = [
        Edge(str(a), str(b), _link_fields(dict(data), f"{where}, link {a}--{b}"))
        for a, b, data in graph.edges(data=True)
    ]
    title = graph.graph.get("label") or graph.graph.get("name") or ""
    return Graph(str(title), nodes, tuple(_paired(edges) if graph.is_directed() else edges))


def _node(key: str, data: dict[str, Any], where: str) -> Node:
    place = f"{where}, node {key}"
    name = str(data.get("label") or data.get("name") or key)
    kinds = [str(data.get(attribute, "")).lower() for attribute in ("type", "kind", "role")]
    graphics = data.get("graphics")
    spot = graphics if isinstance(graphics, dict) else data
    at = None
    if "x" in spot and "y" in spot:
        at = (number_of(spot["x"], f"{place}.x"), number_of(spot["y"], f"{place}.y"))
    if any(kind in SWITCHES for kind in kinds):
        return Node(key, name, True, {}, at)
    fields = {attribute: value for attribute, value in data.items() if attribute in OF_DEVICE}
    if fields.get("role") not in ("worker", "terminal"):
        fields.pop("role", None)
    return Node(key, name, False, fields, at)


def _link_fields(data: dict[str, Any], where: str) -> dict[str, Any]:
    fields = link_options(data, where)
    if data.get("LinkSpeedRaw") not in (None, ""):
        fields["bit_per_s"] = number_of(data["LinkSpeedRaw"], f"{where}.LinkSpeedRaw")
    return fields | {name: value for name, value in data.items() if name in OF_LINK}


def _paired(edges: list[Edge]) -> list[Edge]:
    """The links of a directed graph: an edge and one back between the same nodes are the
    directions of one.
    """
    found: list[Edge] = []
    single: dict[tuple[str, str], list[int]] = {}
    for edge in edges:
        waiting = single.get((edge.b, edge.a))
        if waiting and edge.a != edge.b:
            index = waiting.pop()
            there = found[index]
            back = {REVERSED[name]: value for name, value in edge.fields.items() if name in REVERSED}
            found[index] = there._replace(fields=back | there.fields)
        else:
            single.setdefault((edge.a, edge.b), []).append(len(found))
            found.append(edge)
    return found
