"""Shared links as TCP shares them: every flow gets its max-min fair rate, recomputed when a flow
starts or ends or a link changes. Pure arithmetic over a virtual clock; no sockets.

A flow is the message at the head of one (src, dst) connection. Its rate is the largest for which no
directed link carries more than its capacity and no flow could gain without taking from a smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from math import inf

from engine.domain.cluster import ClusterSpec
from engine.domain.units import BITS_PER_BYTE

Direction = tuple[int, bool]  # link index, crossed a→b
FINISHED_BITS = 1e-6


class Flow:
    """One message under way between ranks `ends`: `remaining_bits` were left at `since_s`, when it began to
    move at `rate` bit/s, and is through at `end_s` (never: inf).
    """

    __slots__ = ("end_s", "ends", "number", "on_done", "path", "rate", "remaining_bits", "since_s")

    def __init__(
        self,
        path: tuple[Direction, ...],
        size_bytes: int,
        on_done: Callable[[], None],
        ends: tuple[int, int] = (-1, -1),
    ):
        self.path = path
        self.ends = ends
        self.remaining_bits = float(size_bytes * BITS_PER_BYTE)
        self.rate = 0.0
        self.since_s = 0.0
        self.end_s = inf
        self.number = -1
        self.on_done = on_done


class SharedLinks:
    """All directed links of a cluster and the flows on them, at one point in virtual time.

    Flows that share no link, not even through others, do not affect each other: rates are recomputed only
    for those that a change can reach, and a flow is looked at only when its rate changes or it ends.
    """

    def __init__(self, cluster: ClusterSpec):
        self.capacity: dict[Direction, float] = {
            (index, forward): link.rate(forward)
            for index, link in enumerate(cluster.links)
            for forward in (True, False)
        }
        self.down: set[int] = set()
        self.at_s = 0.0
        self.flows: dict[Flow, None] = {}  # in order of entry
        self._users: dict[Direction, dict[Flow, None]] = {way: {} for way in self.capacity}
        self._touched: dict[Direction, None] = {}
        self._ends: list[tuple[float, int, Flow]] = []  # a heap; entries of other times than `end_s` are old
        self._numbers = count()

    def add(self, flow: Flow) -> None:
        """`flow` moves from the next `share` on."""
        flow.number = next(self._numbers)
        self.flows[flow] = None
        for way in flow.path:
            self._users[way][flow] = None
            self._touched[way] = None

    def remove(self, flow: Flow) -> None:
        flow.end_s = inf
        del self.flows[flow]
        for way in flow.path:
            del self._users[way][flow]
            self._touched[way] = None

    def clear(self, now_s: float) -> None:
        """No flows any more; the links stay as they are."""
        for flow in list(self.flows):
            self.remove(flow)
        self.at_s = now_s
        self._ends.clear()

    def set_rate(self, way: Direction, bit_per_s: float) -> None:
        self.capacity[way] = bit_per_s
        self._touched[way] = None

    def set_down(self, link: int, down: bool) -> None:
        """Nothing moves on a link that is down."""
        (self.down.add if down else self.down.discard)(link)
        self._touched |= {(link, True): None, (link, False): None}

    def advance(self, now_s: float) -> list[Flow]:
        """Move to `now_s` at the current rates; returns the flows that are finished by then, removed."""
        self.at_s = now_s
        finished = []
        while self._next() is not None:
            end_s, _, flow = self._ends[0]
            # what is left must be worth more than the clock's own resolution, or time stands still
            if (end_s - now_s) * flow.rate > max(FINISHED_BITS, flow.rate * now_s * 1e-15):
                break
            heappop(self._ends)
            finished.append(flow)
            self.remove(flow)
        return sorted(finished, key=lambda flow: flow.number)

    def next_end_s(self) -> float | None:
        """When the first flow ends at the current rates; None if none moves."""
        flow = self._next()
        return None if flow is None else flow.end_s

    def share(self) -> None:
        """Recompute the rates that a change since the last time can have changed (progressive filling)."""
        for flows in self._affected():
            rates = max_min_rates([flow.path for flow in flows], self._effective)
            for flow, rate in zip(flows, rates, strict=True):
                if rate != flow.rate:
                    self._move(flow, rate)
        self._touched.clear()

    def _move(self, flow: Flow, rate: float) -> None:
        flow.remaining_bits -= flow.rate * (self.at_s - flow.since_s)
        flow.rate, flow.since_s = rate, self.at_s
        flow.end_s = self.at_s + max(0.0, flow.remaining_bits) / rate if rate else inf
        if rate:
            heappush(self._ends, (flow.end_s, next(self._numbers), flow))

    def _next(self) -> Flow | None:
        """The flow that ends first."""
        while self._ends:
            end_s, _, flow = self._ends[0]
            if end_s == flow.end_s:
                return flow
            heappop(self._ends)
        return None

    def _affected(self) -> Iterator[list[Flow]]:
        """The connected sets of flows on the links that were touched, each in order of entry."""
        met: set[Direction] = set()
        for first in self._touched:
            flows: set[Flow] = set()
            frontier = [] if first in met else [first]
            met.add(first)
            while frontier:
                for flow in self._users[frontier.pop()]:
                    if flow not in flows:
                        flows.add(flow)
                        frontier += [way for way in flow.path if way not in met]
                        met.update(flow.path)
            if flows:
                yield sorted(flows, key=lambda flow: flow.number)

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
    rates = [inf] * len(paths)
    if all(len(flows) == 1 for flows in users.values()):  # nobody shares: the common case, and a fast one
        return [min((left[d] for d in path), default=inf) for path in paths]
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
