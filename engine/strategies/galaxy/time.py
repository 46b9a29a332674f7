"""Predict the time of a layer in Galaxy, with and without overlapping transfers and tiles of rows. Pure.

Ye et al., "Galaxy: A Resource-Efficient Collaborative Edge AI System for In-situ Transformer Inference"
(INFOCOM 2024), on overlapping ring collectives with tiles of the matrix products beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.ops.core import FeedForward, Norm, Residual
from engine.ops.heads import Attend, Join, Project, kv_of
from engine.ops.operation import Op
from engine.ops.tensors import Meta, payload_bytes
from engine.ops.tiles import Contract, Expand
from engine.strategies.shared.demand import Demand, SizedOp, hidden
from engine.strategies.shared.messages import fixed_s
from engine.strategies.shared.shares import op_s
from engine.strategies.shared.tensor_parallel import Bounds


class Ring(NamedTuple):
    """Rows of the tiles in the order in which a member multiplies them, and seconds of their transfers."""

    rows: list[int]
    transfers_s: list[float]


def gather_s(gemm_s: Sequence[float], transfer_s: Sequence[float], tiles: bool) -> float:
    """Seconds of an all-gather around a ring and of the matrix product on the gathered rows.

    `gemm_s` is per tile in order of arrival, the own one first; `transfer_s[r]` brings tile r + 1. With
    `tiles` each is multiplied while the next is on its way: Σ_{r<K} max(g_r, x_r) + g_K.
    """
    if not tiles:
        return sum(gemm_s) + sum(transfer_s)
    return sum(map(max, gemm_s[:-1], transfer_s)) + gemm_s[-1]


def scatter_s(gemm_s: Sequence[float], transfer_s: Sequence[float], tiles: bool) -> float:
    """Seconds of a matrix product and of the reduce-scatter around a ring of its partial sums.

    `gemm_s` is per tile in order of departure, the own one last; `transfer_s[r]` takes tile r away. With
    `tiles` each leaves while the next is multiplied: g_1 + Σ_{r=2..K} max(g_r, x_{r-1}).
    """
    if not tiles:
        return sum(gemm_s) + sum(transfer_s)
    return gemm_s[0] + sum(map(max, gemm_s[1:], transfer_s))


Part = Literal["project", "attend", "join", "expand", "contract", "between"]
"""What a member does in a layer, in this order, and between the parts with its own rows."""


class PartTimes:
    """Seconds of the parts of a layer on the devices of a cluster, each computed once for devices that
    differ in their names only.

    Heads and columns are counted from 0: their number decides the time.
    """

    def __init__(self, cluster: ClusterSpec, model: ModelSpec, demand: Demand):
        self.cluster, self.model, self.demand = cluster, model, demand
        self._first_alike = cluster.first_alike
        self.part_s = cache(self._part_s)
        self.hop = cache(self._hop)

    def _part_s(self, rank: int, part: Part, count: int, rows: int) -> float:
        """Seconds of `part` with so many heads or columns, over so many rows of each sequence."""
        if self._first_alike[rank] != rank:
            return self.part_s(self._first_alike[rank], part, count, rows)
        model, batch = self.model, self.demand.batch
        x = hidden(model, batch, rows)
        if part == "project":
            return self._op_s(rank, Project(0, 0, count, normed=True), x)
        if part == "attend":
            mine = tuple(range(count))
            stored = kv_of(model, mine)
            queries, keys = (_wide(model, batch, rows, n) for n in (count, 2 * len(stored)))
            return self._op_s(rank, Attend(0, mine, stored), queries, keys)
        if part == "join":
            join = Join(0, 0, count, tuple(range(count)), False)
            return self._op_s(rank, join, _wide(model, batch, rows, count))
        if self.model.num_experts and part in ("expand", "contract"):  # never apart
            whole = FeedForward(0, 0, count, False, normed=True)
            return self._op_s(rank, whole, x) if part == "expand" else 0.0
        if part == "expand":
            return self._op_s(rank, Expand(0, 0, count, normed=True), x)
        if part == "contract":
            return self._op_s(rank, Contract(0, 0, count, False), Meta((batch, rows, count), model.dtype))
        return self._op_s(rank, Residual(0, "ffn"), x, x) + self._op_s(rank, Norm(0, "ffn"), x)

    def _hop(self, src: int, dst: int) -> tuple[float, float]:
        """Seconds of a message however small, and bits per second without other traffic on the links."""
        cluster = self.cluster
        bit_per_s = min(cluster.links[hop.link].rate(hop.forward) for hop in cluster.path(src, dst))
        return fixed_s(cluster, src, dst), bit_per_s

    def _op_s(self, rank: int, op: Op, *inputs: Meta) -> float:
        return op_s(self.cluster.devices[rank], self.model, SizedOp(op, inputs))


part_times = lru_cache(maxsize=4)(PartTimes)
"""One for all shares and divisions of rows that a planner looks at."""


class MemberTimes:
    """Seconds of one member's part of a layer over the prompt; `sizes` are the members' rows."""

    def __init__(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        demand: Demand,
        group: Sequence[int],
        sizes: Sequence[int],
        tiles: bool,
    ):
        self.group, self.sizes, self.tiles = group, sizes, tiles
        self.rows = sum(sizes)
        times = part_times(cluster, model, demand)
        self.part_s, self._hop = times.part_s, times.hop
        row_bytes = payload_bytes(hidden(model, demand.batch, 1))
        self.hops_s = [self._hops_s(i, [size * row_bytes for size in sizes]) for i in range(len(group))]
        self._gathers = [self._ring(i, True) for i in range(len(group))]
        self._scatters = [self._ring(i, False) for i in range(len(group))]

    def attention_s(self, i: int, heads: int) -> tuple[float, float, float]:
        """Gather and project, attend, project and scatter."""
        return (
            gather_s(*self._products_s(i, "project", heads, self._gathers[i]), self.tiles),
            self.part_s(self.group[i], "attend", heads, self.rows),
            scatter_s(*self._products_s(i, "join", heads, self._scatters[i]), self.tiles),
        )

    def ffn_s(self, i: int, columns: int) -> tuple[float, float]:
        """Gather and expand, contract and scatter."""
        return (
            gather_s(*self._products_s(i, "expand", columns, self._gathers[i]), self.tiles),
            scatter_s(*self._products_s(i, "contract", columns, self._scatters[i]), self.tiles),
        )

    def between_s(self, i: int) -> float:
        """Seconds to add the residual and normalise the member's own rows, twice."""
        return 2 * self.part_s(self.group[i], "between", 0, self.sizes[i]) if self.sizes[i] else 0.0

    def mha_s(self, i: int, heads: int) -> float:
        return sum(self.attention_s(i, heads))

    def mlp_s(self, i: int, columns: int) -> float:
        return sum(self.ffn_s(i, columns))

    def _hops_s(self, i: int, sizes_bytes: list[int]) -> list[float]:
        """Seconds of tiles of these sizes from a member to the next one."""
        if len(self.group) == 1:
            return [0.0] * len(sizes_bytes)
        first_s, bit_per_s = self._hop(self.group[i], self.group[(i + 1) % len(self.group)])
        return [first_s + 8 * size / bit_per_s if size else 0.0 for size in sizes_bytes]

    def _ring(self, i: int, gathers: bool) -> Ring:
        """An all-gather receives tiles from the left, the own one first; a reduce-scatter sends them to the
        right, the own one last.
        """
        members = range(len(self.group))
        order = [(i - step - (not gathers)) % len(members) for step in members]
        src, moving = (i - 1, order[1:]) if gathers else (i, order[:-1])
        return Ring([self.sizes[j] for j in order], [self.hops_s[src][j] for j in moving])

    def _products_s(self, i: int, part: Part, count: int, ring: Ring) -> tuple[Sequence[float], list[float]]:
        """Seconds of the products on the tiles of `ring`, or of a single one on all rows; and of the
        transfers.
        """
        part_s, rank = self.part_s, self.group[i]
        if not self.tiles:
            return [part_s(rank, part, count, self.rows)], ring.transfers_s
        return [part_s(rank, part, count, rows) for rows in ring.rows], ring.transfers_s


def layer_of_prompt_s(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, bounds: Bounds, sizes: Sequence[int], tiles: bool
) -> float:
    """Seconds of a layer over the prompt, each of its phases as long as on the slowest member.

    `sizes` are the members' rows. Additions of partial sums are not counted.
    """
    times = MemberTimes(cluster, model, demand, bounds.group, sizes, tiles)
    phases_s = [
        (
            *times.attention_s(i, bounds.heads[i + 1] - bounds.heads[i]),
            *times.ffn_s(i, bounds.columns[i + 1] - bounds.columns[i]),
            times.between_s(i),
        )
        for i in range(len(bounds.group))
    ]
    slowest_s: list[float] = [max(members_s) for members_s in zip(*phases_s, strict=True)]
    return sum(slowest_s)


def _wide(model: ModelSpec, batch: int, rows: int, heads: int) -> Meta:
    return Meta((batch, heads, rows, model.head_dim), model.dtype)
