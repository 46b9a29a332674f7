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
from engine.strategies.shared.demand import Demand, Pass, hidden
from engine.strategies.shared.shares import pass_s
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


def layer_of_prompt_s(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, bounds: Bounds, sizes: Sequence[int], tiles: bool
) -> float:
    """Seconds of a layer over the prompt, each of its phases as long as on the slowest member.

    `sizes` are the members' rows. Additions of partial sums are not counted.
    """
    group, members = bounds.group, range(len(bounds.group))
    row_bytes = payload_bytes(hidden(model, demand.batch, 1))

    def op_s(i: int, op: Op, *inputs: Meta) -> float:
        return pass_s(cluster.devices[group[i]], model, Pass(op, inputs))

    def ring_s(i: int, product_s: TileTime, gathers: bool) -> float:
        """An all-gather receives tiles from the left, the own one first; a reduce-scatter sends them to the
        right, the own one last.
        """
        order = [(i - step - (not gathers)) % len(group) for step in members]
        src, moving = (i - 1, order[1:]) if gathers else (i, order[:-1])
        transfers_s = [_hop_s(cluster, group, src, sizes[j] * row_bytes) for j in moving]
        whole_s = [product_s(sum(sizes)), *[0.0] * (len(group) - 1)]
        products_s = [product_s(sizes[j]) for j in order] if tiles else whole_s
        join = gather_s if gathers else scatter_s
        return join(products_s, transfers_s, tiles)

    phases_s: list[list[float]] = []
    for i in members:
        heads, columns = ((cuts[i], cuts[i + 1]) for cuts in (bounds.heads, bounds.columns))
        mine = tuple(range(*heads))
        stored = kv_of(model, mine)
        project, join = Project(0, *heads, normed=True), Join(0, *heads, mine, False)
        expand, contract = Expand(0, *columns, normed=True), Contract(0, *columns, False)
        queries, keys = (_wide(model, demand, sum(sizes), n) for n in (len(mine), 2 * len(stored)))
        own = hidden(model, demand.batch, sizes[i])
        phases_s.append(
            [
                ring_s(i, lambda n: op_s(i, project, hidden(model, demand.batch, n)), True),  # noqa: B023
                op_s(i, Attend(0, mine, stored), queries, keys),
                ring_s(i, lambda n: op_s(i, join, _wide(model, demand, n, len(mine))), False),  # noqa: B023
                ring_s(i, lambda n: op_s(i, expand, hidden(model, demand.batch, n)), True),  # noqa: B023
                ring_s(i, lambda n: op_s(i, contract, _inner(model, demand, n, columns)), False),  # noqa: B023
                2 * (op_s(i, Residual(0, "ffn"), own, own) + op_s(i, Norm(0, "ffn"), own))
                if sizes[i]
                else 0.0,
            ]
        )
    slowest_s: list[float] = [max(members_s) for members_s in zip(*phases_s, strict=True)]
    return sum(slowest_s)


def _wide(model: ModelSpec, demand: Demand, rows: int, heads: int) -> Meta:
    return Meta((demand.batch, heads, rows, model.head_dim), model.dtype)


def _inner(model: ModelSpec, demand: Demand, rows: int, columns: tuple[int, int]) -> Meta:
    return Meta((demand.batch, rows, columns[1] - columns[0]), model.dtype)


def _hop_s(cluster: ClusterSpec, group: Sequence[int], i: int, size_bytes: float) -> float:
    """Seconds of a tile from member i to the next one, without other traffic on the links."""
    if not size_bytes:
        return 0.0
    src, dst = group[i], group[(i + 1) % len(group)]
    bit_per_s = min(cluster.links[hop.link].rate(hop.forward) for hop in cluster.path(src, dst))
    overhead_s = cluster.devices[src].message_overhead_s + cluster.delay_s(src, dst)
    return overhead_s + 8 * size_bytes / bit_per_s
