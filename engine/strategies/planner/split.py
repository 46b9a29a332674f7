"""Find the group, heads and columns with which a request whose layers are split is answered soonest. Pure.

A search begins with shares in proportion to speed within memory (`search.py`).
"""

from __future__ import annotations

from functools import cache, partial
from itertools import pairwise
from math import ceil, inf
from typing import Any

from typing_extensions import TypeVar

from engine.domain.plan import Slice
from engine.ops.layout import kv_heads
from engine.ops.sizes import weight_bytes
from engine.planning.judge import Judge
from engine.planning.search import Shares
from engine.program.collectives import chunk_bounds
from engine.strategies.planner.estimate import SplitEstimate
from engine.strategies.planner.exact import best_shares, most_granules
from engine.strategies.planner.groups import Group
from engine.strategies.planner.search import GroupSearch
from engine.strategies.shared.demand import end_ops, weights_bytes, working_bytes
from engine.strategies.shared.pipeline import ends_placement
from engine.strategies.shared.shares import bounds_of, largest_remainder
from engine.strategies.shared.tensor_parallel import Bounds, ShareLayout, share_ops

SplitLayoutT = TypeVar("SplitLayoutT", bound=ShareLayout, default=Any)

GRANULES = 64
"""In so many parts columns are divided at first."""
COLUMN_STEPS = 108
"""Columns move in steps of this part of all."""
CAPS = 32
"""A device's largest share of a layer is found in steps of 1 / CAPS."""


class SplitSearch(GroupSearch[SplitLayoutT]):
    """The search for one run."""

    def __init__(self, estimate: SplitEstimate, judge: Judge):
        super().__init__(judge, estimate.cluster, estimate.model, estimate.demand)
        self.estimate = estimate
        self.cuts = tuple(
            chunk_bounds(self.model.intermediate_size, min(GRANULES, self.model.intermediate_size))
        )
        self.need_bytes = cache(self._need_bytes)
        self.share_bytes = cache(self._share_bytes)
        self._heads_bytes = cache(self._of_heads)
        self._columns_bytes = cache(self._of_columns)
        self.largest_share = cache(self._largest_share)

    def _estimate_s(self, shares: Shares) -> float:
        return self.estimate.request_s(shares)

    def starts(self, group: Group) -> list[Shares]:
        start = self.proportional(group)
        return [] if start is None else self.with_rest(start)

    def with_rest(self, shares: Shares) -> list[Shares]:
        """`shares` of heads and columns with what else the method divides, in every way to begin with."""
        return [shares]

    def refined(self, group: Group) -> list[Shares]:
        return [start for exact in self.exact(group) for start in self.with_rest(exact)]

    def steps(self) -> tuple[int, ...]:
        return 1, max(1, self.model.intermediate_size // COLUMN_STEPS)

    def _fits(self, shares: Shares) -> bool:
        group, (heads, columns, *_) = shares
        return all(
            self.need_bytes(rank, mine, wide) <= self.cluster.devices[rank].usable_bytes
            for rank, mine, wide in zip(group, heads, columns, strict=True)
        )

    def proportional(self, group: Group) -> Shares | None:
        """Shares in proportion to speed, none larger than a memory allows; None without the room."""
        shares, open_ = dict.fromkeys(group, 0.0), set(group)
        while open_:
            left = 1 - sum(shares[rank] for rank in group if rank not in open_)
            speed = sum(self.speed(rank) for rank in open_)
            full = {rank for rank in open_ if self.largest_share(rank) < left * self.speed(rank) / speed}
            for rank in full or open_:
                shares[rank] = self.largest_share(rank) if full else left * self.speed(rank) / speed
            open_ = open_ - full if full else set()
        if sum(shares.values()) < 1 - 1e-9:
            return None
        weights = [shares[rank] for rank in group]
        unit = self.head_unit(group)
        heads = largest_remainder(self.model.num_heads // unit, weights)
        columns = largest_remainder(self.model.intermediate_size, weights)
        return Shares(group, (tuple(unit * count for count in heads), columns))

    def head_unit(self, group: Group) -> int:
        """Heads that are divided together: whole KV groups if every device can have one."""
        return self.model.group_size if len(group) <= self.model.num_kv_heads else 1

    def exact(self, group: Group) -> list[Shares]:
        """The shares with the least sum of the slowest parts, by KV groups and by single heads."""
        estimate, found = self.estimate, []
        for unit in dict.fromkeys((self.model.group_size, 1)):
            number, granules = self.model.num_heads // unit, len(self.cuts) - 1
            mha_s = [
                [estimate.in_all_s(rank, "heads", n * unit) for n in range(number + 1)] for rank in group
            ]
            mlp_s = [[estimate.in_all_s(rank, "columns", cut) for cut in self.cuts] for rank in group]
            most = [most_granules(number, granules, partial(self._holds, rank, unit)) for rank in group]
            shares = best_shares(mha_s, mlp_s, most)
            if shares is not None:
                heads = tuple(unit * count for count in shares[0])
                bounds = bounds_of(shares[1])
                columns = tuple(self.cuts[stop] - self.cuts[first] for first, stop in pairwise(bounds))
                found.append(Shares(group, (heads, columns)))
        return found

    def _holds(self, rank: int, unit: int, units: int, granules: int) -> bool:
        needed = self.need_bytes(rank, units * unit, self.cuts[granules])
        return needed <= self.cluster.devices[rank].usable_bytes

    def _largest_share(self, rank: int) -> float:
        heads, granules = self.model.num_heads, len(self.cuts) - 1
        low, high = -1, CAPS
        while low < high:
            middle = (low + high + 1) // 2
            columns = self.cuts[ceil(granules * middle / CAPS)]
            needed = self.need_bytes(rank, ceil(heads * middle / CAPS), columns)
            fits = needed <= self.cluster.devices[rank].usable_bytes
            low, high = (middle, high) if fits else (low, middle - 1)
        return low / CAPS if low >= 0 else -inf

    def _need_bytes(self, rank: int, heads: int, columns: int) -> float:
        """Weights, KV caches and the largest working set with so many heads and columns."""
        model = self.model
        stays_bytes, works_bytes = self.share_bytes(heads, columns)
        if rank != self.cluster.source_rank:
            return stays_bytes + works_bytes
        ends_bytes = weights_bytes(ends_placement("", self.cluster, model), model, rank)
        return stays_bytes + max(works_bytes, working_bytes(model, end_ops(model, self.demand))) + ends_bytes

    def _share_bytes(self, heads: int, columns: int) -> tuple[int, int]:
        """Of a share on any device: what stays, and what its largest operation works with. No operation has
        both heads and columns, and with more of its own each works with more.
        """
        heads_bytes, heads_work_bytes, fetched_bytes = self._heads_bytes(heads)
        columns_bytes, columns_work_bytes = self._columns_bytes(columns)
        works_bytes = max(heads_work_bytes, columns_work_bytes + fetched_bytes)
        return self.model.num_layers * (heads_bytes + columns_bytes), works_bytes

    def _of_heads(self, heads: int) -> tuple[int, int, int]:
        """What stays of so many heads of a layer, the most that an operation works with, and what every other
        operation has beside it.
        """
        model, demand = self.model, self.demand
        piece = Slice(layer=0, part="attention", axis="heads", start=0, stop=heads)
        first, last = kv_heads(model, 0, heads)
        stays_bytes = weight_bytes(model, piece) + demand.kv_bytes(model, last - first)
        works_bytes = working_bytes(model, share_ops(model, demand, (0, heads), (0, 0)))
        return stays_bytes, works_bytes, demand.fetched_bytes(model, last - first)

    def _of_columns(self, columns: int) -> tuple[int, int]:
        """What stays of so many columns of a layer, and the most that an operation works with."""
        piece = Slice(layer=0, part="ffn", axis="columns", start=0, stop=columns)
        ops = share_ops(self.model, self.demand, (0, 0), (0, columns))
        return weight_bytes(self.model, piece), working_bytes(self.model, ops)


def bounds_in(shares: Shares) -> Bounds:
    """Heads and columns of the members as consecutive pieces."""
    heads, columns, *_ = shares.amounts
    return Bounds(shares.group, bounds_of(heads), bounds_of(columns))


def shares_in(bounds: Bounds) -> Shares:
    """How many heads and columns each member has."""
    of = (tuple(stop - start for start, stop in pairwise(cuts)) for cuts in (bounds.heads, bounds.columns))
    return Shares(bounds.group, tuple(of))
