"""Choose stages among more devices than an exact search can take: the best stages along many orders. Pure.

Along one order of all devices dynamic programming finds the best stages exactly: which devices to skip, and
where to cut. The search starts from several orders and moves one device at a time. `lower_bound_s` says how
far the result can be from the optimum. One of its bounds is the recurrence of Zhang et al. ("EdgeShard",
2024, Algorithm 1), which may return to a device.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from random import Random
from typing import Any

from engine.strategies.edgeshard.segments import Objective, Profile, cost_s, segments_s
from engine.strategies.shared.stages import Stage

WORK = 20_000_000
"""Steps of one search: about a quarter of a second on the computer of `docs/results/strategies.md`."""
MOST_MOVES = 500
CLOSE = 1 + 1e-9


def searched_segments(profile: Profile, objective: Objective) -> tuple[Stage, ...] | None:
    """The best stages found; None if memory is too small. The same for the same profile."""
    import numpy as np

    devices, layers = len(profile.layer_s), len(profile.layer_s[0])
    parts = _Parts(profile, objective, np)
    bound_s = lower_bound_s(profile, objective)
    best_s, best, order = inf, None, tuple[int, ...]()
    for start in _starts(profile):
        stages = _along(parts, start)
        found_s = inf if stages is None else cost_s(profile, stages, objective)
        if found_s < best_s or best is None:
            best_s, best, order = found_s, stages, start
    draw, number = Random(0), min(MOST_MOVES, WORK // (devices * (layers + devices) * (layers + 1)))
    for _ in range(number):
        if best is None or best_s <= bound_s * CLOSE:
            break
        moved = _moved(draw, order, [stage.device for stage in best])
        stages = _along(parts, moved)
        found_s = inf if stages is None else cost_s(profile, stages, objective)
        if found_s <= best_s:
            best_s, best, order = found_s, stages, moved
    return best


def lower_bound_s(profile: Profile, objective: Objective) -> float:
    """Seconds that no stages can beat, and perhaps none reach: the larger of two bounds."""
    return max(_returning_s(profile, objective), _filled_s(profile, objective))


def _returning_s(profile: Profile, objective: Objective) -> float:
    """The best path that may use a device again, without limits of memory. O(N · M²)."""
    import numpy as np

    add = np.add if objective == "latency" else np.maximum
    layer_s, hop_s = np.array(profile.layer_s, dtype=float), np.array(profile.hop_s, dtype=float)
    layer_s[np.array(profile.max_layers) == 0] = inf
    at_s = add(np.array(profile.enter_s, dtype=float), layer_s[:, 0])
    for layer in range(1, layer_s.shape[1]):
        hops_s = hop_s[layer].copy()
        np.fill_diagonal(hops_s, 0.0)
        at_s = add(add(at_s[:, None], hops_s).min(axis=0), layer_s[:, layer])
    return float(add(at_s, np.array(profile.return_s, dtype=float)).min())


def _filled_s(profile: Profile, objective: Objective) -> float:
    """Every layer as fast as a device's fastest, within its memory, and no transfers. Where only one device
    may have the first layer, that is counted there.
    """
    layers, room, spent_s = len(profile.layer_s[0]), [*profile.max_layers], [0.0] * len(profile.layer_s)
    first = [j for j, enter_s in enumerate(profile.enter_s) if enter_s < inf]
    if len(first) == 1 and room[first[0]]:
        (j,) = first
        layers, room[j], spent_s[j] = layers - 1, room[j] - 1, profile.layer_s[j][0]
    least_s = [min(times) for times in profile.layer_s]
    total_s = sum(spent_s)

    def after_s(j: int) -> float:
        return least_s[j] if objective == "latency" else spent_s[j] + least_s[j]

    heap = [(after_s(j), j) for j, free in enumerate(room) if free]
    heapify(heap)
    for _ in range(layers):
        if not heap:
            return inf
        _, j = heappop(heap)
        room[j], spent_s[j], total_s = room[j] - 1, spent_s[j] + least_s[j], total_s + least_s[j]
        if room[j]:
            heappush(heap, (after_s(j), j))
    return total_s if objective == "latency" else max(spent_s)


class _Parts:
    """The profile as arrays: seconds of layers [i, m) on device j, and of every hop."""

    def __init__(self, profile: Profile, objective: Objective, np: Any):
        self.np, self.objective = np, objective
        self.segment_s = segments_s(profile)
        self.hop_s = np.array(profile.hop_s, dtype=float)
        self.enter_s, self.return_s = profile.enter_s, np.array(profile.return_s, dtype=float)
        self.add = np.add if objective == "latency" else np.maximum


def _along(parts: _Parts, order: tuple[int, ...]) -> tuple[Stage, ...] | None:
    """The best stages whose devices come in `order`; devices may be left out. O(M · N · (M + N))."""
    np, add = parts.np, parts.add
    devices, layers = len(order), parts.segment_s.shape[1] - 1
    arrive_s = np.full((devices, layers + 1), inf)  # on order[n] with the first m layers done elsewhere
    done_s = np.full((devices, layers + 1), inf)  # the last of the first m layers done on order[n]
    for n, j in enumerate(order):
        arrive_s[n, 0] = parts.enter_s[j]
        if n:
            arrive_s[n, 1:] = add(done_s[:n, 1:], parts.hop_s[1:, order[:n], j].T).min(axis=0)
        done_s[n] = add(arrive_s[n][:, None], parts.segment_s[j]).min(axis=0)
    total_s = add(done_s[:, layers], parts.return_s[list(order)])
    n, stop = int(total_s.argmin()), layers
    if total_s[n] == inf:
        return None
    stages = []
    while stop:
        j = order[n]
        start = int(add(arrive_s[n], parts.segment_s[j, :, stop]).argmin())
        stages.append(Stage(device=j, start=start, stop=stop))
        if start:
            n = int(add(done_s[:n, start], parts.hop_s[start, order[:n], j]).argmin())
        stop = start
    return tuple(reversed(stages))


def _starts(profile: Profile) -> list[tuple[int, ...]]:
    """Orders of devices to begin the search with: devices where a path may start come first, then the
    fastest, those with most room, and those that are reached and left soonest.
    """
    devices = range(len(profile.layer_s))
    mean_s = [sum(times) / len(times) for times in profile.layer_s]
    hops_s = profile.hop_s[len(profile.layer_s[0]) // 2]
    near_s = [sum(hops_s[k][j] + hops_s[j][k] for k in devices) for j in devices]
    keys = (
        lambda j: (mean_s[j], j),
        lambda j: (-profile.max_layers[j], mean_s[j], j),
        lambda j: (near_s[j], mean_s[j], j),
        lambda j: (mean_s[j] * min(profile.max_layers[j], len(mean_s)) + near_s[j], j),
    )
    orders = []
    for key in keys:
        order = sorted(devices, key=key)
        for way in (order, order[::-1]):
            orders.append(tuple(sorted(way, key=lambda j: profile.enter_s[j] == inf)))
    return orders


def _moved(draw: Random, order: tuple[int, ...], used: list[int]) -> tuple[int, ...]:
    """One device at another place: a used one three times out of four; sometimes a part is reversed."""
    changed = list(order)
    if draw.random() < 0.15:
        i, j = sorted(draw.sample(range(len(order) + 1), 2))
        changed[i:j] = reversed(changed[i:j])
        return tuple(changed)
    device = draw.choice(used) if draw.random() < 0.75 else draw.choice(changed)
    changed.remove(device)
    changed.insert(draw.randrange(len(changed) + 1), device)
    return tuple(changed)
