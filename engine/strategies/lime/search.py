"""Search LIME's fastest plan over rings, numbers of segments, layers and streamed blocks. Pure.

Not every device needs a layer: one with which the ring is slower than without it is left out. The search
takes rings and numbers of segments in order, skips those whose lower bound is no better than the fastest plan
so far, and moves single layers between devices as long as the event model gets faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import NamedTuple

from engine.strategies.lime.allocation import Ring
from engine.strategies.lime.joint import Spread, Table
from engine.strategies.lime.placement import RingPlacement, order_of, placed
from engine.strategies.lime.ring import Rings
from engine.strategies.shared.stages import Stage

Ranks = tuple[int, ...]
MOST_SEGMENTS = 16
"""More rounds are tried only where the layers do not fit with fewer: each costs one more round of hops."""
EVERY_RING = 6
"""Up to so many devices, every subset is tried as a ring."""
MOVES = 40
"""Spreads that are tried around each of the best ones."""


class Choice(NamedTuple):
    """A ring of these ranks, with all layers on it."""

    ranks: Ranks
    ring: Ring
    placement: RingPlacement

    @property
    def order(self) -> tuple[object, ...]:
        return (*order_of(self.ring, self.placement), self.ranks)


def fastest(
    rings: Rings,
    speed_s: Mapping[int, float],
    num_segments: int,
    fine_grained: bool,
    num_micro_batches: int,
    pipeline: Sequence[Stage] = (),
) -> Choice | None:
    """The fastest plan with `num_segments` (0: any number); None if the memory does not suffice.

    `speed_s` are seconds per layer by rank. `pipeline` is one more plan to consider, with one segment.
    """
    search = Search(num_micro_batches, fine_grained)
    orders = list(rings_of(speed_s, rings.free_bytes))
    other = tuple(stage.device for stage in pipeline)
    if other and other not in orders:
        orders.append(other)
    described = [(ranks, rings.of(ranks)) for ranks in orders]
    if pipeline and num_segments < 2:
        sizes = tuple(stage.num_layers for stage in pipeline)
        search.consider_layers(other, rings.of(other), 1, sizes)
    if num_segments:
        search.over(described, lambda ring: (num_segments,))
    else:
        search.over(described, few_segments)
        if search.best is None:
            search.over(described, more_segments)
    search.improve()
    return search.best


class Search:
    """The fastest plan so far for `num_micro_batches` requests at a time."""

    def __init__(self, num_micro_batches: int, fine_grained: bool):
        self.num_micro_batches = num_micro_batches
        self.fine_grained = fine_grained
        self.best: Choice | None = None

    def over(self, rings: Iterable[tuple[Ranks, Ring]], counts: Callable[[Ring], Iterable[int]]) -> None:
        """Try every ring with these numbers of segments."""
        for ranks, ring in rings:
            for num_segments in counts(ring):
                self._try(ranks, ring, num_segments)

    def improve(self) -> None:
        """Move single layers between devices of the best plan's ring while the event model gets faster."""
        while self.best is not None:
            before = self.best
            table = self._table(before.ring, before.placement.chosen.num_segments)
            around = sorted(
                (table.least_s(layers), layers)
                for giver, taker in permutations(range(before.ring.size), 2)
                if table.hosts(layers := _moved(before.placement.chosen.layers, giver, taker))
            )
            for least_s, layers in around[:MOVES]:
                if least_s < before.placement.step_s:
                    self.consider(before.ranks, before.ring, table.spread(layers))
            if self.best is before:
                return

    def consider(self, ranks: Ranks, ring: Ring, spread: Spread) -> None:
        """Keep `spread` if the event model says that it is faster than the best plan so far."""
        streams = [one.streams for one in spread.streaming]
        choice = Choice(ranks, ring, placed(ring, spread.chosen, streams, self.num_micro_batches))
        if self.best is None or choice.order < self.best.order:
            self.best = choice

    def consider_layers(self, ranks: Ranks, ring: Ring, num_segments: int, layers: tuple[int, ...]) -> None:
        """Consider these numbers of layers if they fit."""
        table = self._table(ring, num_segments)
        if table.hosts(layers):
            self.consider(ranks, ring, table.spread(layers))

    def _try(self, ranks: Ranks, ring: Ring, num_segments: int) -> None:
        through_s = ring.num_layers * min(ring.step.layer_s) + ring.step.around_s(num_segments)
        if self.best is not None and through_s > self.best.placement.step_s:
            return
        spread = self._table(ring, num_segments).best()
        if spread is None or (self.best is not None and spread.least_s > self.best.placement.step_s):
            return
        self.consider(ranks, ring, spread)

    def _table(self, ring: Ring, num_segments: int) -> Table:
        lasting = ring.lasting if num_segments == 1 else ring
        return Table(lasting, num_segments, self.num_micro_batches, self.fine_grained)


def _moved(layers: Sequence[int], giver: int, taker: int) -> tuple[int, ...]:
    return tuple(num - (at == giver) + (at == taker) for at, num in enumerate(layers))


def few_segments(ring: Ring) -> range:
    """Every stage has a layer."""
    return range(1, min(MOST_SEGMENTS, ring.num_layers // ring.size) + 1)


def more_segments(ring: Ring) -> range:
    return range(MOST_SEGMENTS + 1, ring.num_layers // ring.size + 1)


def rings_of(speed_s: Mapping[int, float], room: Mapping[int, float]) -> Iterator[Ranks]:
    """Rings of some ranks, in their order: every subset, or of many devices the fastest and the largest."""
    ranks = tuple(speed_s)
    if len(ranks) <= EVERY_RING:
        for number in range(len(ranks), 0, -1):
            yield from combinations(ranks, number)
        return
    seen: set[Ranks] = set()
    for order in (sorted(ranks, key=lambda rank: -room[rank]), sorted(ranks, key=lambda rank: speed_s[rank])):
        for number in range(len(ranks), 0, -1):
            chosen = set(order[:number])
            ring = tuple(rank for rank in ranks if rank in chosen)
            if ring not in seen:
                seen.add(ring)
                yield ring
