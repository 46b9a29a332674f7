"""Search for the group of devices that does a method's work soonest. Pure, and the same for the same input.

Every method with a group of any size searches here; only its time of a group is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

Group = tuple[int, ...]
"""Ranks of devices that compute together, in order."""

EVERY_GROUP = 5
"""The most devices of which every group is tried."""
TRIED = 120
"""How many groups of more devices are tried, or `STEPS` by their number, as large groups take longer."""
STEPS = 1_500
CLIMBED = 3
"""How many of the groups to begin with are improved by one device more, less or another."""


def best_groups(
    ranks: Sequence[int], time_s: Callable[[Group], float], order: Sequence[int] = ()
) -> list[Group]:
    """Groups of `ranks`, each in this `order`, else by rank, by their time; ties: the smaller one, then the
    earlier ranks.

    `ranks` come in the order in which devices are expected to be of use.
    """
    order = order or sorted(ranks)
    place = {rank: number for number, rank in enumerate(order)}
    found = _best([place[rank] for rank in ranks], lambda group: time_s(tuple(order[at] for at in group)))
    return [tuple(order[at] for at in group) for group in found]


def _best(ranks: Sequence[int], time_s: Callable[[Group], float]) -> list[Group]:
    known: dict[Group, float] = {}

    def seen_s(group: Group) -> float:
        if group not in known:
            known[group] = time_s(group)
        return known[group]

    if len(ranks) <= EVERY_GROUP:
        for size in range(1, len(ranks) + 1):
            for some in combinations(ranks, size):
                seen_s(tuple(sorted(some)))
    else:
        most = max(len(ranks), min(TRIED, STEPS // len(ranks)))
        starts = sorted(_starts(ranks), key=lambda group: (seen_s(group), len(group), group))
        for start in starts[:CLIMBED]:
            _climb(start, ranks, seen_s, lambda: len(known) >= most)
    return sorted(known, key=lambda group: (known[group], len(group), group))


def _starts(ranks: Sequence[int]) -> list[Group]:
    """Each of the first devices alone, and the first ones of every number up to eight, of its multiples, of
    all.
    """
    counts = [n for n in range(1, len(ranks) + 1) if n <= 8 or n % 8 == 0 or n == len(ranks)]
    singles = [(rank,) for rank in ranks[:8]]
    return list(dict.fromkeys([*singles, *(tuple(sorted(ranks[:count])) for count in counts)]))


def _climb(
    group: Group, ranks: Sequence[int], time_s: Callable[[Group], float], is_over: Callable[[], bool]
) -> None:
    """The best of all neighbours, again and again, until none is better."""
    best_s = time_s(group)
    while not is_over():
        found = []
        for neighbour in _neighbours(group, ranks):
            found.append((time_s(neighbour), len(neighbour), neighbour))
            if is_over():
                break
        least_s, _, better = min(found)
        if least_s >= best_s:
            return
        group, best_s = better, least_s


def _neighbours(group: Group, ranks: Sequence[int]) -> Iterator[Group]:
    others = [rank for rank in ranks if rank not in group]
    for rank in others:
        yield tuple(sorted((*group, rank)))
    for gone in group if len(group) > 1 else ():
        yield tuple(rank for rank in group if rank != gone)
    for gone in group:
        for rank in others:
            yield tuple(sorted((*(kept for kept in group if kept != gone), rank)))
