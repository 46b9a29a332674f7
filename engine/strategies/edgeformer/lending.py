"""Choose the neighbours to which an owner lends heads, by what a request takes with them. Pure.

The paper lends to every neighbour whose head costs seem low enough (Eq. 8). That leaves out what makes
lending slow: messages of one owner share its links, operations have fixed costs, and while tokens are
generated every layer waits for a round trip. `best` therefore estimates prefill and decode with none, one,
two, four, … of the cheapest neighbours, and takes the fastest; without neighbours an owner is a stage of a
pipeline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.units import BITS_PER_BYTE
from engine.ops.heads import Attend, kv_of
from engine.ops.tensors import Meta
from engine.program.frames import framed_bytes
from engine.strategies.edgeformer.allocation import allocate
from engine.strategies.edgeformer.costs import AttentionRows, CostModel, sites_of
from engine.strategies.edgeformer.layout import OwnedBlocks
from engine.strategies.edgeformer.memory import HeadRooms
from engine.strategies.edgeformer.params import EdgeFormerParams
from engine.strategies.shared.demand import Demand, SizedOp
from engine.strategies.shared.shares import op_s

GAIN = 0.01
"""Lending must be faster by this share of the attention: estimates are no better."""


class Lenders(NamedTuple):
    """The workers that may attend heads for each device, by its rank; and, of an owner that could choose, the
    seconds of a request's attention by itself and with the best neighbours.
    """

    ranks: tuple[tuple[int, ...], ...]
    alone_s: tuple[float, ...]
    lent_s: tuple[float, ...]


def lenders_by_rank(
    cluster: ClusterSpec,
    model: ModelSpec,
    blocks: Sequence[OwnedBlocks],
    rooms: HeadRooms,
    demand: Demand,
    params: EdgeFormerParams,
) -> Lenders:
    """Neighbours for every owner; none for a device without blocks.

    All workers where the paper's rule or a fixed split wants it, and where the owner has no room for all
    heads.
    """
    owners = {owner for owner, _, _ in blocks}
    found: list[tuple[tuple[int, ...], float, float]] = []
    for rank in range(len(cluster.devices)):
        everyone = tuple(other for other in cluster.workers if other != rank)
        if rank not in owners:
            found.append(((), 0.0, 0.0))
        elif params.lending == "paper" or params.scheduling == "static" or rooms.own[rank] < model.num_heads:
            found.append((everyone, 0.0, 0.0))
        else:
            found.append(_fastest(cluster, model, rank, everyone, rooms, demand, params.cost_model))
    ranks, alone_s, lent_s = zip(*found, strict=True)
    return Lenders(ranks, alone_s, lent_s)


def _fastest(
    cluster: ClusterSpec,
    model: ModelSpec,
    owner: int,
    others: Sequence[int],
    rooms: HeadRooms,
    demand: Demand,
    cost_model: CostModel,
) -> tuple[tuple[int, ...], float, float]:
    """The ones of `others` with which a request's attention is estimated to be fastest, ascending; its
    seconds without any, and the least with some.
    """
    phases = _phases(demand)
    rows = phases[0][0]
    own, *sites = sites_of(cluster, model, owner, others, rooms.own[owner], rooms.lent, rows, cost_model)
    sites.sort(key=lambda site: (site.fixed_s + site.head_s, site.rank))
    usable = [site for site in sites if site.room]
    numbers = sorted({0, len(usable), *(2**power for power in range(len(usable).bit_length()))})
    best_s = alone_s = lent_s = inf
    best: tuple[int, ...] = ()
    for number in numbers:
        found = allocate([1.0] * model.num_heads, [own, *usable[:number]])
        counts = Counter(found.device_of)
        total_s = sum(times * attention_s(cluster, model, owner, counts, rows) for rows, times in phases)
        if number == 0:
            alone_s = total_s
        elif counts.keys() - {owner}:
            lent_s = min(lent_s, total_s)
        if total_s < (1 - GAIN) * best_s:
            best_s, best = total_s, tuple(sorted(rank for rank in counts if rank != owner))
    return best, alone_s, 0.0 if lent_s == inf else lent_s


class RoundTrip(NamedTuple):
    """Seconds of lending heads to one neighbour: on the links, at the rates that are left for it; of delays
    and fixed costs; and of its attention and of waiting for the messages before.
    """

    links_s: float
    fixed_s: float
    rest_s: float

    @property
    def total_s(self) -> float:
        return self.links_s + self.fixed_s + self.rest_s


def attention_s(
    cluster: ClusterSpec, model: ModelSpec, owner: int, counts: Mapping[int, int], rows: AttentionRows
) -> float:
    """Seconds until `owner` has all contexts, if every device by rank attends that many heads."""
    own_s = _attend_s(cluster, model, owner, counts[owner], rows) if counts.get(owner) else 0.0
    trips = round_trips(cluster, model, owner, counts, rows)
    return max(own_s, *(trip.total_s for trip in trips.values()), 0.0)


def round_trips(
    cluster: ClusterSpec, model: ModelSpec, owner: int, counts: Mapping[int, int], rows: AttentionRows
) -> dict[int, RoundTrip]:
    """Each other device with heads → the time from sending to it until its contexts are here.

    Operations take what the devices' compute models say. Messages leave one after the other; a link that
    several of them cross has its rate for all of them together.
    """
    lent = sorted((rank, heads) for rank, heads in counts.items() if rank != owner and heads)
    there = {rank: _payload_bytes(model, heads, rows, keys=True) for rank, heads in lent}
    back = {rank: _payload_bytes(model, heads, rows, keys=False) for rank, heads in lent}
    load: Counter[tuple[int, bool]] = Counter()
    for rank, _ in lent:
        for src, dst, size in ((owner, rank, there[rank]), (rank, owner, back[rank])):
            for hop in cluster.path(src, dst):
                load[hop.link, hop.forward] += framed_bytes(size)
    trips, sent_s = {}, 0.0
    for rank, heads in lent:
        staged_s = _staging_s(cluster, rank, there[rank]) + _staging_s(cluster, rank, back[rank])
        trips[rank] = RoundTrip(
            _carried_s(cluster, owner, rank, load) + _carried_s(cluster, rank, owner, load),
            cluster.delay_s(owner, rank) + cluster.delay_s(rank, owner) + _overheads_s(cluster, owner, rank),
            sent_s
            + staged_s
            + _staging_s(cluster, owner, there[rank] + back[rank])
            + _attend_s(cluster, model, rank, heads, rows),
        )
        sent_s += cluster.devices[owner].message_overhead_s + _staging_s(cluster, owner, there[rank])
    return trips


def _phases(demand: Demand) -> list[tuple[AttentionRows, int]]:
    """The rows of a prefill and of a middle token, and how often a block attends them in one request."""
    phases = [(AttentionRows(demand.batch, demand.rows, demand.rows), 1)]
    if demand.new_tokens > 1:
        seen = (demand.rows + demand.cached_rows) // 2
        phases.append((AttentionRows(demand.batch, 1, seen), demand.new_tokens - 1))
    return phases


def _payload_bytes(model: ModelSpec, heads: int, rows: AttentionRows, keys: bool) -> int:
    """Queries, keys and values of `heads` heads, or their contexts."""
    stored = len(kv_of(model, tuple(range(heads)))) if keys else 0
    return rows.batch * (heads + 2 * stored) * rows.new * model.head_dim * model.element_bytes


def _carried_s(cluster: ClusterSpec, src: int, dst: int, load: Mapping[tuple[int, bool], int]) -> float:
    path = [(hop.link, hop.forward) for hop in cluster.path(src, dst)]
    rates = [BITS_PER_BYTE * load[way] / cluster.links[way[0]].rate(way[1]) for way in path]
    return max(rates, default=0.0)


def _overheads_s(cluster: ClusterSpec, owner: int, rank: int) -> float:
    return cluster.devices[owner].message_overhead_s + cluster.devices[rank].message_overhead_s


def _staging_s(cluster: ClusterSpec, rank: int, size_bytes: int) -> float:
    rate = cluster.devices[rank].staging_byte_per_s
    return size_bytes / rate if rate else 0.0


def _attend_s(cluster: ClusterSpec, model: ModelSpec, rank: int, heads: int, rows: AttentionRows) -> float:
    numbers = tuple(range(heads))
    stored = kv_of(model, numbers)
    queries = Meta((rows.batch, heads, rows.new, model.head_dim), model.dtype)
    keys_values = Meta((rows.batch, 2 * len(stored), rows.seen, model.head_dim), model.dtype)
    return op_s(cluster.devices[rank], model, SizedOp(Attend(0, numbers, stored), (queries, keys_values)))
