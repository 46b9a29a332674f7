"""Plan TPI-LLM: shares by ratio, and the blocks of weights that stream through the window. Pure.

Li et al., "TPI-LLM" (arXiv:2410.00531): tensor-parallel shares in given proportions, and the sliding window
of its memory scheduler. Block 2l is the attention part of layer l, block 2l + 1 its feed-forward part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Literal

from pydantic import Field

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError, SpecError
from engine.domain.model import ModelSpec
from engine.domain.plan import HeldSlice, Placement, Plan, Slice
from engine.domain.units import needs_and_has
from engine.domain.values import Count, Positive
from engine.ops.sizes import weight_bytes
from engine.program.collectives import AllReduce
from engine.strategies.shared.demand import (
    Demand,
    check_memory,
    end_ops,
    weights_bytes,
    working_bytes,
)
from engine.strategies.shared.ends import end_holdings
from engine.strategies.shared.tensor_parallel import (
    AllReduceLayout,
    Bounds,
    kv_bytes_of,
    passes_of,
    shares_placement,
)

ROUNDING = 1e-9

Streams = tuple[tuple[int, int], ...]
"""When blocks stream, as (block, rows): the block streams in steps after which the KV cache has at least so
many rows. In the order in which blocks begin to; either none streams or more than a window holds.
"""

StreamsOf = Callable[["MemberShare"], Streams]


class SlidingWindowLayout(AllReduceLayout):
    """Shares of heads and columns, and by rank which blocks stream through a window of so many blocks.

    `ratios` are the shares that were given by hand, by rank, also of devices that have failed since.
    """

    kind: Literal["sliding_window"] = "sliding_window"
    window: Count
    streams: dict[int, Streams]
    ratios: dict[int, Positive] = Field(default_factory=dict)


def split_from_last(total: int, ratios: Sequence[float]) -> tuple[int, ...]:
    """Divide `total` by `ratios`: each member gets the floor of its part of `total`; what is left goes one by
    one from the last back.
    """
    sizes = [int(total * ratio / sum(ratios) + ROUNDING) for ratio in ratios]
    for index in range(total - sum(sizes)):
        sizes[-1 - index] += 1
    return tuple(sizes)


def ratios_of(text: str, members: int) -> tuple[float, ...]:
    """`0.5, 0.25, 0.25` as numbers. Raises `SpecError` unless each member has a positive one, in sum 1."""
    try:
        ratios = tuple(float(number) for number in text.split(","))
    except ValueError:
        ratios = ()
    if len(ratios) != members or not (min(ratios) > 0 and abs(sum(ratios) - 1) <= 1e-6):
        raise SpecError(
            f"parameters, ratio: {text!r} is no list of {members} positive numbers with sum 1, "
            "one per worker, the source's first: write it like 0.5, 0.25, 0.25."
        )
    return ratios


@dataclass(frozen=True)
class MemberShare:
    """The planner's input for one member: its share of every block with its bytes, and its memory.

    `fixed_bytes` is all that neither streams nor grows with the cache: the ends, norms, the largest
    operation's working set. A block without heads or columns has size 0: only its norm, which never streams.
    """

    rank: int
    blocks: tuple[Slice, ...]
    sizes: tuple[int, ...]
    fixed_bytes: int
    kv_row_bytes: int
    memory_bytes: float
    on_chip_bytes: float = inf
    """How much of all weights may be there at the same time."""

    @property
    def streamable(self) -> tuple[int, ...]:
        return tuple(block for block, size in enumerate(self.sizes) if size)

    def weights_bytes(self, streaming: Sequence[int], window: int) -> int:
        """Bytes of all blocks while `streaming` go through the window: the others, and the fullest window."""
        sizes = [self.sizes[block] for block in sorted(streaming)]
        return sum(self.sizes) - sum(sizes) + fullest_window(sizes, window)

    def need_bytes(self, streaming: Sequence[int], window: int, rows: int) -> int:
        """The largest that memory gets while the cache has up to `rows` rows."""
        return self.fixed_bytes + self.weights_bytes(streaming, window) + rows * self.kv_row_bytes


def fullest_window(sizes: Sequence[int], window: int) -> int:
    """The most that `window` consecutive blocks weigh, the first following the last."""
    if len(sizes) <= window:
        return sum(sizes)
    around = [*sizes, *sizes[: window - 1]]
    return max(sum(around[start : start + window]) for start in range(len(sizes)))


def shares_in(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, placement: Placement, bounds: Bounds
) -> tuple[MemberShare, ...]:
    """The members' shares, in the group's order."""
    kv_bytes, ops = kv_bytes_of(bounds, model, demand), passes_of(cluster, bounds, model, demand)
    shares = []
    for rank in bounds.group:
        blocks = blocks_of(bounds, rank, model.num_layers)
        sizes = [
            _piece_bytes(model, block.model_copy(update={"layer": 0})) if block.start < block.stop else 0
            for block in blocks
        ]
        fixed = weights_bytes(placement, model, rank) - sum(sizes) + working_bytes(model, ops[rank])
        if _keeps_norms(model):
            fixed += sum(_piece_bytes(model, _norm_of(block)) for block in blocks)
        kv_row_bytes = kv_bytes[rank] // demand.memory_rows if demand.cached_rows else 0
        memory_bytes = cluster.devices[rank].usable_bytes
        on_chip_bytes = cluster.devices[rank].on_chip_weight_bytes or inf
        shares.append(
            MemberShare(rank, blocks, tuple(sizes), fixed, kv_row_bytes, memory_bytes, on_chip_bytes)
        )
    return tuple(shares)


@lru_cache(maxsize=4096)
def _piece_bytes(model: ModelSpec, piece: Slice) -> int:
    return weight_bytes(model, piece)


def _keeps_norms(model: ModelSpec) -> bool:
    """Whether a norm is needed after a part's all-reduce, when its weights have been released."""
    return model.norms_sums


def _norm_of(block: Slice) -> Slice:
    return Slice(layer=0, part=block.part, axis=block.axis)


def blocks_of(bounds: Bounds | AllReduceLayout, rank: int, num_layers: int) -> tuple[Slice, ...]:
    """The share of member `rank` in every block."""
    me = bounds.group.index(rank)
    heads, columns = (cuts[me : me + 2] for cuts in (bounds.heads, bounds.columns))
    return tuple(
        piece
        for layer in range(num_layers)
        for piece in (
            Slice(layer=layer, part="attention", axis="heads", start=heads[0], stop=heads[1]),
            Slice(layer=layer, part="ffn", axis="columns", start=columns[0], stop=columns[1]),
        )
    )


def streams_always(share: MemberShare, window: int, retain_every: int) -> Streams:
    """All blocks but one feed-forward part in every `retain_every` (0: none is kept), from the start."""
    blocks = [
        block
        for block in share.streamable
        if not (retain_every and block % 2 and block // 2 % retain_every == 0)
    ]
    return tuple((block, 0) for block in blocks) if len(blocks) > window else ()


def streams_as_needed(share: MemberShare, window: int, rows: int) -> Streams:
    """When which blocks begin to stream: they stay while there is memory; as the cache grows to `rows` rows
    they begin to stream: the largest part first, feed-forward before attention, from the last layer back.
    """
    order = sorted(share.streamable, key=lambda block: (block % 2 == 0, -block))
    levels = [0, *range(window + 1, len(order) + 1)]
    streams: list[tuple[int, int]] = []
    from_rows = 0
    for level in levels:
        streams += [(block, from_rows) for block in order[len(streams) : level]]
        if share.weights_bytes(order[:level], window) > share.on_chip_bytes:
            continue
        free = share.memory_bytes - share.need_bytes(order[:level], window, 0)
        if free >= rows * share.kv_row_bytes:
            return tuple(streams)
        from_rows = max(from_rows, int(free // share.kv_row_bytes) + 1) if share.kv_row_bytes else 0
    return tuple(streams)


def streaming_at(streams: Streams, rows: int) -> frozenset[int]:
    """Blocks that stream in a step after which the cache has `rows` rows."""
    return frozenset(block for block, from_rows in streams if rows >= from_rows)


def with_streams(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    bounds: Bounds,
    window: int,
    how: AllReduce,
    streams_of: StreamsOf,
    ratios: Mapping[int, float],
) -> Plan[SlidingWindowLayout]:
    """The shares as a plan with most streaming weights offloaded: memory holds the first window of them.

    Raises `PlanError` naming every device that lacks memory even so.
    """
    source = cluster.source_rank
    placement = shares_placement(name, cluster, model, bounds)
    if source not in bounds.group:
        ends = placement.model_copy(update={"holdings": end_holdings(cluster, model)})
        ops = {source: end_ops(model, demand)}
        check_memory(cluster, model, ends, {}, ops, "the source needs room for embedding and head")
    shares = shares_in(cluster, model, demand.longest, placement, bounds)
    streams = {share.rank: streams_of(share) for share in shares}
    _check_memory(cluster, name, shares, streams, window, demand)
    away: set[tuple[int, Slice]] = set()
    norms: list[HeldSlice] = []
    for share in shares:
        streaming = sorted(streaming_at(streams[share.rank], demand.rows))
        away |= {(share.rank, share.blocks[block]) for block in streaming[window:]}
        if _keeps_norms(model):
            pieces = (share.blocks[block] for block, _ in streams[share.rank])
            norms += [
                HeldSlice(device=share.rank, slice=piece.model_copy(update={"start": 0, "stop": 0}))
                for piece in pieces
            ]
    holdings = [
        holding.model_copy(update={"home": "offloaded"})
        if (holding.device, holding.slice) in away
        else holding
        for holding in placement.holdings
    ]
    layout = SlidingWindowLayout(
        **bounds._asdict(),
        all_reduce=how,
        window=window,
        streams=streams,
        ratios=ratios,
    )
    return Plan(strategy=name, holdings=(*holdings, *norms), work=placement.work, layout=layout)


def _check_memory(
    cluster: ClusterSpec,
    name: str,
    shares: Sequence[MemberShare],
    streams: Mapping[int, Streams],
    window: int,
    demand: Demand,
) -> None:
    rows = demand.memory_rows
    short = []
    for share in shares:
        name_of = cluster.devices[share.rank].name
        streaming = [block for block, _ in streams[share.rank]]
        need = share.need_bytes(streaming, window, rows)
        if need > share.memory_bytes:
            short.append(f"{name_of} {needs_and_has(need, share.memory_bytes)}")
        weights = share.weights_bytes(streaming, window)
        if weights > share.on_chip_bytes:
            have = needs_and_has(weights, share.on_chip_bytes, " for weights of layers on chip")
            short.append(f"{name_of} {have}")
    if short:
        raise PlanError(
            f"{name}: {', '.join(short)}: give it more memory, take a smaller window or ratio, "
            "or add devices that take a share."
        )
