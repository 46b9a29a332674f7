"""How a cluster is drawn: positions of nodes, bends of links, groups, and what is switched off.

Kept apart from the `ClusterSpec`: moving a node changes no run.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from pydantic import Field, field_validator

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.values import Value

MAX_BENDS = 20
"""Most bends of one link."""
MAX_DRAWN = 1200

RING_STEP = 270
"""Canvas units between a node and its children: node cards are 184 wide, link labels about 110."""


class Position(Value):
    x: float
    y: float


class Group(Value):
    """Nodes that are drawn together. Of a collapsed group only one card is shown, and its links to others.

    A group that has all nodes of another one is drawn around it.
    """

    name: str = Field(min_length=1, max_length=60)
    members: tuple[str, ...] = Field(max_length=MAX_DRAWN)
    collapsed: bool = False


class CanvasLayout(Value):
    """How a cluster is drawn.

    `disabled` holds names of nodes, and of links as `a--b`, that are drawn but take no part in a run. `bends`
    are the points that a link passes between its ends, by the link's name.
    """

    positions: dict[str, Position] = Field(default_factory=dict)
    disabled: tuple[str, ...] = ()
    bends: dict[str, tuple[Position, ...]] = Field(default_factory=dict)
    groups: tuple[Group, ...] = Field(default=(), max_length=200)

    @field_validator("bends")
    @classmethod
    def _few(cls, bends: dict[str, tuple[Position, ...]]) -> dict[str, tuple[Position, ...]]:
        for name, points in bends.items():
            if len(points) > MAX_BENDS:
                raise ValueError(f"{name} has {len(points)} bends, and the limit is {MAX_BENDS}")
        return bends


def arrange(cluster: ClusterSpec) -> CanvasLayout:
    """Positions for a cluster without a drawing: a tree around its centre, anything else on a circle."""
    neighbours = neighbours_of(cluster)
    is_tree = sum(map(len, neighbours.values())) == 2 * (len(neighbours) - 1) and is_connected(neighbours)
    places = radial(neighbours) if is_tree else circle(list(neighbours))
    left = min(x for x, _ in places.values())
    top = min(y for _, y in places.values())
    positions = {name: Position(x=round(x - left, 1), y=round(y - top, 1)) for name, (x, y) in places.items()}
    return CanvasLayout(positions=positions)


def enabled(cluster: ClusterSpec, layout: CanvasLayout) -> ClusterSpec:
    """The cluster without what is switched off; raises `SpecError` if the rest is no cluster."""
    off = set(layout.disabled)
    if not off:
        return cluster
    try:
        where = f"cluster {cluster.name} without {', '.join(layout.disabled)}"
        return ClusterSpec.parse(parts_on(cluster, layout), where)
    except SpecError as error:
        sentence = f"{str(error).rstrip('.')}; switch something on again."
        raise SpecError(sentence, fields=error.fields) from error


def placed(cluster: ClusterSpec, layout: CanvasLayout) -> CanvasLayout:
    """The layout with a computed position for every node that has none."""
    computed = arrange(cluster).positions
    return layout.model_copy(update={"positions": computed | layout.positions})


def parts_on(cluster: ClusterSpec, layout: CanvasLayout) -> dict[str, Any]:
    """The data of the cluster without what is switched off, whether or not it is a cluster."""
    off = set(layout.disabled)
    data = cluster.model_dump()
    data["devices"] = [row for row in data["devices"] if row["name"] not in off]
    data["switches"] = [row for row in data["switches"] if row["name"] not in off]
    data["links"] = [link for link in cluster.links if not off & {link.a, link.b, *link.names}]
    return data


def neighbours_of(cluster: ClusterSpec) -> dict[str, list[str]]:
    names = [device.name for device in cluster.devices] + [switch.name for switch in cluster.switches]
    neighbours: dict[str, list[str]] = {name: [] for name in names}
    for link in cluster.links:
        if link.b not in neighbours[link.a]:  # parallel links make no further neighbour
            neighbours[link.a].append(link.b)
            neighbours[link.b].append(link.a)
    return neighbours


def is_connected(neighbours: dict[str, list[str]]) -> bool:
    """Whether every node reaches every other: a switch need not."""
    seen, waiting = set[str](), [next(iter(neighbours))]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += neighbours[name]
    return len(seen) == len(neighbours)


def circle(names: list[str]) -> dict[str, tuple[float, float]]:
    """Clockwise from the top, neighbours on the circle about one step apart."""
    radius = max(1.2 * RING_STEP, len(names) * RING_STEP / (2 * math.pi))
    turn = 2 * math.pi / len(names)
    return {
        name: (radius * math.sin(index * turn), -radius * math.cos(index * turn))
        for index, name in enumerate(names)
    }


def radial(neighbours: dict[str, list[str]]) -> dict[str, tuple[float, float]]:
    """Places of a tree around its node with the most links; each subtree gets an angle in proportion to its
    leaves.
    """
    root = max(neighbours, key=lambda name: len(neighbours[name]))
    children: dict[str, list[str]] = {root: list(neighbours[root])}
    order = deque(children[root])
    parents = dict.fromkeys(children[root], root)
    while order:
        name = order.popleft()
        children[name] = [other for other in neighbours[name] if other != parents[name]]
        parents.update(dict.fromkeys(children[name], name))
        order.extend(children[name])
    leaves: dict[str, int] = {}
    for name in reversed(children):  # children come after their parents
        leaves[name] = sum(leaves[child] for child in children[name]) or 1
    places = {root: (0.0, 0.0)}
    widest = max(leaves[root] * RING_STEP / (2 * math.pi), RING_STEP)

    waiting = [(root, 1, -math.pi, math.pi)]
    while waiting:  # a chain of a thousand devices is deeper than functions may call each other
        name, depth, begin, end = waiting.pop()
        span = end - begin
        for child in children[name]:
            share = span * leaves[child] / leaves[name]
            angle, radius = begin + share / 2, widest + (depth - 1) * RING_STEP
            places[child] = (radius * math.cos(angle), radius * math.sin(angle))
            waiting.append((child, depth + 1, begin, begin + share))
            begin += share
    return places
