"""The search for the fastest plan of a method that divides units among devices. Pure.

A rough estimate ranks what a move of units could gain; the judge plays the most promising and decides. The
budget is in messages of a pass, so that large groups, whose plays take long, get few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from math import inf
from typing import NamedTuple

BUDGET = 600
"""What all plays may cost: each one the pairs of its members, and `OWN_COST` besides."""
OWN_COST = 8
CLIMBED, NEAR = 2, 1.15
"""How many of the best starting points are improved by moves, and how many times as long as the best they may
take.
"""
TRIED = 6
"""How many moves are played in vain before a climb ends."""
PARTS = (4, 12, 36, 108)
"""Moves are of these parts of a unit, one after the other."""
HOPELESS = 1.2
"""What is estimated to take so many times as long as the best plan that was played is not played."""


class Shares(NamedTuple):
    """What each member of `group` (ranks) gets: `amounts` by unit, then by member."""

    group: tuple[int, ...]
    amounts: tuple[tuple[int, ...], ...]


def fastest_shares(
    starts: Iterable[Shares],
    order: Sequence[int],
    steps: Sequence[int],
    estimate_s: Callable[[Shares], float],
    seconds: Callable[[Shares], float],
    fits: Callable[[Shares], bool],
    sure: Sequence[Shares] = (),
    budget: int = BUDGET,
) -> list[Shares]:
    """All shares that were played and can be, by the judge's `seconds`, the fastest first.

    The `budget` ends the search. `steps`: by unit, how many move at least; 0: its division stays as it is.
    Only shares that `fits` are played, and of those `sure` in any case. Of equals those come first whose
    ranks do in `order`.
    """
    search = _Search(estimate_s, seconds, order, budget)
    for shares in sure:
        if fits(shares):
            search.play(shares, is_sure=True)
    in_vain = 0
    for start in search.by_estimate({start for start in starts if fits(start)}):
        in_vain = 0 if search.play(start) else in_vain + 1
        if in_vain >= TRIED:
            break
    near = [
        one for one in search.ranked() if search.known[one] <= NEAR * search.best_s and len(one.group) > 1
    ]
    for start in near[:CLIMBED]:
        _climb(search, start, steps, fits)
    return search.ranked()


class _Search:
    """What was played so far, and what it cost."""

    def __init__(
        self,
        estimate_s: Callable[[Shares], float],
        seconds: Callable[[Shares], float],
        order: Sequence[int],
        budget: int,
    ):
        self.estimate_s, self.seconds, self.left = estimate_s, seconds, budget
        self._place = {rank: number for number, rank in enumerate(order)}
        self.known: dict[Shares, float] = {}
        self.best_s = inf
        self.is_over = False

    def play(self, shares: Shares, is_sure: bool = False) -> bool:
        """Play `shares`, unless they are known, hopeless (but `is_sure`), or beyond the budget; whether they
        are the best.
        """
        hopeless = not is_sure and self.estimate_s(shares) > HOPELESS * self.best_s
        if shares in self.known or hopeless:
            return False
        cost = OWN_COST + len(shares.group) * (len(shares.group) - 1)
        if self.known and cost > self.left:
            self.is_over = True
            return False
        self.left -= cost
        time_s = self.known[shares] = self.seconds(shares)
        is_best, self.best_s = time_s < self.best_s, min(time_s, self.best_s)
        return is_best

    def is_faster(self, shares: Shares, other: Shares) -> bool:
        """Whether `shares`, played if need be, take less time than the known `other`."""
        self.play(shares)
        return self.known.get(shares, inf) < self.known[other]

    def ranked(self) -> list[Shares]:
        able = [shares for shares, time_s in self.known.items() if time_s < inf]
        return sorted(able, key=lambda shares: (self.known[shares], len(shares.group), self._key(shares)))

    def by_estimate(self, some: Iterable[Shares]) -> list[Shares]:
        return sorted(some, key=lambda shares: (self.estimate_s(shares), self._key(shares)))

    def _key(self, shares: Shares) -> object:
        return [self._place[rank] for rank in shares.group], shares.amounts


def _climb(search: _Search, at: Shares, steps: Sequence[int], fits: Callable[[Shares], bool]) -> None:
    """Play moves from `at`, large ones first and of equal ones the most promising. From each that is faster
    go on, twice as far in the same direction as long as that helps.
    """
    tried = {at}
    for part in PARTS:
        in_vain = 0
        while in_vain < TRIED and not search.is_over:
            others = {one for one in moves(at, steps, part) if one not in tried and fits(one)}
            for other in search.by_estimate(others)[: TRIED - in_vain]:
                tried.add(other)
                if search.is_faster(other, at):
                    in_vain, before, at = 0, at, other
                    while (onward := _onward(before, at)) and fits(onward) and search.is_faster(onward, at):
                        before, at = at, onward
                    break
                in_vain += 1
            else:
                break


def _onward(before: Shares, after: Shares) -> Shares | None:
    """The move from `before` to `after` once more, twice as large if the givers have so much."""
    changes = [
        [now - then for then, now in zip(*unit, strict=True)]
        for unit in zip(before.amounts, after.amounts, strict=True)
    ]
    times = min(
        (
            now // -change
            for unit, of in zip(after.amounts, changes, strict=True)
            for now, change in zip(unit, of, strict=True)
            if change < 0
        ),
        default=0,
    )
    if not times:
        return None
    amounts = (
        tuple(now + min(2, times) * change for now, change in zip(unit, of, strict=True))
        for unit, of in zip(after.amounts, changes, strict=True)
    )
    return after._replace(amounts=tuple(amounts))


def moves(shares: Shares, steps: Sequence[int], part: int) -> Iterator[Shares]:
    """`shares` with 1/`part` of a unit of a member for another, a step at least and at most what the giver
    has; with as much of all units; and with more of one unit for less of another.
    """
    units = [unit for unit, step in enumerate(steps) if step]
    sizes = {
        unit: max(steps[unit], sum(shares.amounts[unit]) // part // steps[unit] * steps[unit])
        for unit in units
    }
    for giver, taker in permutations(range(len(shares.group)), 2):
        for unit in units:
            yield _moved(shares, [(unit, giver, taker)], sizes)
        yield _moved(shares, [(unit, giver, taker) for unit in units], sizes)
        for one, other in permutations(units, 2):
            yield _moved(shares, [(one, giver, taker), (other, taker, giver)], sizes)


def _moved(shares: Shares, changes: Sequence[tuple[int, int, int]], sizes: Mapping[int, int]) -> Shares:
    amounts = [list(unit) for unit in shares.amounts]
    for unit, giver, taker in changes:
        size = min(sizes[unit], amounts[unit][giver])
        amounts[unit][giver] -= size
        amounts[unit][taker] += size
    return shares._replace(amounts=tuple(map(tuple, amounts)))
