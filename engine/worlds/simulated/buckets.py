"""The token buckets of emulated links, which let the first bytes of a message through at once.

An idle link's bucket fills at the link's rate, up to its size; a message keeps it as it is, because its bytes
take what comes in. At 20 Mbit/s it holds one frame and 0.12 ms, so that a message of two frames takes a third
of its size divided by the rate.
"""

from __future__ import annotations

from engine.domain.token_bucket import burst_payload_bytes
from engine.domain.units import BITS_PER_BYTE
from engine.worlds.simulated.flows import DirectedLink, Route, SharedLinks


class TokenBuckets:
    """The buckets of all links of `shared`, full at first."""

    def __init__(self, shared: SharedLinks):
        self.shared = shared
        self._held: dict[DirectedLink, tuple[float, float]] = {}
        """When a bucket was used last, and the bytes that it held then."""

    def take(self, now_s: float, route: Route, size_bytes: int) -> float:
        """The bytes of a message that pass all links of `route` at once, which their buckets lose.

        What one of the buckets holds beyond that, it keeps for messages on other routes.
        """
        held = {link: self._held_bytes(now_s, link) for link in route}
        passed = min((size_bytes, *held.values()))
        for link, before in held.items():
            self._held[link] = now_s, before - passed
        return passed

    def end(self, now_s: float, route: Route) -> None:
        """The rest of a message has passed `route` at its links' rates: their buckets fill from now on."""
        for link in route:
            self._held[link] = now_s, self._held[link][1]

    def _held_bytes(self, now_s: float, link: DirectedLink) -> float:
        bit_per_s = self.shared.capacity[link]
        size_bytes = burst_payload_bytes(bit_per_s)
        since_s, left_bytes = self._held.get(link, (now_s, size_bytes))
        filled = (now_s - since_s) * bit_per_s / BITS_PER_BYTE if self.shared.is_idle(link) else 0.0
        return min(size_bytes, left_bytes + filled)
