"""How long an idle path takes for a message, as links are set right now: the real world's lower bound."""

from __future__ import annotations

import time

from engine.cluster import ClusterSpec, DeviceSpec
from engine.units import transfer_s


def sender_cost_s(device: DeviceSpec, size_bytes: int) -> float:
    """Virtual seconds between asking to send and the first byte on the wire: fixed cost and staging."""
    staging_s = size_bytes / device.staging_byte_per_s if device.staging_byte_per_s else 0.0
    return device.message_overhead_s + staging_s


class PathTimes:
    """Paths to device `rank`. Rates change while a run goes on; a message under way then has no bound."""

    def __init__(self, cluster: ClusterSpec, rank: int):
        self.cluster = cluster
        self.rates = {
            (index, forward): link.rate(forward)
            for index, link in enumerate(cluster.links) for forward in (True, False)
        }
        self.paths = {
            src: [(hop.link, hop.forward) for hop in cluster.path(src, rank)]
            for src in range(len(cluster.devices)) if src != rank
        }
        self.changed_s = 0.0

    def set_rate(self, link: int, forward: bool, bit_per_s: float) -> None:
        self.rates[link, forward] = bit_per_s
        self.changed_s = time.monotonic()

    def unloaded_s(self, src: int, size_bytes: int, sent_s: float) -> float:
        """Virtual seconds of a message from `src`: sender's cost, the slowest link's transfer, all delays.

        0 if a rate has changed since `sent_s` (monotonic wall).
        """
        if sent_s <= self.changed_s:
            return 0.0
        path = self.paths[src]
        delay_s = sum(self.cluster.links[link].delay_s for link, _ in path)
        slowest = min(self.rates[way] for way in path)
        sender_s = sender_cost_s(self.cluster.devices[src], size_bytes)
        return sender_s + transfer_s(size_bytes, slowest) + delay_s
