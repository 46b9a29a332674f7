"""Search LIME's fastest plan over rings, numbers of segments, layers and streamed blocks. Pure.

Not every device needs a layer: one with which the ring is slower than without it is left out. The search
takes rings and numbers of segments in order, skips those whose lower bound is no better than the fastest plan
so far, and moves single layers between devices as long as the event model gets faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from math import inf
from typing import NamedTuple

from engine.strategies.lime.allocation import Ring
from engine.strategies.lime.cost import STEADY_TO
from engine.strategies.lime.joint import Spread, Table
from engine.strategies.lime.placement import RingPlacement, event_times, order_of, placed
from engine.strategies.lime.ring import Rings
from engine.strategies.shared.stages import Stage

Ranks = tuple[int, ...]
MOST_SEGMENTS = 16
"""The most rounds that are tried where the layers fit with fewer: each costs one more round of hops."""
EVERY_RING = 6
"""The most devices of which every subset is tried as a ring."""
SLOWER = 1.005
"""How much longer a token may take than in the plain pipeline, for the sake of the prompt."""
KEPT = 8
"""How many plans of a kind are compared by the whole round of requests, where the search is free."""
MOVES = 40
"""Spreads that are tried around each of the best ones."""
MOVED_DEVICES = 12
"""The largest ring in which single layers are moved. In larger ones, a single layer more or less on a device
matters little, and there are too many pairs.
"""


class Choice(NamedTuple):
    """A ring of these ranks, with all layers on it."""

    ranks: Ranks
    ring: Ring
    placement: RingPlacement

    @property
    def order(self) -> tuple[object, ...]:
        return order_of(self.ring, self.placement)


def fastest(
    rings: Rings,
    num_segments: int,
    fine_grained: bool,
    num_micro_batches: int,
    pipeline: Sequence[Stage] = (),
    freely: bool = False,
) -> Choice | None:
    """The plan that finishes a round of requests first; None if the memory is too small.

    `num_segments` 0 allows any number. Four kinds of plans are compared: the one with the fastest step, the
    one with the fastest mean pass of prompt and tokens, every device alone, and `pipeline`, which has one
    segment. A plan whose further tokens take longer than with `pipeline` is no choice, unless `freely`: then
    the one with the fastest prompt, whose parts follow each other around the ring, is compared, too, and the
    next best of every kind.
    """
    orders = list(rings_of(rings.layer_s, rings.free_bytes))
    counts = [few_segments, more_segments]
    if num_segments:
        counts = [lambda ring: range(num_segments, num_segments + 1)]
    found: list[Choice] = []
    searches = [(rings.of, num_micro_batches), (rings.mean, num_micro_batches)]
    if freely and rings.parts > 1:
        searches.append((rings.of_part, num_micro_batches * rings.parts))
    for describe, together in searches:
        search = Search(together, fine_grained)
        for allowed in counts:
            if search.best is None:
                search.over(((ranks, describe(ranks)) for ranks in orders), allowed)
        search.improve()
        found += sorted(search.tried, key=lambda one: one.order)[: KEPT if freely else 1]
    ranks = tuple(stage.device for stage in pipeline)
    sizes = tuple(stage.num_layers for stage in pipeline)
    if num_segments < 2:
        plain = Search(num_micro_batches, fine_grained)
        alone = [((rank,), (rings.model.num_layers,)) for rank in rings.free_bytes]
        for one, layers in [*alone, *([(ranks, sizes)] if pipeline else [])]:
            found += plain.resident(one, rings.of(one), layers)
    plans = [_with_tokens(rings, one, num_micro_batches) for one in found]
    if pipeline and rings.new_tokens > 1 and not freely:
        steps_s = [one.placement.step_s for one in plans if one.ranks == ranks and _sizes(one) == sizes]
        plans = [one for one in plans if one.placement.step_s <= SLOWER * min(steps_s, default=inf)]
    return min(plans, key=lambda one: (request_s(rings, one, num_micro_batches), one.order), default=None)


def _sizes(choice: Choice) -> tuple[int, ...]:
    """Layers per device of a plan with one segment."""
    chosen = choice.placement.chosen
    return chosen.layers if chosen.num_segments == 1 else ()


def _with_tokens(rings: Rings, choice: Choice, num_micro_batches: int) -> Choice:
    """`choice` with the time per token, whatever pass it was found for."""
    ring, found = rings.of(choice.ranks), choice.placement
    return Choice(choice.ranks, ring, placed(ring, found.chosen, found.streams, num_micro_batches))


def request_s(rings: Rings, choice: Choice, num_micro_batches: int) -> float:
    """Seconds from the start until the last token of a round of requests, in the event model."""
    part, token = rings.part.around(choice.ranks), choice.ring.step
    further = max(0, rings.new_tokens - 1)
    if rings.parts > 1:
        (first_s,) = event_times(choice.ring, choice.placement, [part], num_micro_batches * rings.parts)
        return first_s + further * choice.placement.step_s
    steps = [part, *[token] * min(further, STEADY_TO)]
    times = event_times(choice.ring, choice.placement, steps, num_micro_batches)
    return times[-1] + (further - len(steps) + 1) * choice.placement.step_s


class Search:
    """The fastest plan so far for `num_micro_batches` requests at a time."""

    def __init__(self, num_micro_batches: int, fine_grained: bool):
        self.num_micro_batches = num_micro_batches
        self.fine_grained = fine_grained
        self.best: Choice | None = None
        self.tried: list[Choice] = []

    def over(self, rings: Iterable[tuple[Ranks, Ring]], counts: Callable[[Ring], Iterable[int]]) -> None:
        """Try every ring with these numbers of segments."""
        for ranks, ring in rings:
            for num_segments in counts(ring):
                self._try(ranks, ring, num_segments)

    def improve(self) -> None:
        """Move single layers between devices of the best plan's ring while the event model gets faster."""
        while self.best is not None and self.best.ring.size <= MOVED_DEVICES:
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
        choice = self._placed(ranks, ring, spread)
        self.tried.append(choice)
        if self.best is None or choice.order < self.best.order:
            self.best = choice

    def resident(self, ranks: Ranks, ring: Ring, layers: tuple[int, ...]) -> list[Choice]:
        """The plan with one segment of these layers; none if they do not fit."""
        table = self._table(ring, 1)
        return [self._placed(ranks, ring, table.spread(layers))] if table.hosts(layers) else []

    def _placed(self, ranks: Ranks, ring: Ring, spread: Spread) -> Choice:
        streams = [one.streams for one in spread.streaming]
        return Choice(ranks, ring, placed(ring, spread.chosen, streams, self.num_micro_batches))

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
    """The numbers of segments to try; every stage has a layer."""
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
