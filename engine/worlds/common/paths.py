"""How long an idle path takes for a message at the current rates and delays: the real world's lower bound.

The kernel's token bucket lets one whole frame pass at once, and a decode message is often no larger. So the
receiver may not use a message before an idle path could have carried it.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.network import PairMeasurement
from engine.domain.scenario import Change, SetDelay, SetRate
from engine.domain.units import BITS_PER_BYTE, transfer_s
from engine.program.frames import CHANGES
from engine.worlds.common.own_links import OwnLink

DirectedLink = tuple[int, bool]


class Changed(NamedTuple):
    """A change of a link at `at_s` (virtual). What is left then of a message to a peer, or from it, takes so
    many times as long: `there` and `back`, by peer.
    """

    at_s: float
    there: dict[int, float]
    back: dict[int, float]


class PathTimes:
    """The paths from and to device `rank`, with the rates and delays of all links as they are now.

    The network cannot delay messages on the links `held`: the receiver does. `given` is what a network gives
    between pairs that nobody shapes: no message is faster, whatever is drawn.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        rank: int,
        held: frozenset[int] = frozenset(),
        given: Iterable[PairMeasurement] = (),
    ):
        self.cluster, self.rank, self.held_links = cluster, rank, held
        self.given = {(pair.src, pair.dst): pair for pair in given if rank in (pair.src, pair.dst)}
        self.rates = {
            (index, forward): link.rate(forward)
            for index, link in enumerate(cluster.links)
            for forward in (True, False)
        }
        others = [dst for dst in range(len(cluster.devices)) if dst != rank]
        hops = {dst: cluster.path(rank, dst) for dst in others}
        self.paths = {dst: [(hop.link, hop.forward) for hop in hops[dst]] for dst in others}
        self.delays = {
            (index, forward): link.delay(forward)
            for index, link in enumerate(cluster.links)
            for forward in (True, False)
        }
        arriving = {src: cluster.path(src, rank) for src in others}
        self.arriving = {src: [(hop.link, hop.forward) for hop in hops] for src, hops in arriving.items()}
        self.last_link = {src: (hops[-1].link, hops[-1].forward) for src, hops in arriving.items()}
        self.own_links: defaultdict[DirectedLink, OwnLink] = defaultdict(OwnLink)
        self.held = {
            src: [(hop.link, hop.forward) for hop in hops if hop.link in held]
            for src, hops in arriving.items()
        }
        self.changed_s = 0.0
        self.changes: list[Changed] = []

    def change(self, change: Change, now_s: float) -> None:
        """Apply a change of a link at `now_s` (virtual): a new rate to the rest of what is under way
        (`left_s`, `arriving_s`), a new delay to what is sent later.
        """
        if isinstance(change, SetRate | SetDelay):
            link = self.cluster.link_index(change.link)
            there, back = self._rates(self.paths, True), self._rates(self.arriving, False)
            for way, own in self.own_links.items():
                own.drain(now_s, self.rates[way])
            for forward, name in ((True, "forward"), (False, "backward")):
                if change.direction in ("both", name):
                    if isinstance(change, SetRate):
                        self.rates[link, forward] = change.bit_per_s
                    else:
                        self.delays[link, forward] = change.delay_s
            self.changed_s = time.monotonic()
            new_there, new_back = self._rates(self.paths, True), self._rates(self.arriving, False)
            self.changes.append(
                Changed(
                    now_s,
                    {peer: there[peer] / new for peer, new in new_there.items()},
                    {peer: back[peer] / new for peer, new in new_back.items()},
                )
            )

    def _rates(self, ways: dict[int, list[DirectedLink]], sends: bool) -> dict[int, float]:
        """Bit per second to each peer, or from each."""
        return {peer: self._rate(peer, links, sends) for peer, links in ways.items()}

    def _rate(self, peer: int, links: list[DirectedLink], sends: bool) -> float:
        given = self.given.get((self.rank, peer) if sends else (peer, self.rank))
        drawn = min(self.rates[way] for way in links)
        return min(drawn, given.bit_per_s) if given else drawn

    def left_s(self, dst: int, leaves_s: float) -> float:
        """When the last of what was to leave for `dst` at `leaves_s`, by the rates before the last change, is
        out by the present ones.
        """
        last = self.changes[-1]
        return leaves_s + max(0.0, leaves_s - last.at_s) * (last.there[dst] - 1)

    def arriving_s(self, src: int, due_s: float, known: int) -> float:
        """When a message is there that its sender, which knew `known` changes (modulo `CHANGES`), expected
        there at `due_s`.
        """
        missed = (len(self.changes) - known) % CHANGES
        if missed > CHANGES // 2:  # this device has still to hear of a change
            return due_s
        given = self.given.get((src, self.rank))
        delay_s = max(self.delay_from_s(src), given.delay_s if given else 0.0)
        for one in self.changes[len(self.changes) - missed :]:
            due_s += max(0.0, due_s - delay_s - one.at_s) * (one.back[src] - 1)
        return due_s

    def forget_arriving(self) -> None:
        """Forget what arrives here, so that it can be told again by the present rates."""
        for way in self.last_link.values():
            self.own_links.pop(way, None)

    def delay_s(self, dst: int) -> float:
        """Virtual seconds of one-way delay to `dst`."""
        given = self.given.get((self.rank, dst))
        return max(sum(self.delays[way] for way in self.paths[dst]), given.delay_s if given else 0.0)

    def delay_from_s(self, src: int) -> float:
        """Virtual seconds of one-way delay from `src`."""
        return sum(self.delays[way] for way in self.arriving[src])

    def held_s(self, src: int) -> float:
        """Virtual seconds for which the receiver must hold a message from `src` after its arrival."""
        return sum(self.delays[way] for way in self.held[src])

    def in_flight_bytes(self, dst: int) -> int:
        """The bandwidth-delay product of the path to `dst`, over links whose delay TCP sees."""
        there = [(hop.link, hop.forward) for hop in self.cluster.path(self.rank, dst)]
        back = [(hop.link, hop.forward) for hop in self.cluster.path(dst, self.rank)]
        round_trip_s = sum(self.delays[way] for way in (*there, *back) if way[0] not in self.held_links)
        return math.ceil(round_trip_s * min(self.rates[way] for way in there) / BITS_PER_BYTE)

    def departs_s(self, dst: int, size_bytes: int, start_s: float) -> float:
        """When a message that starts at `start_s` is through this device's own link at the earliest, among
        the others that leave over it.
        """
        way = self.paths[dst][0]
        return self.own_links[way].enter(dst, size_bytes * BITS_PER_BYTE, self.rates[way], start_s)

    def arrives_s(self, src: int, size_bytes: int, due_s: float) -> float:
        """When a message that an idle path delivers at `due_s` is through the last link at the earliest,
        among the others that arrive over it.
        """
        way = self.last_link[src]
        rate, size_bits = self.rates[way], size_bytes * BITS_PER_BYTE
        return max(due_s, self.own_links[way].enter(src, size_bits, rate, due_s - size_bits / rate))

    def forget_messages(self) -> None:
        """Forget all messages under way."""
        self.own_links.clear()

    def transfer_s(self, dst: int, size_bytes: int) -> float:
        """Virtual seconds on the slowest link to `dst`."""
        return transfer_s(size_bytes, self._rate(dst, self.paths[dst], True))

    def is_slowed(self, src: int, dst: int) -> bool:
        """Whether messages between these two, of which one is this device, are to take longer than they do:
        their path is slower, or has more delay, than what the network gives.
        """
        given = self.given.get((src, dst))
        if given is None:
            return False
        ways = self.paths[dst] if src == self.rank else self.arriving[src]
        is_slow = min(self.rates[way] for way in ways) < given.bit_per_s
        return is_slow or sum(self.delays[way] for way in ways) > given.delay_s

    @property
    def slows(self) -> bool:
        """Whether any pair of this device is slowed."""
        return any(self.is_slowed(*pair) for pair in self.given)
