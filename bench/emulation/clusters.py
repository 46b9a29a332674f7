"""Makes the clusters that the benchmarks measure."""

from __future__ import annotations

from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec


def star(count: int, flop_per_s: float, bit_per_s: float) -> ClusterSpec:
    """Equal devices around one switch."""
    devices = tuple(
        DeviceSpec(name=f"n{rank}", flop_per_s=flop_per_s, memory_bytes=2e9, memory_byte_per_s=flop_per_s)
        for rank in range(count)
    )
    links = tuple(LinkSpec(a=device.name, b="hub", bit_per_s=bit_per_s) for device in devices)
    return ClusterSpec(
        name=f"star-{count}", source="n0", devices=devices, switches=(SwitchSpec(name="hub"),), links=links
    )
