"""Shared links as TCP shares them: every flow gets its max-min fair rate, recomputed when a flow
starts or ends or a link changes. Pure arithmetic over a virtual clock; no sockets.

A flow is the message at the head of one (src, dst) connection. Its rate is the largest for which no
directed link carries more than its capacity and no flow could gain without taking from a smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.cluster import ClusterSpec
from engine.units import BITS_PER_BYTE

Direction = tuple[int, bool]  # link index, crossed a→b
FINISHED_BITS = 1e-6


class Flow:
    """One message under way between ranks `ends`; `remaining_bits` shrink at `rate` bit/s."""

    __slots__ = ("ends", "on_done", "path", "rate", "remaining_bits")

    def __init__(
        self, path: tuple[Direction, ...], size_bytes: int, on_done: Callable[[], None],
        ends: tuple[int, int] = (-1, -1),
    ):
        self.path = path
        self.ends = ends
        self.remaining_bits = float(size_bytes * BITS_PER_BYTE)
        self.rate = 0.0
        self.on_done = on_done


class SharedLinks:
    """All directed links of a cluster and the flows on them, at one point in virtual time."""

    def __init__(self, cluster: ClusterSpec):
        self.capacity: dict[Direction, float] = {
            (index, forward): link.rate(forward)
            for index, link in enumerate(cluster.links)
            for forward in (True, False)
        }
        self.down: set[int] = set()
        self.flows: list[Flow] = []
        self.at_s = 0.0

    def advance(self, now_s: float) -> list[Flow]:
        """Move to `now_s` at the current rates; returns the flows that are finished by then, removed."""
        elapsed, self.at_s = now_s - self.at_s, now_s
        finished = []
        for flow in self.flows:
            flow.remaining_bits -= flow.rate * elapsed
            # what is left must be worth more than the clock's own resolution, or time stands still
            if flow.remaining_bits <= max(FINISHED_BITS, flow.rate * now_s * 1e-15):
                finished.append(flow)
        if finished:
            self.flows = [flow for flow in self.flows if flow not in finished]
        return finished

    def next_end_s(self) -> float | None:
        """When the first flow ends at the current rates; None if none moves."""
        times = [flow.remaining_bits / flow.rate for flow in self.flows if flow.rate > 0]
        return self.at_s + min(times) if times else None

    def share(self) -> None:
        """Recompute every flow's rate (progressive filling)."""
        rates = max_min_rates([flow.path for flow in self.flows], self._effective)
        for flow, rate in zip(self.flows, rates, strict=True):
            flow.rate = rate

    def _effective(self, direction: Direction) -> float:
        return 0.0 if direction[0] in self.down else self.capacity[direction]


def max_min_rates(
    paths: Iterable[tuple[Direction, ...]], capacity: Callable[[Direction], float]
) -> list[float]:
    """Max-min fair rates (bit/s) of flows over `paths`. An empty path is unlimited."""
    paths = list(paths)
    users: dict[Direction, set[int]] = {}
    for index, path in enumerate(paths):
        for direction in path:
            users.setdefault(direction, set()).add(index)
    left = {direction: capacity(direction) for direction in users}
    rates = [float("inf")] * len(paths)
    if all(len(flows) == 1 for flows in users.values()):  # nobody shares: the common case, and a fast one
        return [min((left[d] for d in path), default=float("inf")) for path in paths]
    while users:
        tightest = min(users, key=lambda d: (left[d] / len(users[d]), d))
        fair = max(0.0, left[tightest] / len(users[tightest]))
        for index in tuple(users[tightest]):
            rates[index] = fair
            for direction in paths[index]:
                left[direction] -= fair
                users[direction].discard(index)
                if not users[direction]:
                    del users[direction]
    return rates
