"""The mapping table of one block: heads seen before, by their features, with their importance.

Yao et al., EdgeFormer, "importance retrieval" and Eq. 17: a head b is looked up by its features
f_sep = (mean Q, mean K) and f_inter = Q·K per token; the distance (the paper calls it Sim, smaller is
closer) is ‖f_sep - f_sep'‖₂ + ζ(1 - cos(f_inter, f_inter')). The nearest cluster is searched for its
nearest member; within τ its importance is taken over (a hit), else it is computed exactly and learnt.
All heads of a block are looked up at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

CAPACITY = 4096
"""Entries of one block; beyond that the least recently hit is forgotten."""
RECLUSTER_AFTER = 256
TINY_NORM = 1e-12
ROUNDING = 1e-6
"""Distances this much over τ are within it: a head is at distance 0 from itself but for rounding."""


class MappingTable:
    """`width` is the number of f_sep's components in a row of features, the rest are f_inter's.

    With `unit` f_sep is scaled to length 1 first: literally the distance of unrelated heads grows with
    the model's width and τ would mean something else in every model.
    """

    def __init__(self, width: int, zeta: float, tau: float, unit: bool = True, capacity: int = CAPACITY):
        self.width, self.zeta, self.tau = width, zeta, tau
        self.unit, self.capacity = unit, capacity
        self.entries: Floats = np.empty((0, 0))
        self.centroids: Floats = np.empty((0, 0))
        self.raw: Floats = np.empty(0)
        self.cluster: Labels = np.empty(0, dtype=np.int64)
        self.last_hit: Labels = np.empty(0, dtype=np.int64)
        self.clock = 0
        self.learnt = 0

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def wants_order(self) -> bool:
        """Whether so much was learnt since the last clustering that another one is worth it."""
        return self.learnt > RECLUSTER_AFTER

    def lookup(self, features: Any) -> list[float | None]:
        """Importance of every head, None for a miss. `features` is [H, width + points]."""
        self.clock += 1
        found: list[float | None] = [None] * len(features)
        if not len(self) or self.tau < 0:
            return found
        rows = self._scaled(features)
        nearest_cluster = self._distances(rows, self.centroids).argmin(axis=1)
        to_members = self._distances(rows, self.entries)
        to_members[self.cluster[None, :] != nearest_cluster[:, None]] = np.inf
        nearest = to_members.argmin(axis=1)
        hits = np.flatnonzero(self.sim(rows, self.entries[nearest]) <= self.tau + ROUNDING)
        self.last_hit[nearest[hits]] = self.clock
        for head in hits:
            found[head] = float(self.raw[nearest[head]])
        return found

    def learn(self, features: Any, raw: Sequence[float]) -> None:
        """Heads that were missed, with their exact importance: into the cluster within τ, else a new one."""
        rows = self._scaled(features)
        if not len(self):
            self.entries = self.centroids = np.empty((0, rows.shape[1]))
        labels = []
        for row in rows:
            label = len(self.centroids)
            if label:
                distances = self._distances(row[None], self.centroids)[0]
                closest = int(distances.argmin())
                label = closest if distances[closest] <= self.tau + ROUNDING else label
            if label == len(self.centroids):
                self.centroids = np.concatenate((self.centroids, row[None]))
            labels.append(label)
        self.entries = np.concatenate((self.entries, rows))
        self.raw = np.concatenate((self.raw, np.asarray(raw, dtype=np.float64)))
        self.cluster = np.concatenate((self.cluster, np.asarray(labels, dtype=np.int64)))
        self.last_hit = np.concatenate((self.last_hit, np.full(len(rows), self.clock)))
        self.learnt += len(rows)
        self._forget(len(self) - self.capacity)

    def recluster(self) -> None:
        """Average-link clusters: on f_sep cut at τ, and inside each on 1 - cos(f_inter) cut at τ/ζ.

        For idle time. The paper gives no rule where to cut.
        """
        sep, inter = self.entries[:, : self.width], self.entries[:, self.width :]
        labels = average_link(_euclidean(sep, sep), self.tau)
        if self.zeta > 0:
            fold = np.zeros_like(labels)
            for label in np.unique(labels):
                inside = np.flatnonzero(labels == label)
                fold[inside] = average_link(1 - inter[inside] @ inter[inside].T, self.tau / self.zeta)
            labels = labels * (len(labels) + 1) + fold
        _, self.cluster = np.unique(labels, return_inverse=True)
        count = int(self.cluster.max(initial=-1)) + 1
        self.centroids = np.stack([self.entries[self.cluster == j].mean(axis=0) for j in range(count)])
        self.centroids[:, self.width :] = _unit(self.centroids[:, self.width :])
        self.learnt = 0

    def sim(self, rows: Floats, others: Floats) -> Floats:
        """Distance of each of `rows` to the one of `others` in its place, exact for equal rows: [H]."""
        sep = np.linalg.norm(rows[:, : self.width] - others[:, : self.width], axis=1)
        cosine = (rows[:, self.width :] * others[:, self.width :]).sum(axis=1)
        distance: Floats = sep + self.zeta * (1 - cosine)
        return distance

    def _distances(self, rows: Floats, others: Floats) -> Floats:
        """Of all pairs, good to rounding: [H, N]."""
        cosine = rows[:, self.width :] @ others[:, self.width :].T
        return _euclidean(rows[:, : self.width], others[:, : self.width]) + self.zeta * (1 - cosine)

    def _scaled(self, features: Any) -> Floats:
        """f_inter at length 1, so that products are cosines; f_sep too if `unit`."""
        rows = np.array(features, dtype=np.float64)
        rows[:, self.width :] = _unit(rows[:, self.width :])
        if self.unit:
            rows[:, : self.width] = _unit(rows[:, : self.width])
        return rows

    def _forget(self, excess: int) -> None:
        """Drop the least recently hit entries, and clusters that have none left."""
        if excess <= 0:
            return
        kept = np.sort(np.argsort(self.last_hit, kind="stable")[excess:])
        self.entries, self.raw, self.last_hit = self.entries[kept], self.raw[kept], self.last_hit[kept]
        alive, self.cluster = np.unique(self.cluster[kept], return_inverse=True)
        self.centroids = self.centroids[alive]


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
        gone, stays = chain.pop(), chain.pop()
        height = d[gone, stays]
        merged = (size[gone] * d[gone] + size[stays] * d[stays]) / (size[gone] + size[stays])
        if height <= cut:
            labels[labels == labels[gone]] = labels[stays]
        d[stays] = d[:, stays] = merged
        d[gone] = d[:, gone] = d[stays, stays] = np.inf
        size[stays] += size[gone]
        size[gone] = 0
    return labels


def _euclidean(rows: Floats, others: Floats) -> Floats:
    squares = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None, :] - 2 * rows @ others.T
    distances: Floats = np.sqrt(np.maximum(squares, 0))
    return distances


def _unit(rows: Floats) -> Floats:
    """Rows scaled to length 1; a row of zeros stays, so that its cosine with anything is 0."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Floats = np.where(norms < TINY_NORM, 0.0, rows / np.maximum(norms, TINY_NORM))
    return scaled
