"""Computes initial TCP windows as large as those of a connection that has been in use for a while.

A new connection sends ten frames and waits for their acknowledgement, so over a path with delay the first
long messages would stop for several round trips. Real devices keep their connections open, and a run is
usually too short for windows to grow.
"""

from __future__ import annotations

import math

from engine.domain.cluster import ClusterSpec
from engine.domain.token_bucket import SEGMENT_BYTES
from engine.domain.units import BITS_PER_BYTE
from engine.worlds.real.connections import SEND_BUFFER_BYTES

DEFAULT_FRAMES = 10
"""The kernel's own initial window (RFC 6928)."""

RECEIVE_BUFFER_BYTES = 32 << 20
"""Receive buffer of a new connection. Half of it is the window offered: what 1 Gbit/s carries in
130 ms. The kernel's default of 128 KiB would grow only as frames arrive."""

TCP_RMEM = f"4096 {RECEIVE_BUFFER_BYTES} {2 * RECEIVE_BUFFER_BYTES}"


def first_window_frames(cluster: ClusterSpec, src: int, dst: int) -> int | None:
    """Initial congestion window from rank `src` to `dst`, in frames; None without delay.

    A round trip at full rate plus the send buffer; less where losses keep windows at sqrt(3 / (2 p)) frames
    (Mathis et al., "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm", 1997, equation 3).
    """
    there = cluster.path(src, dst)
    in_flight = in_flight_bytes(cluster, src, dst)
    if not in_flight:
        return None
    frames = math.ceil((SEND_BUFFER_BYTES + in_flight) / SEGMENT_BYTES)
    loss_frac = 1 - math.prod(1 - cluster.links[hop.link].loss(hop.forward) for hop in there)
    if loss_frac:
        frames = min(frames, math.ceil(math.sqrt(1.5 / loss_frac)))
    return max(DEFAULT_FRAMES, frames)


def in_flight_bytes(cluster: ClusterSpec, src: int, dst: int) -> float:
    """The bandwidth-delay product of the path from rank `src` to `dst`."""
    there, back = cluster.path(src, dst), cluster.path(dst, src)
    round_trip_s = sum(cluster.links[hop.link].delay(hop.forward) for hop in (*there, *back))
    return round_trip_s * min(cluster.links[hop.link].rate(hop.forward) for hop in there) / BITS_PER_BYTE


def tcp_wmem(cluster: ClusterSpec, src: int) -> str | None:
    """The send buffers of rank `src`, large enough for all of its paths (see `tcp(7)`); None without delay.

    A new socket has it at once and keeps it: the kernel counts twice what a socket may hold.
    """
    if not any(link.delay(way) for link in cluster.links for way in (True, False)):
        return None
    others = [dst for dst in range(len(cluster.devices)) if dst != src]
    most = max((in_flight_bytes(cluster, src, dst) for dst in others), default=0.0)
    size = 2 * (SEND_BUFFER_BYTES + math.ceil(most))
    return f"4096 {size} {size}" if most else None
