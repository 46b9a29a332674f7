"""LinkSpec, and the routes over the links of a cluster."""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from engine.domain.values import Count, Fraction, Name, NonNegative, Positive, Value

Direction = Literal["both", "forward", "backward"]
"""A direction of a link from a to b: a→b is forward."""

ROUTED_BYTES = 65_536
"""The size of the message by whose time routes choose: a row of activations has 4 to 64 kB, and the rows of a
prompt have some MB.
"""

_NAME = re.compile(r"(.+?)--(.+?)(?:--([0-9]+))?")


def link_name(a: str, b: str, parallel: int = 1) -> str:
    """The name of a link from `a` to `b`."""
    return f"{a}--{b}" if parallel == 1 else f"{a}--{b}--{parallel}"


def link_words(a: str, b: str, parallel: int = 1, direction: Direction = "both") -> str:
    """`a–b` for people, or `a → b` for one direction; of the second link between these nodes `a–b (2)`."""
    ends = {"both": f"{a}–{b}", "forward": f"{a} → {b}", "backward": f"{b} → {a}"}[direction]
    return ends if parallel == 1 else f"{ends} ({parallel})"


def named_words(name: str, direction: Direction = "both") -> str:
    """`link_words` of the link with this name: of `a--b--2` forward `a → b (2)`."""
    found = _NAME.fullmatch(name)
    return link_words(found[1], found[2], int(found[3] or 1), direction) if found else name


class LinkSpec(Value):
    """A full-duplex link. Rate, delay and loss hold for a→b and, unless overridden, for b→a.

    Links between the same two nodes differ in `parallel`. Routes use the one over which a message of
    `ROUTED_BYTES` is there first, in each direction; the others carry nothing.
    """

    a: Name
    b: Name
    parallel: int = Field(
        default=1, ge=1, le=99, description="Number of this link among those between the same two nodes."
    )
    bit_per_s: Positive = Field(description="Rate a→b, bit/s.")
    reverse_bit_per_s: Positive | None = Field(default=None, description="Rate b→a, bit/s; empty: the same.")
    delay_s: NonNegative = 0.0
    jitter_s: NonNegative = 0.0
    loss_frac: Fraction = 0.0
    reverse_delay_s: NonNegative | None = Field(default=None, description="Delay b→a, s; empty: the same.")
    reverse_loss_frac: Fraction | None = Field(default=None, description="Loss b→a; empty: the same.")
    j_per_byte: NonNegative = Field(default=0.0, description="Energy of a byte on the link, J.")

    def routed_s(self, forward: bool) -> float:
        """Seconds until a message of `ROUTED_BYTES` is at the other end, `forward` from a to b."""
        return self.delay(forward) + 8 * ROUTED_BYTES / self.rate(forward)

    @property
    def name(self) -> str:
        """`a--b`: how scenarios, reports and commands name this link. A second one between these nodes is
        `a--b--2`.
        """
        return link_name(self.a, self.b, self.parallel)

    @property
    def names(self) -> tuple[str, str]:
        """The name of the link, and that with the ends exchanged: commands take both."""
        return self.name, link_name(self.b, self.a, self.parallel)

    def rate(self, forward: bool) -> float:
        """bit/s a→b if `forward`, else b→a."""
        return self.bit_per_s if forward or self.reverse_bit_per_s is None else self.reverse_bit_per_s

    def delay(self, forward: bool) -> float:
        """Seconds of one-way delay a→b if `forward`, else b→a."""
        return self.delay_s if forward or self.reverse_delay_s is None else self.reverse_delay_s

    def loss(self, forward: bool) -> float:
        """Fraction of packets lost a→b if `forward`, else b→a."""
        return self.loss_frac if forward or self.reverse_loss_frac is None else self.reverse_loss_frac


class Hop(Value):
    """One directed link on a path: link index and whether it is crossed a→b."""

    link: Count
    forward: bool


class Routes:
    """Routes over `links` to every node, each tree of them made when it is first needed.

    Copies of a cluster share it: their routes are those of the links as drawn, whatever has changed since.
    """

    def __init__(self, links: Sequence[LinkSpec]):
        self.into: dict[str, list[tuple[str, Hop, float, int]]] = {}
        for index, link in enumerate(links):
            there, back = Hop(link=index, forward=True), Hop(link=index, forward=False)
            self.into.setdefault(link.b, []).append((link.a, there, link.routed_s(True), link.parallel))
            self.into.setdefault(link.a, []).append((link.b, back, link.routed_s(False), link.parallel))
        self.trees: dict[str, dict[str, tuple[str, Hop]]] = {}

    def next_hop(self, at: str, goal: str) -> tuple[str, Hop]:
        """The next node and link of a packet at node `at` to node `goal`."""
        return self.tree(goal)[at]

    def tree(self, goal: str) -> dict[str, tuple[str, Hop]]:
        """Next hop of every node that reaches `goal`."""
        if goal not in self.trees:
            self.trees[goal] = self._shortest(goal)
        return self.trees[goal]

    def _shortest(self, goal: str) -> dict[str, tuple[str, Hop]]:
        """Dijkstra backwards on (hops, seconds of a message, name, next node, number of a parallel link)."""
        tree: dict[str, tuple[str, Hop]] = {}
        heap: list[tuple[int, float, str, str, int, tuple[str, Hop] | None]] = [(0, 0.0, goal, "", 0, None)]
        done: set[str] = set()
        while heap:
            hops, cost, at, _, _, via = heapq.heappop(heap)
            if at in done:
                continue
            done.add(at)
            if via is not None:
                tree[at] = via
            for neighbour, hop, taking_s, parallel in self.into.get(at, []):
                if neighbour not in done:
                    entry = (hops + 1, cost + taking_s, neighbour, at, parallel, (at, hop))
                    heapq.heappush(heap, entry)
        return tree
