"""The mapping table of one block: heads seen before, by their features, with their importance.

Yao et al., EdgeFormer, "importance retrieval" and Eq. 17: a head b is looked up by its features f_sep = (mean
Q, mean K) and f_inter = Q·K per token; the distance (the paper calls it Sim, smaller is closer) is ‖f_sep -
f_sep'‖₂ + ζ(1 - cos(f_inter, f_inter')). The nearest cluster is searched for its nearest member; within τ its
importance is taken over (a hit). Heads that are measured are added. All heads of a block are looked up at
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.strategies.edgeformer.table_size import CAPACITY

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

RECLUSTER_AFTER = 256
TINY_NORM = 1e-12
ROUNDING = 1e-6
"""Distances this much over τ are within it: a head is at distance 0 from itself but for rounding."""


@dataclass(frozen=True, slots=True)
class Points:
    """Scaled features, one head a row, and the squared lengths of `sep`; contiguous, for fast products."""

    sep: Floats
    inter: Floats
    squares: Floats

    @classmethod
    def of(cls, sep: Floats, inter: Floats) -> Points:
        return cls(np.ascontiguousarray(sep), np.ascontiguousarray(inter), _squares(sep))

    def at(self, rows: Any) -> Points:
        """The points at `rows`: indices, a slice or a mask."""
        return Points(self.sep[rows], self.inter[rows], self.squares[rows])

    def and_also(self, others: Points) -> Points:
        return Points(
            np.concatenate((self.sep, others.sep)),
            np.concatenate((self.inter, others.inter)),
            np.concatenate((self.squares, others.squares)),
        )

    def __len__(self) -> int:
        return len(self.squares)


class MappingTable:
    """Maps features of a prompt to the importance of heads, by the nearest rows seen before.

    `width` is the number of f_sep's components in a row of features, the rest are f_inter's.

    With `unit` f_sep is scaled to length 1 first: literally the distance of unrelated heads grows with
    the model's width and τ would mean something else in every model.
    """

    def __init__(self, width: int, zeta: float, tau: float, unit: bool = True, capacity: int = CAPACITY):
        self.width, self.zeta, self.tau = width, zeta, tau
        self.unit, self.capacity = unit, capacity
        self.entries: Points | None = None
        self.centroids: Points | None = None
        self.raw: Floats = np.empty(0)
        self.cluster: Labels = np.empty(0, dtype=np.int64)
        self.last_hit: Labels = np.empty(0, dtype=np.int64)
        self.clock = 0
        self.num_added = 0

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def wants_order(self) -> bool:
        """Whether more than `RECLUSTER_AFTER` heads were added since the last clustering."""
        return self.num_added > RECLUSTER_AFTER

    def lookup(self, features: Any) -> tuple[list[float], list[bool]]:
        """Importance of every head's nearest entry, and whether it is a hit; nothing in an empty table, nor
        with a negative τ. `features` is [H, width + points].
        """
        self.clock += 1
        if self.entries is None or self.centroids is None or self.tau < 0:
            return [], []
        heads = self.scaled(features)
        nearest_cluster = self._order(heads, self.centroids).argmin(axis=1)
        wanted = np.zeros(len(self.centroids), dtype=bool)
        wanted[nearest_cluster] = True
        members = wanted[self.cluster].nonzero()[0]  # of all heads' clusters: few of all entries
        to_members = self._order(heads, self.entries.at(members))
        to_members[self.cluster[members] != nearest_cluster[:, None]] = np.inf
        nearest = members[to_members.argmin(axis=1)]
        hit = self.sim(heads, self.entries.at(nearest)) <= self.tau + ROUNDING
        self.last_hit[nearest[hit]] = self.clock
        return self.raw[nearest].tolist(), hit.tolist()

    def learn(self, features: Any, raw: Sequence[float]) -> None:
        """Enter heads that were missed, with their exact importance, into the cluster within τ, else a new
        one.
        """
        heads = self.scaled(features)
        labels = [self._cluster_of(heads.at(slice(row, row + 1))) for row in range(len(heads))]
        self.entries = heads if self.entries is None else self.entries.and_also(heads)
        self.raw = np.concatenate((self.raw, np.asarray(raw, dtype=np.float64)))
        self.cluster = np.concatenate((self.cluster, np.asarray(labels, dtype=np.int64)))
        self.last_hit = np.concatenate((self.last_hit, np.full(len(heads), self.clock)))
        self.num_added += len(heads)
        self._evict(len(self) - self.capacity)

    def shrink(self, capacity: int) -> None:
        """Keep at most `capacity` entries from now on."""
        self.capacity = capacity
        self._evict(len(self) - capacity)

    def _cluster_of(self, head: Points) -> int:
        """Number of the cluster within τ of one head, or of a new one around it."""
        if self.centroids is None:
            self.centroids = head
            return 0
        closest = self._order(head, self.centroids).argmin(axis=1)
        if self.sim(head, self.centroids.at(closest))[0] <= self.tau + ROUNDING:
            return int(closest[0])
        self.centroids = self.centroids.and_also(head)
        return len(self.centroids) - 1

    def recluster(self) -> None:
        """Cluster all entries anew by average link: on f_sep cut at τ, and inside each on 1 - cos(f_inter)
        cut at τ/ζ.

        For idle time. The paper gives no rule where to cut.
        """
        assert self.entries is not None, "an empty table has nothing to cluster"
        sep, inter = self.entries.sep, self.entries.inter
        labels = average_link(_euclidean(self.entries, self.entries), self.tau)
        if self.zeta > 0:
            fold = np.zeros_like(labels)
            for label in np.unique(labels):
                inside = np.flatnonzero(labels == label)
                fold[inside] = average_link(1 - inter[inside] @ inter[inside].T, self.tau / self.zeta)
            labels = labels * (len(labels) + 1) + fold
        _, self.cluster = np.unique(labels, return_inverse=True)
        members = [self.cluster == number for number in range(int(self.cluster.max()) + 1)]
        self.centroids = Points.of(
            np.stack([sep[inside].mean(axis=0) for inside in members]),
            _unit(np.stack([inter[inside].mean(axis=0) for inside in members])),
        )
        self.num_added = 0

    def scaled(self, features: Any) -> Points:
        """f_inter at length 1, so that products are cosines; f_sep too if `unit`."""
        rows = np.asarray(features, dtype=np.float64)
        sep, inter = rows[:, : self.width], rows[:, self.width :]
        return Points.of(_unit(sep) if self.unit else sep, _unit(inter))

    def sim(self, heads: Points, others: Points) -> Floats:
        """Distance of each head to the one of `others` in its place, exact for equal rows: [H]."""
        cosine = np.einsum("ij,ij->i", heads.inter, others.inter)
        distance: Floats = np.sqrt(_squares(heads.sep - others.sep)) + self.zeta * (1 - cosine)
        return distance

    def _order(self, heads: Points, others: Points) -> Floats:
        """Distances of all pairs less the constant ζ, good to rounding: [H, N]."""
        distances = _euclidean(heads, others)
        distances -= (self.zeta * heads.inter) @ others.inter.T
        return distances

    def _evict(self, excess: int) -> None:
        """Drop the least recently hit entries, and clusters that have none left."""
        if excess <= 0 or self.entries is None or self.centroids is None:
            return
        kept = np.sort(np.argsort(self.last_hit, kind="stable")[excess:])
        self.entries, self.raw, self.last_hit = self.entries.at(kept), self.raw[kept], self.last_hit[kept]
        alive, self.cluster = np.unique(self.cluster[kept], return_inverse=True)
        self.centroids = self.centroids.at(alive)
        if not len(kept):
            self.entries = self.centroids = None


def average_link(distances: Floats, cut: float) -> Labels:
    """Cluster numbers of N points by agglomeration with average link, merged up to distance `cut`.

    Follows chains of nearest neighbours (Murtagh 1983): O(N²). Average link is monotone, so the merges
    below the cut are the clusters whatever the order in which chains find them.
    """
    d = np.array(distances, dtype=np.float64)
    np.fill_diagonal(d, np.inf)
    size = np.ones(len(d))
    labels: Labels = np.arange(len(d))
    chain: list[int] = []
    for _ in range(len(d) - 1):
        if not chain:
            chain.append(int(np.flatnonzero(size)[0]))
        while True:
            at = chain[-1]
            nearest = int(d[at].argmin())
            if len(chain) > 1 and d[at, chain[-2]] <= d[at, nearest]:
                break
            chain.append(nearest)
        absorbed, stays = chain.pop(), chain.pop()
        height = d[absorbed, stays]
        merged = (size[absorbed] * d[absorbed] + size[stays] * d[stays]) / (size[absorbed] + size[stays])
        if height <= cut:
            labels[labels == labels[absorbed]] = labels[stays]
        d[stays] = d[:, stays] = merged
        d[absorbed] = d[:, absorbed] = d[stays, stays] = np.inf
        size[stays] += size[absorbed]
        size[absorbed] = 0
    return labels


def _euclidean(heads: Points, others: Points) -> Floats:
    squares = heads.sep @ others.sep.T
    squares *= -2
    squares += heads.squares[:, None]
    squares += others.squares
    distances: Floats = np.sqrt(np.maximum(squares, 0, out=squares), out=squares)
    return distances


def _squares(rows: Floats) -> Floats:
    """Squared length of every row."""
    squares: Floats = np.einsum("ij,ij->i", rows, rows)
    return squares


def _unit(rows: Floats) -> Floats:
    """Rows scaled to length 1; a row of zeros stays, so that its cosine with anything is 0."""
    norms = np.sqrt(_squares(rows))
    norms[norms < TINY_NORM] = np.inf
    scaled: Floats = rows / norms[:, None]
    return scaled
