"""Max-min fair sharing of links, as an idealised TCP does it: pure arithmetic over virtual time.

A flow is the message at the head of one (src, dst) queue. Its rate is the largest for which no directed link
carries more than its capacity and no flow could get more without taking from one that has less. Rates change
only when a flow starts or ends or a link changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from math import inf

from engine.domain.cluster import ClusterSpec
from engine.domain.units import BITS_PER_BYTE

DirectedLink = tuple[int, bool]
"""A link's index, and whether it is crossed from its end a to its end b."""
Route = tuple[DirectedLink, ...]
"""The directed links from one device to another."""

FINISHED_BITS = 1e-6
"""A flow with no more than this left is complete: it is a rounding error."""
CLOCK_RESOLUTION = 1e-15
"""The relative rounding error of a time, which no flow can be more exact than."""


class Flow:
    """One message on the links of `route`, between the ranks `ends`.

    `remaining_bits` were left at `since_s`, when it got the rate `bit_per_s`. At that rate it ends at
    `end_s`, which is inf if it does not move.
    """

    __slots__ = ("bit_per_s", "end_s", "ends", "number", "on_done", "remaining_bits", "route", "since_s")

    def __init__(
        self,
        route: Route,
        size_bytes: float,
        on_done: Callable[[], None],
        ends: tuple[int, int],
    ):
        self.route = route
        self.ends = ends
        self.remaining_bits = float(size_bytes * BITS_PER_BYTE)
        self.bit_per_s = 0.0
        self.since_s = 0.0
        self.end_s = inf
        self.number = -1
        self.on_done = on_done


class SharedLinks:
    """All directed links of a cluster and the flows on them, at one point in virtual time.

    Flows that share no link, not even through other flows, do not affect each other. So rates are recomputed
    only for flows that a change can affect, and a flow is updated only when its rate changes or it ends.
    """

    def __init__(self, cluster: ClusterSpec):
        self.capacity: dict[DirectedLink, float] = {
            (index, forward): link.rate(forward)
            for index, link in enumerate(cluster.links)
            for forward in (True, False)
        }
        """bit/s of each directed link, if it is not down."""
        self.down: set[int] = set()
        self.now_s = 0.0
        self.flows: dict[Flow, None] = {}  # in order of entry
        self._users: dict[DirectedLink, dict[Flow, None]] = {link: {} for link in self.capacity}
        self._changed: dict[DirectedLink, None] = {}  # since the last `update_rates`
        self._ends: list[tuple[float, int, Flow]] = []
        """A heap of (end, serial, flow). An entry is stale if its time is not the flow's `end_s`."""
        self._numbers = count()

    @property
    def has_changed(self) -> bool:
        """Whether rates may have to be recomputed."""
        return bool(self._changed)

    def is_idle(self, link: DirectedLink) -> bool:
        """Whether no flow is on `link`."""
        return not self._users[link]

    def add(self, flow: Flow) -> bool:
        """Put `flow` on its links. True if it has them for itself: then it has its rate already. Else it gets
        one at the next `update_rates`.
        """
        flow.number = next(self._numbers)
        self.flows[flow] = None
        alone, users = True, self._users
        for link in flow.route:
            if users[link]:
                alone = False
            users[link][flow] = None
        if alone:
            self._set_flow_rate(flow, min(map(self._capacity_now, flow.route), default=inf))
        else:
            self._changed.update(dict.fromkeys(flow.route))
        return alone

    def remove(self, flow: Flow) -> None:
        """Take `flow` off its links."""
        flow.end_s = inf
        del self.flows[flow]
        for link in flow.route:
            users = self._users[link]
            del users[flow]
            if users:
                self._changed[link] = None
            else:
                self._changed.pop(link, None)

    def leave(self, flow: Flow, link: DirectedLink) -> None:
        """Take `flow` off `link`, which has carried all of it, if it is still under way; other links of its
        route have not.
        """
        if flow in self.flows:
            flow.route = tuple(other for other in flow.route if other != link)
            del self._users[link][flow]
            self._changed.update(dict.fromkeys((link, *flow.route)))

    def clear(self, now_s: float) -> None:
        """Remove all flows; the links stay as they are."""
        for flow in list(self.flows):
            self.remove(flow)
        self.now_s = now_s
        self._ends.clear()

    def set_rate(self, link: DirectedLink, bit_per_s: float) -> None:
        """Change the capacity of one directed link."""
        self.capacity[link] = bit_per_s
        self._changed[link] = None

    def set_down(self, index: int, down: bool) -> None:
        """Take both directions of link `index` down, or up again. Nothing moves on a link that is down."""
        (self.down.add if down else self.down.discard)(index)
        self._changed |= {(index, True): None, (index, False): None}

    def advance(self, now_s: float) -> list[Flow]:
        """Move all flows to `now_s` at their rates. Removes and returns those that are complete by then."""
        self.now_s = now_s
        complete = []
        while self._first_to_end() is not None:
            end_s, _, flow = self._ends[0]
            # an end that is nearer than the clock's resolution counts as reached, or the clock would stop
            tolerance_bits = max(FINISHED_BITS, flow.bit_per_s * now_s * CLOCK_RESOLUTION)
            if (end_s - now_s) * flow.bit_per_s > tolerance_bits:
                break
            heappop(self._ends)
            complete.append(flow)
            self.remove(flow)
        return sorted(complete, key=lambda flow: flow.number)

    def next_end_s(self) -> float | None:
        """When the first flow ends at the current rates; None if no flow moves."""
        flow = self._first_to_end()
        return None if flow is None else flow.end_s

    def update_rates(self) -> list[Flow]:
        """Recompute the rates that can differ because of flows and links that changed since the last call.

        Returns the flows with a new rate.
        """
        updated = []
        for flows in self._affected():
            rates = max_min_rates([flow.route for flow in flows], self._capacity_now)
            for flow, bit_per_s in zip(flows, rates, strict=True):
                if bit_per_s != flow.bit_per_s:
                    self._set_flow_rate(flow, bit_per_s)
                    updated.append(flow)
        self._changed.clear()
        return updated

    def _set_flow_rate(self, flow: Flow, bit_per_s: float) -> None:
        flow.remaining_bits -= flow.bit_per_s * (self.now_s - flow.since_s)
        flow.bit_per_s, flow.since_s = bit_per_s, self.now_s
        flow.end_s = self.now_s + max(0.0, flow.remaining_bits) / bit_per_s if bit_per_s else inf
        if bit_per_s:
            heappush(self._ends, (flow.end_s, next(self._numbers), flow))

    def _first_to_end(self) -> Flow | None:
        """The flow that ends first; drops stale entries of the heap on the way."""
        while self._ends:
            end_s, _, flow = self._ends[0]
            if end_s == flow.end_s:
                return flow
            heappop(self._ends)
        return None

    def _affected(self) -> Iterator[list[Flow]]:
        """The sets of flows that are connected through links and use a changed one, in order of entry."""
        seen: set[DirectedLink] = set()
        for first in self._changed:
            flows: set[Flow] = set()
            frontier = [] if first in seen else [first]
            seen.add(first)
            while frontier:
                for flow in self._users[frontier.pop()]:
                    if flow not in flows:
                        flows.add(flow)
                        frontier += [link for link in flow.route if link not in seen]
                        seen.update(flow.route)
            if flows:
                yield sorted(flows, key=lambda flow: flow.number)

    def _capacity_now(self, link: DirectedLink) -> float:
        return 0.0 if link[0] in self.down else self.capacity[link]


def max_min_rates(routes: Iterable[Route], capacity: Callable[[DirectedLink], float]) -> list[float]:
    """Max-min fair rates (bit/s) of flows over `routes`, by progressive filling. No links: inf.

    The link that has least per flow gives each of its flows that share; what they take is subtracted from
    their other links, and so on for the flows that are left.
    """
    routes = list(routes)
    users: dict[DirectedLink, set[int]] = {}
    for index, route in enumerate(routes):
        for link in route:
            users.setdefault(link, set()).add(index)
    left = {link: capacity(link) for link in users}
    if all(len(flows) == 1 for flows in users.values()):  # no link is shared: common, and fast
        return [min((left[link] for link in route), default=inf) for route in routes]
    rates = [inf] * len(routes)
    while users:
        bottleneck = min(users, key=lambda link: (left[link] / len(users[link]), link))
        fair = max(0.0, left[bottleneck] / len(users[bottleneck]))
        for index in tuple(users[bottleneck]):
            rates[index] = fair
            for link in routes[index]:
                left[link] -= fair
                users[link].discard(index)
                if not users[link]:
                    del users[link]
    return rates
