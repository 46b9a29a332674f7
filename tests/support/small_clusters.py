"""Clusters for tests: few slow devices, links as the test wants them."""

from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec


def device(name: str) -> DeviceSpec:
    return DeviceSpec(name=name, flop_per_s=5e8, memory_bytes=1e9, memory_byte_per_s=1e9)


def cluster(devices: str, switches: str, *links: LinkSpec) -> ClusterSpec:
    """`cluster("a b", "s", link("a", "s"), link("b", "s"))`; the first device is the source."""
    names = devices.split()
    return ClusterSpec(
        name="test",
        source=names[0],
        devices=tuple(device(name) for name in names),
        switches=tuple(SwitchSpec(name=name) for name in switches.split()),
        links=links,
    )


def link(a: str, b: str, bit_per_s: float = 50e6, **more: float) -> LinkSpec:
    return LinkSpec(a=a, b=b, bit_per_s=bit_per_s, **more)


def star(count: int, bit_per_s: float = 50e6, **more: float) -> ClusterSpec:
    names = [f"n{rank}" for rank in range(count)]
    return cluster(" ".join(names), "hub", *(link(name, "hub", bit_per_s, **more) for name in names))


def ring(count: int) -> ClusterSpec:
    names = [f"n{rank}" for rank in range(count)]
    links = [link(name, names[(rank + 1) % count]) for rank, name in enumerate(names)]
    return cluster(" ".join(names), "", *links)


def mesh(count: int) -> ClusterSpec:
    names = [f"n{rank}" for rank in range(count)]
    links = [link(a, b) for rank, a in enumerate(names) for b in names[rank + 1 :]]
    return cluster(" ".join(names), "", *links)


def loop_of_switches() -> ClusterSpec:
    """Four switches in a loop with a device on each: a layer-2 network would flood itself here."""
    switches = [f"s{index}" for index in range(4)]
    links = [link(name, switches[(index + 1) % 4]) for index, name in enumerate(switches)]
    links += [link(f"n{index}", name) for index, name in enumerate(switches)]
    return cluster("n0 n1 n2 n3", " ".join(switches), *links)


def chain() -> ClusterSpec:
    """a - b - s - t - c: a device and two switches in the middle, and no two rates alike."""
    return cluster(
        "a b c",
        "s t",
        link("a", "b", 40e6, reverse_bit_per_s=20e6),
        link("b", "s", 30e6),
        link("s", "t", 60e6),
        link("t", "c", 50e6, reverse_bit_per_s=10e6),
    )
