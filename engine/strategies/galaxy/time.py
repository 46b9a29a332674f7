"""Predict the time of a layer in Galaxy, with and without overlapping transfers and tiles of rows. Pure.

Ye et al., "Galaxy: A Resource-Efficient Collaborative Edge AI System for In-situ Transformer Inference"
(INFOCOM 2024), on overlapping ring collectives with tiles of the matrix products beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.ops.core import Norm, Residual
from engine.ops.heads import Attend, Join, Project, kv_of
from engine.ops.operation import Op
from engine.ops.tensors import Meta, payload_bytes
from engine.ops.tiles import Contract, Expand
from engine.strategies.shared.demand import Demand, SizedOp, hidden
from engine.strategies.shared.messages import fixed_s
from engine.strategies.shared.shares import op_s
from engine.strategies.shared.tensor_parallel import Bounds

TileTime = Callable[[int], float]
"""Seconds of a matrix product on a tile of so many rows."""


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


class MemberTimes:
    """Seconds of one member's part of a layer over the prompt; `sizes` are the members' rows.

    Heads and columns are counted from 0: their number decides the time.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        demand: Demand,
        group: Sequence[int],
        sizes: Sequence[int],
        tiles: bool,
    ):
        self.cluster, self.model, self.demand = cluster, model, demand
        self.group, self.sizes, self.tiles = group, sizes, tiles
        self._different_sizes = set(sizes)
        row_bytes = payload_bytes(hidden(model, demand.batch, 1))
        self.hops_s = [
            [_hop_s(cluster, group, src, size * row_bytes) for size in sizes] for src in range(len(group))
        ]

    def attention_s(self, i: int, heads: int) -> tuple[float, float, float]:
        """Gather and project, attend, project and scatter."""
        model, demand = self.model, self.demand
        mine = tuple(range(heads))
        stored = kv_of(model, mine)
        project, join = Project(0, 0, heads, normed=True), Join(0, 0, heads, mine, False)
        rows = sum(self.sizes)
        queries, keys = (_wide(model, demand, rows, n) for n in (len(mine), 2 * len(stored)))
        return (
            self._ring_s(i, lambda n: self._op_s(i, project, hidden(model, demand.batch, n)), True),
            self._op_s(i, Attend(0, mine, stored), queries, keys),
            self._ring_s(i, lambda n: self._op_s(i, join, _wide(model, demand, n, heads)), False),
        )

    def ffn_s(self, i: int, columns: int) -> tuple[float, float]:
        """Gather and expand, contract and scatter."""
        model, demand = self.model, self.demand
        expand, contract = Expand(0, 0, columns, normed=True), Contract(0, 0, columns, False)
        return (
            self._ring_s(i, lambda n: self._op_s(i, expand, hidden(model, demand.batch, n)), True),
            self._ring_s(i, lambda n: self._op_s(i, contract, _inner(model, demand, n, columns)), False),
        )

    def between_s(self, i: int) -> float:
        """Seconds to add the residual and normalise the member's own rows, twice."""
        own = hidden(self.model, self.demand.batch, self.sizes[i])
        if not self.sizes[i]:
            return 0.0
        return 2 * (self._op_s(i, Residual(0, "ffn"), own, own) + self._op_s(i, Norm(0, "ffn"), own))

    def mha_s(self, i: int, heads: int) -> float:
        return sum(self.attention_s(i, heads))

    def mlp_s(self, i: int, columns: int) -> float:
        return sum(self.ffn_s(i, columns))

    def _op_s(self, i: int, op: Op, *inputs: Meta) -> float:
        return op_s(self.cluster.devices[self.group[i]], self.model, SizedOp(op, inputs))

    def _ring_s(self, i: int, product_s: TileTime, gathers: bool) -> float:
        """An all-gather receives tiles from the left, the own one first; a reduce-scatter sends them to the
        right, the own one last.
        """
        members = range(len(self.group))
        order = [(i - step - (not gathers)) % len(members) for step in members]
        src, moving = (i - 1, order[1:]) if gathers else (i, order[:-1])
        transfers_s = [self.hops_s[src][j] for j in moving]
        if self.tiles:
            of_size = {size: product_s(size) for size in self._different_sizes}
            products_s = [of_size[self.sizes[j]] for j in order]
        else:
            products_s = [product_s(sum(self.sizes)), *[0.0] * (len(members) - 1)]
        if gathers:
            return gather_s(products_s, transfers_s, self.tiles)
        return scatter_s(products_s, transfers_s, self.tiles)


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


def _wide(model: ModelSpec, demand: Demand, rows: int, heads: int) -> Meta:
    return Meta((demand.batch, heads, rows, model.head_dim), model.dtype)


def _inner(model: ModelSpec, demand: Demand, rows: int, columns: int) -> Meta:
    return Meta((demand.batch, rows, columns), model.dtype)


def _hop_s(cluster: ClusterSpec, group: Sequence[int], i: int, size_bytes: float) -> float:
    """Seconds of a tile from member i to the next one, without other traffic on the links."""
    if not size_bytes or len(group) == 1:
        return 0.0
    src, dst = group[i], group[(i + 1) % len(group)]
    bit_per_s = min(cluster.links[hop.link].rate(hop.forward) for hop in cluster.path(src, dst))
    return fixed_s(cluster, src, dst) + 8 * size_bytes / bit_per_s
