"""Shapes: the links (and switches) that join given devices into a star, ring, mesh or tree.

Every shape takes the devices and one link as the pattern of all its links (the pattern's ends do not matter).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise

from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec
from engine.domain.errors import SpecError

SHAPES = ("star", "ring", "mesh", "tree")
TREE_FAN_OUT = 2


def star(devices: Sequence[DeviceSpec], link: LinkSpec) -> ClusterSpec:
    """Every device on one switch."""
    ends = [(device.name, "hub") for device in devices]
    return _cluster("star", devices, ("hub",), ends if len(devices) > 1 else [], link)


def ring(devices: Sequence[DeviceSpec], link: LinkSpec) -> ClusterSpec:
    """Every device linked to the next, the last to the first; two devices share one link."""
    names = [device.name for device in devices]
    ends = list(pairwise(names))
    if len(names) > 2:
        ends.append((names[-1], names[0]))
    return _cluster("ring", devices, (), ends, link)


def mesh(devices: Sequence[DeviceSpec], link: LinkSpec) -> ClusterSpec:
    """Every device linked to every other."""
    return _cluster("mesh", devices, (), list(combinations([device.name for device in devices], 2)), link)


def tree(devices: Sequence[DeviceSpec], link: LinkSpec) -> ClusterSpec:
    """A binary tree in the order given: device i hangs below device (i - 1) // 2."""
    names = [device.name for device in devices]
    ends = [(name, names[(index - 1) // TREE_FAN_OUT]) for index, name in enumerate(names) if index > 0]
    return _cluster("tree", devices, (), ends, link)


def shape(name: str) -> Callable[[Sequence[DeviceSpec], LinkSpec], ClusterSpec]:
    """The function of that name; raises `SpecError` naming the known shapes."""
    functions = {"star": star, "ring": ring, "mesh": mesh, "tree": tree}
    if name not in functions:
        raise SpecError(f"no shape {name}: there are {', '.join(SHAPES)}.", [("shape", f"unknown: {name}")])
    return functions[name]


def copies(preset: DeviceSpec, number: int, prefix: str = "device") -> tuple[DeviceSpec, ...]:
    """`number` devices like `preset`, called by `prefix` device-1, device-2, …"""
    return tuple(preset.model_copy(update={"name": f"{prefix}-{index + 1}"}) for index in range(number))


def _cluster(
    name: str,
    devices: Sequence[DeviceSpec],
    switches: Sequence[str],
    ends: Sequence[tuple[str, str]],
    link: LinkSpec,
) -> ClusterSpec:
    if not devices:
        raise SpecError(f"{name}: needs at least one device.", fields=[("devices", "at least one")])
    links = tuple(link.model_copy(update={"a": a, "b": b}) for a, b in ends)
    cluster: ClusterSpec = ClusterSpec.parse(
        {
            "name": f"{name}-{len(devices)}",
            "source": devices[0].name,
            "devices": tuple(devices),
            "switches": tuple(SwitchSpec(name=switch) for switch in switches),
            "links": links,
        },
        name,
    )
    return cluster
