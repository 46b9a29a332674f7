"""Choose AdaptLink's primary, secondaries, shares and split layers by the predicted time of a request. Pure.

Hu et al., "AdaptLink" (AAAI 2025 workshop). Equation 5 balances both sides as if messages shrank with the
share, so slow links make a secondary look slow, leave the primary a larger share, and split more layers.
`exact` minimises equation 1 with messages of full size instead: over primaries, numbers of secondaries,
shares and split layers that memory allows, and no split at all, which is what Edge-Only does. A primary that
holds the model computes it alone, as in the paper, unless `if_faster` is wished for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import NamedTuple

from engine.strategies.adaptlink.layout import CommMode
from engine.strategies.adaptlink.roles import (
    HeadShare,
    MemoryBudget,
    Roles,
    alone_on,
    place_heads,
    primary_of,
    roles_of,
    roles_with_backups,
    too_small,
)
from engine.strategies.adaptlink.shares import TOLERANCE, Primary, Split
from engine.strategies.adaptlink.time import RequestTime, SplitTime

WORTH = 0.01
"""A further secondary, and a split that memory does not ask for, must save this fraction of the request."""
PRIMARIES = 6
MORE_SECONDARIES = 2
"""Numbers of secondaries that are tried: the fewest that memory allows and so many more, and all."""
COARSE_STEP = 8
"""Shares are tried in steps of so many blocks, then of half as many around the best one, down to one."""


class Wishes(NamedTuple):
    """What the parameters ask for: `share` is the primary's share of a split part, None for the best one;
    `primary` is a rank, None for any; `max_secondaries` 0 for any number; `heads` allows attention heads to
    move, `backups` copies on inactive devices, `if_faster` to split what the primary holds.
    """

    mode: CommMode
    grid: int
    share: float | None
    primary: int | None
    max_secondaries: int
    heads: bool
    backups: bool
    if_faster: bool


def chosen_roles(room: MemoryBudget, wishes: Wishes) -> Roles:
    """The roles by the rule of `wishes.mode`. Raises `PlanError` if memory is too small for any."""
    mode, grid, share, primary, most, heads, backups, if_faster = wishes
    largest = primary_of(room.cluster, room.model, room.demand) if primary is None else primary
    if mode == "eq5":
        return roles_of(room, largest, grid, share, most, backups, heads)
    workers = room.cluster.workers if primary is None else (primary,)
    search = Search(room, grid, share, most, heads)
    best = search.alone(workers) if mode == "none" else search.best(workers, if_faster)
    if best is None:
        raise too_small(room, largest)
    if not best.secondaries:
        return alone_on(room, best.primary, grid)
    return roles_with_backups(room, (best.primary, *best.secondaries), best.split, grid, best.heads, backups)


class Division(NamedTuple):
    """A way to divide the model: `split` of the columns between `primary` and `secondaries` (ranks), and the
    predicted seconds.
    """

    request_s: float
    primary: int
    secondaries: tuple[int, ...] = ()
    split: Split = Split(0, ())
    heads: tuple[HeadShare, ...] = ()


class Search:
    """Looks for the fastest division. `share` fixes the primary's share of a split part; `heads` allows
    attention heads to move.
    """

    def __init__(self, room: MemoryBudget, grid: int, share: float | None, max_secondaries: int, heads: bool):
        self.room, self.grid, self.share = room, grid, share
        self.max_secondaries, self.heads = max_secondaries, heads
        self.times = RequestTime(room.cluster, room.model, room.demand)
        self.width = room.model.intermediate_size // grid

    def best(self, primaries: Sequence[int], if_faster: bool = True) -> Division | None:
        """The division with the fewest secondaries among those within `WORTH` of the fastest. Without
        `if_faster` no primary that holds the model splits it.
        """
        found = self._alone(primaries)
        order = sorted(primaries, key=self.times.least_s)
        for rank in [rank for rank in order if self._is_candidate(rank, primaries)][:PRIMARIES]:
            fastest_s = min((one.request_s for one in found), default=float("inf"))
            may_split = if_faster or self.room.primary(rank).over_bytes > 0
            if may_split and self.times.least_s(rank) < fastest_s * (1 - WORTH):
                found += self._divisions(rank)
        if not found:
            return None
        limit_s = min(one.request_s for one in found) * (1 + WORTH)
        return min(
            (one for one in found if one.request_s <= limit_s),
            key=lambda one: (bool(one.heads), len(one.secondaries), one.request_s, one.primary),
        )

    def alone(self, primaries: Sequence[int]) -> Division | None:
        """The primary with enough memory that computes everything soonest."""
        return min(self._alone(primaries), default=None)

    def _alone(self, primaries: Sequence[int]) -> list[Division]:
        return [
            Division(self.times.alone_s(rank), rank)
            for rank in primaries
            if self.room.primary(rank).over_bytes <= 0
        ]

    def _is_candidate(self, rank: int, primaries: Sequence[int]) -> bool:
        """Whether no other device has as much memory and is as fast."""
        devices = self.room.cluster.devices
        mine = (devices[rank].usable_bytes, -self.times.least_s(rank), -rank)
        for other in primaries:
            theirs = (devices[other].usable_bytes, -self.times.least_s(other), -other)
            if other != rank and theirs[0] >= mine[0] and theirs[1:] > mine[1:]:
                return False
        return True

    def _divisions(self, primary: int) -> Iterator[Division]:
        """The best division for each number of secondaries."""
        mine = self.room.primary(primary)
        others = [rank for rank in self.room.cluster.workers if rank != primary]
        rooms = {rank: self.room.server_bytes(rank) for rank in others}
        alone = {rank: SplitTime(self.times, primary, [rank]) for rank in others if rooms[rank] > 0}
        shape = self.room.model.intermediate_size
        calls_s = {rank: time.messages_s(0) for rank, time in alone.items()}
        whole_s = {
            rank: sum(p.times * self.times.columns_s(rank, p, shape) for p in self.times.phases)
            for rank in (primary, *alone)
        }
        if mine.over_bytes <= 0 and min(calls_s.values(), default=0.0) >= whole_s[primary]:
            return
        ranked = sorted(alone, key=lambda rank: (whole_s[rank] + calls_s[rank], rank))
        for count in self._counts(mine, [rooms[rank] for rank in ranked]):
            chosen = tuple(ranked[:count])
            best = self._best_for(primary, mine, chosen, rooms, whole_s, calls_s)
            if best is not None:
                yield best

    def _counts(self, mine: Primary, rooms: Sequence[float]) -> list[int]:
        most = min(self.max_secondaries or len(rooms), len(rooms))
        fewest = next((n for n in range(1, most + 1) if sum(rooms[:n]) >= mine.over_bytes), most)
        return sorted({*range(fewest, min(most, fewest + MORE_SECONDARIES) + 1), most} - {0})

    def _best_for(
        self,
        primary: int,
        mine: Primary,
        chosen: tuple[int, ...],
        rooms: Mapping[int, float],
        whole_s: Mapping[int, float],
        calls_s: Mapping[int, float],
    ) -> Division | None:
        time = SplitTime(self.times, primary, chosen)
        layer_s, ends_s = self.times.layer_s(primary), self.times.ends_s(primary)
        block_s = [whole_s[rank] / self.grid for rank in chosen]
        first_s = [calls_s[rank] for rank in chosen]
        left = [rooms[rank] for rank in chosen]
        best: Division | None = None

        def tried(num_split: int, kept: int) -> Division | None:
            caps = [int(room * self.grid / (num_split * mine.ffn_bytes) + TOLERANCE) for room in left]
            given = filled(self.grid - kept, block_s, first_s, caps)
            if given is None:
                return None
            used = [(rank, size) for rank, size in zip(chosen, given, strict=True) if size]
            splits = time if len(used) == len(chosen) else self._split_time(primary, used)
            split_s = splits.split_s([kept * self.width, *(size * self.width for _, size in used)])
            whole = self.room.model.num_layers - num_split
            return Division(
                ends_s + whole * layer_s + num_split * split_s,
                primary,
                tuple(rank for rank, _ in used),
                Split(num_split, (kept, *(size for _, size in used))),
            )

        allowed, step = self._kept(mine), COARSE_STEP
        wanted = {*allowed[::step], *allowed[-1:]}
        seen: set[int] = set()
        while step:
            for kept in sorted(wanted):
                least = max(1, mine.num_split(kept / self.grid))
                for num_split in {least, mine.num_layers} if least <= mine.num_layers else ():
                    division = tried(num_split, kept)
                    if division is not None and (best is None or division < best):
                        best = division
            seen |= wanted
            step //= 2
            at = 0 if best is None else best.split.blocks[0]
            wanted = {kept for kept in (at - step, at + step) if kept in allowed} - seen
        if best is None and self.heads and mine.most_blocks(mine.num_layers, self.grid) < 0:
            best = self._with_heads(mine, tried(mine.num_layers, 0), rooms)
        return best

    def _kept(self, mine: Primary) -> Sequence[int]:
        """Blocks that the primary may keep of each split layer, by memory."""
        most = min(self.grid - 1, mine.most_blocks(mine.num_layers, self.grid))
        if self.share is not None:
            return [min(most, int(self.share * self.grid + TOLERANCE))] if most >= 0 else []
        return range(most + 1)

    def _split_time(self, primary: int, used: Sequence[tuple[int, int]]) -> SplitTime:
        return SplitTime(self.times, primary, [rank for rank, _ in used])

    def _with_heads(
        self, mine: Primary, division: Division | None, rooms: Mapping[int, float]
    ) -> Division | None:
        """All columns moved, and as many heads as the primary still lacks memory for."""
        if division is None:
            return None
        block_bytes = mine.num_layers * mine.ffn_bytes / self.grid
        sizes = zip(division.secondaries, division.split.blocks[1:], strict=True)
        left = {rank: rooms[rank] - size * block_bytes for rank, size in sizes}
        heads = place_heads(self.room, mine.over_bytes - self.grid * block_bytes, left)
        return None if heads is None else division._replace(heads=heads)


def filled(
    total: int, block_s: Sequence[float], first_s: Sequence[float], caps: Sequence[int]
) -> tuple[int, ...] | None:
    """`total` blocks dealt out so that the slowest device is as fast as possible: n blocks take device i
    `first_s[i] + n · block_s[i]`, and it has room for `caps[i]`. None if the caps are too small.
    """
    if sum(caps) < total:
        return None
    blocks = [0] * len(caps)
    ends = [(first_s[i] + block_s[i], i) for i, cap in enumerate(caps) if cap > 0]
    heapify(ends)
    for _ in range(total):
        end_s, index = ends[0]
        blocks[index] += 1
        full = blocks[index] >= caps[index]
        heapreplace(ends, (float("inf") if full else end_s + block_s[index], index))
    return tuple(blocks)
