"""Estimate when messages between devices arrive that share links, one by one or in a collective. Pure.

Messages that cross a link together share it, so all of them have crossed it when the sum of their bytes has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.units import BITS_PER_BYTE
from engine.program.collectives import AllReduce, chunk_bounds
from engine.program.frames import framed_bytes

Floats = NDArray[np.float64]
"""Numbers of all devices, or of all pairs of them [K, K]."""

Flags = NDArray[np.bool_]
"""Yes or no for all pairs of devices [K, K]."""


class Exchange:
    """When messages between `devices` (ranks) arrive, by the links that they share.

    `fixed_s` [K, K] is the cost of one message besides its bytes, from row to column: overhead and delay;
    `byte_s` [K, K] is what both devices take for each byte, besides the links.
    """

    def __init__(self, cluster: ClusterSpec, devices: Sequence[int]):
        size = len(devices)
        used: dict[tuple[int, bool], int] = {}
        routes = [
            (i, j, [used.setdefault((hop.link, hop.forward), len(used)) for hop in cluster.path(a, b)])
            for i, a in enumerate(devices)
            for j, b in enumerate(devices)
            if a != b
        ]
        self.rate: Floats = np.array([cluster.links[link].rate(ahead) for link, ahead in used] or [1.0])
        self.crosses: Flags = np.zeros((size, size, len(self.rate)), dtype=bool)
        self.fixed_s: Floats = np.zeros((size, size))
        self.byte_s: Floats = np.zeros((size, size))
        for i, j, links in routes:
            self.crosses[i, j, links] = True
            src, dst = cluster.devices[devices[i]], cluster.devices[devices[j]]
            self.fixed_s[i, j] = (
                src.message_overhead_s + cluster.delay_s(devices[i], devices[j]) + dst.receive_overhead_s
            )
            self.byte_s[i, j] = _byte_s(src) + _byte_s(dst)

    def loads_s(self, message_bytes: Floats, sent: Flags) -> Floats:
        """Seconds [K, links] for which each device's messages occupy each link: i sends `message_bytes[i]` to
        every j with `sent[i, j]`.
        """
        count = (self.crosses & sent[:, :, None]).sum(1)
        occupied_s: Floats = count * message_bytes[:, None] * BITS_PER_BYTE / self.rate
        return occupied_s

    def arrivals_s(
        self, start_s: Floats, message_bytes: Floats, sent: Flags, free_s: Floats
    ) -> tuple[Floats, Floats]:
        """When each device has all messages to it, -inf without any, and when each link is free again.
        Messages leave at `start_s`, links are busy until `free_s`.
        """
        sent = sent & (message_bytes > 0)[:, None]
        load_s = self.loads_s(message_bytes, sent)
        order = np.argsort(start_s, kind="stable")
        remaining_s = np.cumsum(load_s[order][::-1], axis=0)[::-1]
        began_s = np.where(load_s[order] > 0, start_s[order][:, None], -np.inf)
        used = load_s.any(0)
        drained_s = np.maximum((began_s + remaining_s).max(0), free_s + load_s.sum(0))
        crosses = (self.crosses & sent[:, :, None]).any(0)
        by_links_s = np.where(crosses, drained_s[None, :], -np.inf).max(1)
        ends_s = self.fixed_s + self.byte_s * message_bytes[:, None]
        arrived_s: Floats = by_links_s + np.where(sent, ends_s, 0.0).max(0)
        return arrived_s, np.where(used, drained_s, free_s)

    def ring_s(self, start_s: Floats, message_bytes: Floats) -> Floats:
        """When each device has all shards that are passed around the ring."""
        size = len(start_s)
        ring = self._ring
        has_s, free_s = start_s.copy(), start_s.copy()
        for step in range(size - 1):
            passed = message_bytes[(ring.me - step) % size]
            free_s = np.maximum(has_s, free_s) + passed * BITS_PER_BYTE / ring.rate
            ends_s = ring.fixed_s + ring.byte_s * passed
            has_s = (free_s + np.where(passed > 0, ends_s, 0.0))[ring.left]
        return np.maximum(has_s, start_s)

    def all_reduce_s(
        self, how: AllReduce, start_s: Floats, size_bytes: int, elements: int, add_s: Floats
    ) -> Floats:
        """When each device has the sum of `size_bytes`, by ring or direct, as `all_reduce`; adding
        another's whole tensor, of so many `elements`, takes `add_s`.
        """
        size = len(start_s)
        if size == 1:
            return start_s
        if how == "direct":
            message_bytes = np.full(size, framed_bytes(float(size_bytes)))
            sent = ~np.eye(size, dtype=bool)
            arrived_s, _ = self.arrivals_s(start_s, message_bytes, sent, np.zeros(len(self.rate)))
            return np.maximum(arrived_s + add_s, start_s + (size - 1) * add_s)
        widths = np.array([b - a for a, b in pairwise(chunk_bounds(elements, size))], dtype=float)
        return self._ring_sum_s(start_s, widths / elements, size_bytes, add_s)

    def _ring_sum_s(self, start_s: Floats, share: Floats, size_bytes: int, add_s: Floats) -> Floats:
        """When each device has the sum that goes around the ring twice, `share` of the tensor in each chunk:
        to add it up, and to hand it on.
        """
        size = len(start_s)
        ring = self._ring
        has_s, free_s = start_s.copy(), start_s.copy()
        for step in range(2 * (size - 1)):
            first, adds = (ring.me, True) if step < size - 1 else (ring.me + 1, False)
            chunk = share[(first - step % (size - 1)) % size]
            passed = np.where(chunk > 0, framed_bytes(chunk * size_bytes), 0.0)
            free_s = np.maximum(has_s, free_s) + passed * BITS_PER_BYTE / ring.rate
            ends_s = ring.fixed_s + ring.byte_s * passed
            arrived_s = (free_s + np.where(passed > 0, ends_s, 0.0))[ring.left]
            has_s = np.maximum(arrived_s, has_s)
            if adds:
                has_s = has_s + chunk[ring.left] * add_s
        return has_s

    @cached_property
    def _ring(self) -> _Ring:
        me = np.arange(len(self.crosses))
        right = (me + 1) % len(me)
        hops = self.crosses[me, right]
        sharing_rate = self.rate / np.maximum(1, hops.sum(0))
        rate: Floats = np.where(hops, sharing_rate[None, :], np.inf).min(1)
        return _Ring(me, (me - 1) % len(me), rate, self.fixed_s[me, right], self.byte_s[me, right])


class _Ring(NamedTuple):
    """Each device in a ring with its neighbour to the `left`, and its hop to the right: the bit/s that links
    shared with other hops leave it, and its costs as in `Exchange`.
    """

    me: NDArray[np.int_]
    left: NDArray[np.int_]
    rate: Floats
    fixed_s: Floats
    byte_s: Floats


def _byte_s(device: DeviceSpec) -> float:
    """Seconds that each byte of a message takes at its end `device`."""
    staging_s = 1 / device.staging_byte_per_s if device.staging_byte_per_s else 0.0
    return device.byte_overhead_s + staging_s
