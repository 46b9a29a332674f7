"""Allocate the heads of one block to devices: EdgeFormer's Algorithm 1 and its LiScore. Pure.

Yao, Niu, Dai, Ren, "EdgeFormer: Latency-Aware Collaborative Multi-Head Attention", Eqs. 14, 15, 23 and
Algorithm 1. Heads of a block cost the same everywhere but for the device, so each device is a row of
slots with finish times Δ + m·c. Readings where text and algorithm differ:
heads are sorted by importance I (their LiScore needs the assignment), a device with one free slot is a
candidate, and the deadline is tested against the makespan (the literal line 12 adds a device's total to
the makespan and so counts it twice; `check="paper"`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf
from typing import Literal, NamedTuple

from engine.domain.errors import PlanError

Fill = Literal["balance", "bands"]
Check = Literal["makespan", "paper"]
PRUNED = -1
SLACK = 1 + 1e-9
"""A makespan that equals the deadline but for rounding meets it."""


class Site(NamedTuple):
    """A device that may attend heads of a block: `rank`, room for `room` heads, Δ and c in seconds."""

    rank: int
    room: int
    fixed_s: float
    head_s: float

    def busy_s(self, heads: int) -> float:
        """Seconds until it is through with that many heads: 0 without any."""
        return self.fixed_s + heads * self.head_s if heads else 0.0


class HeadAllocation(NamedTuple):
    """Which device attends which heads. `device_of` has the rank of every head, -1 for a pruned one.
    `evaluations` counts Δ + m·c terms.
    """

    device_of: tuple[int, ...]
    collab_s: float
    evaluations: int = 0

    def heads_of(self, rank: int) -> tuple[int, ...]:
        """Heads on device `rank`, ascending."""
        return tuple(head for head, device in enumerate(self.device_of) if device == rank)

    @property
    def pruned(self) -> tuple[int, ...]:
        return self.heads_of(PRUNED)

    @property
    def num_kept(self) -> int:
        return len(self.device_of) - self.device_of.count(PRUNED)


def normalised(raw: Sequence[float]) -> tuple[float, ...]:
    """Importance of a block's heads in [0, 1] (Eq. 14); all 1 if they are equal."""
    low, high = min(raw), max(raw)
    if high == low:
        return (1.0,) * len(raw)
    return tuple((value - low) / (high - low) for value in raw)


def allocate(
    importance: Sequence[float],
    sites: Sequence[Site],
    t_max_s: float = inf,
    fill: Fill = "balance",
    check: Check = "makespan",
    min_keep: int = 0,
    only: Sequence[int] | None = None,
    barred: Collection[int] = (),
) -> HeadAllocation:
    """Algorithm 1: heads by falling importance, each to the first site that meets the deadline, else pruned.

    `sites[0]` is the owner; ties go to it, then to the lower rank. balance: the site that is through
    first; bands: the cheapest site until it is full, so heads lie in bands of importance. `min_keep`
    heads stay on the owner whatever the deadline, as far as its room goes. `only` gives every head the
    one rank that may have it; `barred` heads are pruned.
    """
    count = [0] * len(sites)
    device_of = [PRUNED] * len(importance)
    collab_s, evaluations = 0.0, 0
    ranked = [head for head in by_importance(importance) if head not in barred]
    # (through with one head more, not the owner, rank, number) of every site that is not full
    open_sites = sorted(
        (site.busy_s(1), i > 0, site.rank, i)
        for i, site in enumerate(sites)
        if site.room > 0 and site.head_s < inf
    )
    for head in ranked:
        candidates = [site for site in open_sites if only is None or site[2] == only[head]]
        evaluations += len(candidates)
        if fill == "balance" and candidates:
            candidates = [min(candidates)]  # sites that finish later miss the deadline too
        for candidate in candidates:
            through_s, _, rank, i = candidate
            total_s = max(collab_s, through_s) if check == "makespan" else collab_s + through_s
            if total_s <= t_max_s * SLACK:
                device_of[head] = rank
                count[i] += 1
                collab_s = max(collab_s, through_s)
                place = open_sites.index(candidate)
                if count[i] < sites[i].room:
                    open_sites[place] = (sites[i].busy_s(count[i] + 1), i > 0, rank, i)
                else:
                    del open_sites[place]
                break
    for head in ranked[:min_keep]:
        if sum(count) < min_keep and device_of[head] == PRUNED and count[0] < sites[0].room:
            device_of[head] = sites[0].rank
            count[0] += 1
            collab_s = max(collab_s, sites[0].busy_s(count[0]))
    return HeadAllocation(tuple(device_of), collab_s, evaluations)


def slots_s(sites: Sequence[Site], num_heads: int, only: Sequence[int] | None = None) -> tuple[float, ...]:
    """Finish times of the slots that `num_heads` heads may take, ascending: Δ + m·c for m = 1, 2, … on every
    device, as far as its room goes, or as far as `only` gives it heads.
    """
    limits = [min(site.room, num_heads if only is None else only.count(site.rank)) for site in sites]
    return tuple(
        sorted(
            site.busy_s(number)
            for site, limit in zip(sites, limits, strict=True)
            if site.head_s < inf
            for number in range(1, limit + 1)
        )
    )


def li_scores(
    importance: Sequence[float], allocation: HeadAllocation, sites: Sequence[Site], weight: float
) -> tuple[float | None, ...]:
    """LiScore λI + (1-λ)·T_min/T of every retained head (Eq. 15, bounded reading), None for pruned ones.

    T is the attention time of the head's device, T_min the least of the retained heads: in literal 1/s
    the second term is a hundred times the first.
    """
    busy_s = _busy_s(allocation, sites)
    least_s = min(busy_s.values(), default=0.0)
    return tuple(
        None if rank == PRUNED else weight * value + (1 - weight) * least_s / busy_s[rank]
        for value, rank in zip(importance, allocation.device_of, strict=True)
    )


def pruned_by_score(
    importance: Sequence[float],
    sites: Sequence[Site],
    t_max_s: float,
    weight: float,
    fill: Fill = "balance",
    min_keep: int = 0,
) -> HeadAllocation:
    """Algorithm 1 with as many heads as the deadline leaves time for, without those of the lowest LiScore.

    The score needs an assignment: that of all heads, without a deadline. Every head costs the same, so that
    the number of heads that are kept does not depend on which they are.
    """
    everything = allocate(importance, sites, fill=fill)
    number = allocate(importance, sites, t_max_s, fill, min_keep=min_keep).num_kept
    scores = li_scores(importance, everything, sites, weight)
    heads = sorted(range(len(importance)), key=lambda head: (-(scores[head] or 0.0), -importance[head], head))
    found = allocate(importance, sites, t_max_s, fill, min_keep=min_keep, barred=heads[number:])
    return (
        found if found.num_kept == number else allocate(importance, sites, t_max_s, fill, min_keep=min_keep)
    )


def prune_to_deadline(
    importance: Sequence[float],
    allocation: HeadAllocation,
    sites: Sequence[Site],
    t_max_s: float,
    weight: float,
    min_keep: int = 0,
) -> HeadAllocation:
    """Prune heads until a deadline is met (stage 3), for costs that changed since the assignment: heads stay
    where they are, and of the slowest device's heads the one with the lowest LiScore is pruned until the
    makespan meets the deadline or only `min_keep` heads are left. Heads of devices that are not among `sites`
    any more are pruned; where that leaves fewer than `min_keep`, the most important ones go to the owner, as
    far as its room goes.

    The paper prunes the lowest score of all devices, which need not shorten anything.
    """
    known = {site.rank for site in sites if site.head_s < inf}
    device_of = [rank if rank in known else PRUNED for rank in allocation.device_of]
    owner = sites[0]
    for head in by_importance(importance):
        few = len(device_of) - device_of.count(PRUNED) < min_keep
        if few and device_of[head] == PRUNED and device_of.count(owner.rank) < owner.room:
            device_of[head] = owner.rank
    while True:
        now = allocation._replace(device_of=tuple(device_of))
        busy_s = _busy_s(now, sites)
        collab_s = max(busy_s.values(), default=0.0)
        if collab_s <= t_max_s * SLACK or now.num_kept <= min_keep:
            return now._replace(collab_s=collab_s)
        bottleneck = next(rank for rank, seconds in busy_s.items() if seconds == collab_s)
        scores = li_scores(importance, now, sites, weight)
        device_of[_least(now.heads_of(bottleneck), scores, importance)] = PRUNED


def even_split(num_heads: int, ranks: Sequence[int]) -> tuple[int, ...]:
    """A rank for every head, contiguous and as even as can be: the ablation without scheduling."""
    return tuple(ranks[head * len(ranks) // num_heads] for head in range(num_heads))


def by_importance(importance: Sequence[float]) -> tuple[int, ...]:
    """Heads by falling importance, ties by number."""
    return tuple(sorted(range(len(importance)), key=lambda head: (-importance[head], head)))


def _busy_s(allocation: HeadAllocation, sites: Sequence[Site]) -> dict[int, float]:
    """Attention time of every device that has heads, in the order of `sites`."""
    counts = {site.rank: allocation.device_of.count(site.rank) for site in sites}
    missing = set(allocation.device_of) - counts.keys() - {PRUNED}
    if missing:
        raise PlanError(f"heads lie on ranks {sorted(missing)}, which are no sites: expected {list(counts)}.")
    return {site.rank: site.busy_s(counts[site.rank]) for site in sites if counts[site.rank]}


def _least(heads: Sequence[int], scores: Sequence[float | None], importance: Sequence[float]) -> int:
    """The head with the lowest LiScore, then lowest importance, then highest number."""
    return min(heads, key=lambda head: (scores[head] or 0.0, importance[head], -head))
