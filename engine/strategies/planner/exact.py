"""Divide heads and columns so that the slowest members take the least time, within every memory. Pure.

The objective is that of Galaxy's planner (Ye et al., INFOCOM 2024): max_d t_MHA(a_d) + max_d t_MLP(b_d) for
a_d head units and b_d granules of columns on member d. For limits of both maxima every member has a largest
number of granules beside each number of heads, and dynamic programming over the members says whether all
units find a place. The limits are times that occur, so trying them in order finds the optimum.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, takewhile
from math import inf

Table = Sequence[Sequence[float]]
"""Seconds by member and number of units, from 0 on; more units never take less."""
UnitShares = tuple[tuple[int, ...], tuple[int, ...]]
"""Head units of each member, and granules of columns of each."""


def best_shares(mha_s: Table, mlp_s: Table, most: Sequence[Sequence[int]]) -> UnitShares | None:
    """Head units and granules of each member; None if the memories are too small.

    `most[d][a]` granules fit on member d beside `a` head units; -1 if not even those heads fit. Among equally
    fast shares the more even ones.
    """
    granules = len(mlp_s[0]) - 1
    mha = [list(accumulate(times, max)) for times in mha_s]
    mlp = [list(accumulate(times, max)) for times in mlp_s]
    head_limits = sorted({time for times in mha for time in times})
    column_limits = sorted({time for times in mlp for time in times})

    def table(head_s: float, column_s: float) -> list[list[int]]:
        """For each member, how many granules fit beside each number of heads that is fast enough."""
        rooms = []
        for of_heads, of_columns, fits in zip(mha, mlp, most, strict=True):
            fast = bisect_right(of_columns, column_s) - 1
            rooms.append([min(fast, fits[units]) for units in range(bisect_right(of_heads, head_s))])
        return rooms

    def enough(head_s: float, column_s: float) -> bool:
        if sum(bisect_right(times, head_s) - 1 for times in mha) < len(mha[0]) - 1:
            return False
        return _placed(table(head_s, column_s), len(mha[0]) - 1)[-1][-1] >= granules

    best: tuple[float, float] | None = None
    for head_s in head_limits:
        least_s = inf if best is None else sum(best) - head_s
        worth = bisect_left(column_limits, least_s)
        if worth == 0 or not enough(head_s, column_limits[worth - 1]):
            continue
        low, high = 0, worth - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(head_s, column_limits[middle]) else (middle + 1, high)
        best = head_s, column_limits[low]
    return None if best is None else _evenly(table(*best), len(mha[0]) - 1, granules)


def _placed(rooms: Sequence[Sequence[int]], units: int) -> list[list[float]]:
    """[n][k]: the most granules on the first n members that have k head units; -inf if there is no way, or
    none for the other members to have the rest.
    """
    most = [len(list(takewhile(lambda granules: granules >= 0, room))) - 1 for room in rooms]
    ways, reached, left = [[0.0, *[-inf] * units]], 0, sum(most)
    for room, mine_most in zip(rooms, most, strict=True):
        before, after = ways[-1], [-inf] * (units + 1)
        left -= mine_most
        for mine in range(mine_most + 1):
            granules = room[mine]
            for total in range(max(mine, units - left), min(units, reached + mine) + 1):
                way = before[total - mine] + granules
                if way > after[total]:
                    after[total] = way
        reached += mine_most
        ways.append(after)
    return ways


def _evenly(rooms: Sequence[Sequence[int]], units: int, granules: int) -> UnitShares:
    """One way to place all units: each member, from the last to the first, as near to the mean as can be."""
    ways = _placed(rooms, units)
    heads, columns, later = [0] * len(rooms), [0] * len(rooms), 0
    for n in range(len(rooms) - 1, -1, -1):
        mean = units / (n + 1)
        fits = [
            mine
            for mine in range(min(units, len(rooms[n]) - 1) + 1)
            if rooms[n][mine] >= 0 and ways[n][units - mine] + rooms[n][mine] + later >= granules
        ]
        heads[n] = min(fits, key=lambda mine, mean=mean: abs(mine - mean))  # type: ignore[misc]
        units, later = units - heads[n], later + rooms[n][heads[n]]
    room = [fits[mine] for fits, mine in zip(rooms, heads, strict=True)]
    for n in range(len(rooms) - 1, -1, -1):
        least = granules - sum(room[:n])
        columns[n] = min(room[n], max(least, round(granules / (n + 1))))
        granules -= columns[n]
    return tuple(heads), tuple(columns)


def most_granules(units: int, granules: int, fits: Callable[[int, int], bool]) -> list[int]:
    """The granules that fit beside each number of head units up to `units`, -1 if none and not even the
    heads. `fits` is monotone in both.
    """
    if fits(units, granules):
        return [granules] * (units + 1)
    found, high = [], granules
    for mine in range(units + 1):
        low = -1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(mine, middle) else (low, middle - 1)
        found.append(low)
    return found
