"""A cluster of the nodes and links that a foreign drawing has."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from pathlib import PurePath
from typing import Any, NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from topologies.drawn import Drawn, refusal
from topologies.layout import CanvasLayout, arrange
from topologies.presets import preset

MAX_NODES, MAX_EDGES = 1000, 4000
CARD_STEP = 240
"""Canvas units between the nearest two nodes: a device's card is 184 wide."""
MAX_SCALE = 6.0


class Defaults(NamedTuple):
    """What a drawing does not say: the preset of its devices, and the rate of its links, bit/s."""

    preset: str = "raspberry-pi-4"
    bit_per_s: float = 100e6


class Node(NamedTuple):
    """A node of a drawing. `key` is what links call it. `fields` are those of `DeviceSpec` and `preset`; a
    switch has none.
    """

    key: str
    name: str
    is_switch: bool
    fields: dict[str, Any]
    at: tuple[float, float] | None


class Edge(NamedTuple):
    """A link of a drawing. `fields` are those of `LinkSpec` but its ends."""

    a: str
    b: str
    fields: dict[str, Any]


class Graph(NamedTuple):
    """`left_out`: what the drawing has and a cluster does not, in words."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: tuple[str, ...] = ()


def check_size(nodes: int, edges: int, where: str) -> None:
    """Check that a drawing is not too large; raises `SpecError`."""
    for number, limit, what in ((nodes, MAX_NODES, "nodes"), (edges, MAX_EDGES, "links")):
        if number > limit:
            raise refusal(where, f"has {number:,} {what}, and the limit is {limit:,}")


def drawing_of(graph: Graph, where: str, defaults: Defaults) -> Drawn:
    """The cluster that a graph draws. Raises `SpecError` for one that is no cluster, or too large."""
    check_size(len(graph.nodes), len(graph.edges), where)
    names = _names(graph.nodes)
    for edge in graph.edges:
        for end in (edge.a, edge.b):
            if end not in names:
                raise refusal(where, f"a link ends at {end[:40]}, which is no node of it")
    devices = [node for node in graph.nodes if not node.is_switch]
    if not devices:
        rest = f"; not read: {'; '.join(graph.left_out)}" if graph.left_out else ""
        raise refusal(
            where, f"has no device: {len(graph.nodes)} of {len(graph.nodes)} nodes are switches{rest}"
        )
    stem = PurePath(where).stem
    spec: ClusterSpec = ClusterSpec.parse(
        {
            "name": _slug(stem),
            "title": graph.title[:200],
            "description": f"Not read of {stem}: {'; '.join(graph.left_out)}." if graph.left_out else "",
            "source": names[devices[0].key],
            "devices": [_device(node, names[node.key], where, defaults) for node in devices],
            "switches": [{"name": names[node.key]} for node in graph.nodes if node.is_switch],
            "links": list(_links(graph.edges, names, defaults)),
        },
        where,
    )
    return Drawn(spec, _layout(graph.nodes, names, spec, where))


def _device(node: Node, name: str, where: str, defaults: Defaults) -> dict[str, Any]:
    fields = dict(node.fields)
    try:
        base = preset(str(fields.pop("preset", defaults.preset)))
    except SpecError as error:
        raise SpecError(f"{where}, node {node.name}: {error}", fields=error.fields) from error
    return base.model_dump() | fields | {"name": name}


def _links(edges: Iterable[Edge], names: dict[str, str], defaults: Defaults) -> Iterable[dict[str, Any]]:
    numbers: Counter[frozenset[str]] = Counter()
    for edge in edges:
        a, b = names[edge.a], names[edge.b]
        numbers[frozenset((a, b))] += 1
        yield (
            {"bit_per_s": defaults.bit_per_s}
            | edge.fields
            | {
                "a": a,
                "b": b,
                "parallel": numbers[frozenset((a, b))],
            }
        )


def _names(nodes: Iterable[Node]) -> dict[str, str]:
    """Key → a name that a cluster allows; names that would be equal get a number."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for node in nodes:
        name = base = _slug(node.name)
        number = 2
        while name in taken:
            name = f"{base[:27]}-{number}"
            number += 1
        taken.add(name)
        names[node.key] = name
    return names


def _slug(text: str) -> str:
    """The name nearest to a text that is allowed: `Host 1` → `host-1`."""
    letters = "".join(part for part in unicodedata.normalize("NFKD", text) if not unicodedata.combining(part))
    plain = re.sub(r"[^a-z0-9_-]+", "-", letters.lower()).strip("-") or "node"
    return (plain if plain[0].isalpha() else f"n{plain}")[:31]


def _layout(nodes: tuple[Node, ...], names: dict[str, str], spec: ClusterSpec, where: str) -> CanvasLayout:
    """The places of the nodes, moved apart until cards do not overlap; arranged if a place is missing."""
    drawn = {names[node.key]: node.at for node in nodes if node.at is not None}
    if len(drawn) < len(nodes):
        return arrange(spec)
    pairs = combinations(list(drawn.values())[:200], 2)  # of a large graph, a sample
    nearest = min((math.dist(one, other) for one, other in pairs), default=CARD_STEP)
    scale = min(MAX_SCALE, max(1.0, CARD_STEP / nearest)) if nearest > 0 else MAX_SCALE
    left, top = (min(at[axis] for at in drawn.values()) for axis in (0, 1))
    places = {
        name: {"x": round((x - left) * scale, 1), "y": round((y - top) * scale, 1)}
        for name, (x, y) in drawn.items()
    }
    layout: CanvasLayout = CanvasLayout.parse({"positions": places}, where)
    return layout
