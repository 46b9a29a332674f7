"""Estimate how long a message takes between two devices that nobody else disturbs, for planning. Pure."""

from __future__ import annotations

from engine.domain.cluster import ClusterSpec
from engine.domain.message_costs import receiver_cost_s, sender_cost_s
from engine.domain.units import transfer_s
from engine.program.frames import framed_bytes


def message_s(cluster: ClusterSpec, src: int, dst: int, payload_bytes: int) -> float:
    """Seconds from sending a tensor of `payload_bytes` on device `src` until `dst` has it; 0 for itself."""
    if src == dst:
        return 0.0
    rate = min(cluster.links[hop.link].rate(hop.forward) for hop in cluster.path(src, dst))
    sender, receiver, size_bytes = cluster.devices[src], cluster.devices[dst], framed_bytes(payload_bytes)
    ends_s = sender_cost_s(sender, size_bytes) + receiver_cost_s(receiver, size_bytes)
    return transfer_s(size_bytes, rate) + cluster.delay_s(src, dst) + ends_s


def fixed_s(cluster: ClusterSpec, src: int, dst: int) -> float:
    """What every message from `src` to `dst` costs besides its bytes: overhead at both ends, and delay."""
    sender, receiver = cluster.devices[src], cluster.devices[dst]
    return sender.message_overhead_s + receiver.receive_overhead_s + cluster.delay_s(src, dst)
