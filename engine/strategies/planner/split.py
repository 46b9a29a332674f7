"""Find the group, heads and columns with which a request split by an all-reduce is answered soonest. Pure.

Groups are compared by shares in proportion to speed within memory (`groups.py`). For the best ones the shares
are exact (`exact.py`), in whole KV groups and in single heads, and the predicted time of the request decides.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise, permutations
from math import ceil, inf

from engine.domain.errors import PlanError
from engine.domain.plan import Plan, Slice
from engine.ops.layout import kv_heads
from engine.ops.sizes import weight_bytes
from engine.program.collectives import chunk_bounds
from engine.strategies.planner.exact import best_shares, most_granules
from engine.strategies.planner.groups import Group, best_groups
from engine.strategies.planner.order import nearest_first
from engine.strategies.planner.split_time import SplitTime
from engine.strategies.shared.demand import end_ops, weights_bytes, working_bytes
from engine.strategies.shared.pipeline import ends_placement
from engine.strategies.shared.shares import bounds_of, largest_remainder, layer_s
from engine.strategies.shared.tensor_parallel import Bounds, TensorParallelLayout, share_ops

GRANULES = 64
"""How many parts the columns are divided into."""
REFINED = 3
"""How many of the best groups get exact shares."""
EXACT_MEMBERS = 8
"""The most members that get exact shares. Larger groups keep shares in proportion to speed within memory."""
MOVED = 100
"""How many moves of heads or columns between two members are tried around the best shares."""
LARGEST_MOVE = 4
CAPS = 32
"""A device's largest share of a layer is found in steps of 1 / CAPS."""


class SplitSearch:
    """The search for one run; `time` knows its ends and its all-reduces."""

    def __init__(self, time: SplitTime):
        self.time = time
        self.cluster, self.model, self.demand = time.cluster, time.model, time.demand
        self.cuts = tuple(
            chunk_bounds(self.model.intermediate_size, min(GRANULES, self.model.intermediate_size))
        )
        self.need_bytes = cache(self._need_bytes)
        self.share_bytes = cache(self._share_bytes)
        self._heads_bytes = cache(self._of_heads)
        self._columns_bytes = cache(self._of_columns)
        self.largest_share = cache(self._largest_share)
        self.speed = cache(self._speed)

    def candidates(self) -> list[Bounds]:
        """Bounds by the predicted time of a request, the best first; none if no group has the memory."""
        order = nearest_first(self.cluster, self.model, self.demand)
        ranks = sorted(order, key=lambda rank: -self.speed(rank))
        groups = best_groups(ranks, lambda group: self._time_s(self.proportional(group)), order)
        found: dict[Bounds, float] = {}
        refined = 0
        for group in groups:
            plain = self.proportional(group)
            if plain is None:
                continue
            found[plain] = self.time.request_s(plain)
            if refined < REFINED and 1 < len(group) <= EXACT_MEMBERS:
                refined += 1
                for bounds in self.exact(group):
                    found[bounds] = self.time.request_s(bounds)
        if not found:
            found = {bounds: self.time.request_s(bounds) for bounds in self.exact(order)}
        if found and len((best := min(found, key=lambda bounds: found[bounds])).group) > 1:
            moved = self._moved(best, found[best])
            found[moved] = self.time.request_s(moved)
        return sorted(found, key=lambda bounds: found[bounds])

    def _moved(self, best: Bounds, best_s: float) -> Bounds:
        """The shares that moves from `best` lead to, each of which makes the request faster."""
        tried, step = 0, LARGEST_MOVE
        while step:
            before_s = best_s
            for giver, taker in permutations(range(len(best.group)), 2):
                for other in self._moves(best, giver, taker, step):
                    tried += 1
                    if tried > MOVED:
                        return best
                    if (other_s := self.time.request_s(other)) < best_s:
                        best, best_s = other, other_s
            step = step if best_s < before_s else step // 2
        return best

    def _moves(self, bounds: Bounds, giver: int, taker: int, step: int) -> Iterator[Bounds]:
        """`bounds` with so many head units, and so many granules of columns, of `giver` for `taker` (their
        places in the group), where these have and hold them.
        """
        group = bounds.group
        sizes = {"heads": step * self.head_unit(group), "columns": step * self.cuts[1]}
        for kind, size in sizes.items():
            shares = {of: [stop - start for start, stop in pairwise(getattr(bounds, of))] for of in sizes}
            shares[kind][giver] -= size
            shares[kind][taker] += size
            if shares[kind][giver] < 0:
                continue
            granules = bisect_left(self.cuts, shares["columns"][taker])
            if self._fits(group[taker], 1, shares["heads"][taker], granules):
                yield Bounds(group, bounds_of(shares["heads"]), bounds_of(shares["columns"]))

    def _time_s(self, bounds: Bounds | None) -> float:
        return inf if bounds is None else self.time.request_s(bounds)

    def proportional(self, group: Group) -> Bounds | None:
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
        return Bounds(group, bounds_of([unit * count for count in heads]), bounds_of(columns))

    def head_unit(self, group: Group) -> int:
        """Heads that are divided together: whole KV groups if every device can have one."""
        return self.model.group_size if len(group) <= self.model.num_kv_heads else 1

    def exact(self, group: Group) -> list[Bounds]:
        """The shares with the least sum of the slowest parts, by KV groups and by single heads."""
        found = []
        units = dict.fromkeys((self.model.group_size, 1))
        for unit in units:
            number, granules = self.model.num_heads // unit, len(self.cuts) - 1
            mha_s = [[self.time.attention_s(rank, 0, n * unit) for n in range(number + 1)] for rank in group]
            mlp_s = [[self.time.ffn_s(rank, self.cuts[n]) for n in range(granules + 1)] for rank in group]
            most = [most_granules(number, granules, partial(self._fits, rank, unit)) for rank in group]
            shares = best_shares(mha_s, mlp_s, most)
            if shares is not None:
                heads = bounds_of([unit * count for count in shares[0]])
                cuts = bounds_of(shares[1])
                found.append(Bounds(group, heads, tuple(self.cuts[cut] for cut in cuts)))
        return found

    def _fits(self, rank: int, unit: int, units: int, granules: int) -> bool:
        return self.need_bytes(rank, units * unit, granules) <= self.cluster.devices[rank].usable_bytes

    def _speed(self, rank: int) -> float:
        return 1 / layer_s(self.cluster.devices[rank], self.model, self.demand)

    def _largest_share(self, rank: int) -> float:
        heads, granules = self.model.num_heads, len(self.cuts) - 1
        low, high = -1, CAPS
        while low < high:
            middle = (low + high + 1) // 2
            needed = self.need_bytes(rank, ceil(heads * middle / CAPS), ceil(granules * middle / CAPS))
            fits = needed <= self.cluster.devices[rank].usable_bytes
            low, high = (middle, high) if fits else (low, middle - 1)
        return low / CAPS if low >= 0 else -inf

    def _need_bytes(self, rank: int, heads: int, granules: int) -> float:
        """Weights, KV caches and the largest working set with so many heads and granules of columns."""
        model = self.model
        stays_bytes, works_bytes = self.share_bytes(heads, granules)
        if rank != self.cluster.source_rank:
            return stays_bytes + works_bytes
        ends_bytes = weights_bytes(ends_placement("", self.cluster, model), model, rank)
        return stays_bytes + max(works_bytes, working_bytes(model, end_ops(model, self.demand))) + ends_bytes

    def _share_bytes(self, heads: int, granules: int) -> tuple[int, int]:
        """Of a share on any device: what stays, and what its largest operation works with. No operation has
        both heads and columns, and with more of its own each works with more.
        """
        heads_bytes, heads_work_bytes, fetched_bytes = self._heads_bytes(heads)
        columns_bytes, columns_work_bytes = self._columns_bytes(granules)
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

    def _of_columns(self, granules: int) -> tuple[int, int]:
        """What stays of so many granules of a layer's columns, and the most that an operation works with."""
        columns = self.cuts[granules]
        piece = Slice(layer=0, part="ffn", axis="columns", start=0, stop=columns)
        ops = share_ops(self.model, self.demand, (0, 0), (0, columns))
        return weight_bytes(self.model, piece), working_bytes(self.model, ops)


def equal_groups(time: SplitTime, can_share: Callable[[Group], bool]) -> list[Bounds]:
    """Groups whose members get equal shares, by the predicted time of a request, the best first. `can_share`
    says whether a group divides heads and columns without rest.
    """
    cluster, model, demand = time.cluster, time.model, time.demand

    def equal(group: Group) -> Bounds:
        sizes = (model.num_heads, model.intermediate_size)
        return Bounds(group, *(tuple(range(0, size + 1, size // len(group))) for size in sizes))

    def time_s(group: Group) -> float:
        return time.request_s(equal(group)) if can_share(group) else inf

    order = nearest_first(cluster, model, demand)
    ranks = sorted(order, key=lambda rank: layer_s(cluster.devices[rank], model, demand))
    return [equal(group) for group in best_groups(ranks, time_s, order) if can_share(group)]


def first_plan(
    candidates: Sequence[Bounds], plan_of: Callable[[Bounds], Plan[TensorParallelLayout]]
) -> Plan[TensorParallelLayout] | None:
    """The plan of the first candidate that has the memory; None if none has."""
    for bounds in candidates:
        with contextlib.suppress(PlanError):
            return plan_of(bounds)
    return None
