"""Estimate how long a message takes between two devices that nobody else disturbs, for planning. Pure."""

from __future__ import annotations

from engine.domain.cluster import ClusterSpec
from engine.domain.units import transfer_s
from engine.program.frames import framed_bytes


def message_s(cluster: ClusterSpec, src: int, dst: int, payload_bytes: int) -> float:
    """Seconds from sending a tensor of `payload_bytes` on device `src` until `dst` has it; 0 for itself."""
    if src == dst:
        return 0.0
    rate = min(cluster.links[hop.link].rate(hop.forward) for hop in cluster.path(src, dst))
    return transfer_s(framed_bytes(payload_bytes), rate) + fixed_s(cluster, src, dst)


def fixed_s(cluster: ClusterSpec, src: int, dst: int) -> float:
    """What every message from `src` to `dst` costs besides its bytes: overhead and delay."""
    return cluster.devices[src].message_overhead_s + cluster.delay_s(src, dst)
