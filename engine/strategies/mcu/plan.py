"""Plan `mcu`: which chip has which heads and columns, whether they stay on chip, and the reduction tree.

Bochem et al. (DATE 2025). Heads and columns are split evenly and no weight exists twice;
the root has norms and output biases. A KV head stays with its query heads, so the unit is a KV group. Chips
without heads may have columns; chips without either are excluded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Layout, Placement, Plan, Slice
from engine.domain.units import needs_and_has
from engine.domain.values import Count, Value
from engine.ops.core import Attention, FeedForward, Norm, Residual
from engine.ops.layout import kv_heads
from engine.ops.operation import norm_piece, piece_of
from engine.ops.sizes import weight_bytes
from engine.strategies.mcu.estimate import BlockEstimate, Regime, block_estimate, block_slice_bytes, regime_of
from engine.strategies.mcu.tree import Level, serial_hops, split, tree_levels
from engine.strategies.shared.by_hand import bounds_by_hand
from engine.strategies.shared.demand import Demand, SizedOp, check_memory, end_ops, hidden
from engine.strategies.shared.ends import end_holdings, end_work
from engine.strategies.shared.shares import bounds_of
from engine.strategies.shared.stages import source_first
from engine.strategies.shared.tensor_parallel import Bounds

Phase = Literal["prefill", "decode"]
REGIMES: tuple[Regime, ...] = ("resident", "double-buffered", "streamed")


class Senders(Value):
    """Ranks that have a partial sum of each part."""

    attention: tuple[Count, ...]
    ffn: tuple[Count, ...]


class TreeLayout(Layout):
    """What every chip has, and the tree that adds up their partial sums.

    Chip `group[i]` has entry i of `regimes`, `slice_bytes`, `heads`, `columns`, `head_tiles` and `tiles` (of
    columns); the root is `group[0]`. `tree` has the levels from the leaves up, as (member, leader). `block`
    has the estimates of one block, by phase.
    """

    kind: Literal["tree"] = "tree"
    group: tuple[Count, ...]
    tree: tuple[tuple[tuple[Count, Count], ...], ...]
    senders: Senders
    serial_hops: Count
    regime: Regime
    regimes: tuple[Regime, ...]
    excluded: tuple[Count, ...]
    slice_bytes: tuple[Count, ...]
    heads: tuple[tuple[Count, Count], ...]
    columns: tuple[tuple[Count, Count], ...]
    head_tiles: tuple[tuple[Count, ...], ...]
    tiles: tuple[tuple[Count, ...], ...]
    block: dict[Phase, BlockEstimate]

    def share_of(self, rank: int) -> ChipShare:
        chip = self.group.index(rank)
        bounds = self.heads[chip], self.columns[chip], self.head_tiles[chip], self.tiles[chip]
        return ChipShare(rank, *bounds, self.regimes[chip])


class ChipShare(NamedTuple):
    """What one chip has of every block, half-open; `head_tiles` and `tiles` are the bounds of heads and of
    columns that are on the chip together.
    """

    rank: int
    heads: tuple[int, int]
    columns: tuple[int, int]
    head_tiles: tuple[int, ...]
    tiles: tuple[int, ...]
    regime: Regime

    @property
    def has_heads(self) -> bool:
        return self.heads[0] < self.heads[1]

    @property
    def has_columns(self) -> bool:
        return self.columns[0] < self.columns[1]

    def pieces(self, layer: int) -> tuple[Slice, ...]:
        """The slices of a block in the order of computation."""
        return (*self.attention(layer), *self.ffn(layer))

    def attention(self, layer: int) -> tuple[Slice, ...]:
        return tuple(
            piece_of(layer, "attention", "heads", first, last, True)
            for first, last in pairwise(self.head_tiles)
        )

    def ffn(self, layer: int) -> tuple[Slice, ...]:
        return tuple(
            piece_of(layer, "ffn", "columns", first, last, True) for first, last in pairwise(self.tiles)
        )


def make_plan(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    group_size: int,
    shares: tuple[ChipShare, ...],
) -> Plan[TreeLayout]:
    """The plan in which every chip holds its share and sums go up and down a tree. Raises `PlanError` naming
    every device that lacks memory.
    """
    group = tuple(share.rank for share in shares)
    levels = tree_levels(group, group_size)
    _check_leaders(name, cluster, levels, shares)
    regime = max((share.regime for share in shares), key=REGIMES.index)
    root_pieces = [norm_piece(layer, "attention") for layer in range(model.num_layers)]
    root_pieces += [norm_piece(layer, "ffn") for layer in range(model.num_layers)]
    placement = Placement(
        strategy=name,
        holdings=(
            *end_holdings(cluster, model),
            *(HeldSlice(device=group[0], slice=piece) for piece in root_pieces),
            *(
                HeldSlice(device=share.rank, slice=piece, home=_home(share.regime, layer))
                for share in shares
                for layer in range(model.num_layers)
                for piece in share.pieces(layer)
            ),
        ),
        work=(
            *end_work(cluster, model),
            *(
                ComputedSlice(device=share.rank, slice=piece)
                for share in shares
                for layer in range(model.num_layers)
                for piece in share.pieces(layer)
            ),
        ),
    )
    _check(cluster, model, demand, placement, shares)
    layout = TreeLayout(
        group=group,
        tree=levels,
        senders=Senders(
            attention=tuple(share.rank for share in shares if share.has_heads),
            ffn=tuple(share.rank for share in shares if share.has_columns),
        ),
        serial_hops=serial_hops(levels),
        regime=regime,
        regimes=tuple(share.regime for share in shares),
        excluded=tuple(rank for rank in cluster.workers if rank not in group),
        slice_bytes=tuple(block_slice_bytes(model, share.heads, share.columns) for share in shares),
        heads=tuple(share.heads for share in shares),
        columns=tuple(share.columns for share in shares),
        head_tiles=tuple(share.head_tiles for share in shares),
        tiles=tuple(share.tiles for share in shares),
        block=_estimates(cluster, model, demand, shares, levels, regime),
    )
    return placement.with_layout(layout)


def shares_of(cluster: ClusterSpec, model: ModelSpec, allow_kv_dup: bool) -> tuple[ChipShare, ...]:
    """The share of every chip that has one. The first is the root: the source, if that is a chip."""
    group = source_first(cluster)
    cut = model.num_kv_heads < len(group) and allow_kv_dup
    units, unit = (model.num_heads, 1) if cut else (model.num_kv_heads, model.group_size)
    heads = bounds_of([unit * number for number in split(units, len(group))])
    step = column_step(model)
    columns = bounds_of([step * number for number in split(model.intermediate_size // step, len(group))])
    used = sum(
        heads[i] < heads[i + 1] or columns[i] < columns[i + 1] for i in range(len(group))
    )  # the split gives more to the first, so these are the first ones
    bounds = Bounds(group[:used], heads[: used + 1], columns[: used + 1])
    return _with_regimes(cluster, model, bounds, unit)


def column_step(model: ModelSpec) -> int:
    """Columns between which the feed-forward part may be cut: activations of 8 bits share scales."""
    return model.int8_group if model.activation_bits else 1


def shares_by_hand(
    name: str, cluster: ClusterSpec, model: ModelSpec, plan: PlanByHand, allow_kv_dup: bool
) -> tuple[ChipShare, ...]:
    """The shares of a plan made by hand, the root's first. A chip without heads and columns takes no part.

    Raises `PlanError` if they are not all that there is.
    """
    some = [share for share in plan.devices if share.heads or share.columns]
    plan = plan.model_copy(update={"devices": tuple(some)})
    unit = 1 if allow_kv_dup else model.group_size
    bounds = bounds_by_hand(name, cluster, model, plan, source_first(cluster), unit)
    step = column_step(model)
    if cut := [bound for bound in bounds.columns if bound % step]:
        raise PlanError(
            f"{name}: a plan made by hand cuts columns at {cut[0]}, expected a multiple of {step}, the "
            "columns that share a scale with activation_bits = 8: give devices multiples of it."
        )
    return _with_regimes(cluster, model, bounds, unit)


def _with_regimes(cluster: ClusterSpec, model: ModelSpec, bounds: Bounds, unit: int) -> tuple[ChipShare, ...]:
    """The shares of a group with what is on each chip at a time; heads are divided in steps of `unit`."""
    group = bounds.group
    ranges = list(zip(pairwise(bounds.heads), pairwise(bounds.columns), strict=True))
    largest = max(block_slice_bytes(model, *one) for one in ranges)
    limits = [cluster.devices[rank].on_chip_weight_bytes for rank in group]
    regimes = [regime_of(largest, model.num_layers, limit) for limit in limits if limit is not None]
    regime: Regime = max(regimes, key=REGIMES.index, default="resident")
    return tuple(
        ChipShare(
            rank,
            *one,
            _head_tiles(model, one[0], unit, limit if regime == "streamed" else None),
            _column_tiles(model, one[1], limit if regime == "streamed" else None),
            "resident" if limit is None else regime,
        )
        for rank, one, limit in zip(group, ranges, limits, strict=True)
    )


def _check_leaders(
    name: str, cluster: ClusterSpec, levels: Sequence[Level], shares: Sequence[ChipShare]
) -> None:
    """Check that every leader has heads where a member below it has, and columns likewise, because it adds
    their partial sums to its own; raises `PlanError`.
    """
    units = {share.rank: {"heads": share.has_heads, "columns": share.has_columns} for share in shares}
    for member, leader in (pair for level in levels for pair in level):
        for unit, has in units[member].items():
            if has and not units[leader][unit]:
                names = [cluster.devices[rank].name for rank in (leader, member)]
                raise PlanError(
                    f"{name}: {names[0]} leads {names[1]} in the reduction tree and has no {unit}, which "
                    f"{names[1]} has: give {names[0]} some, too."
                )


def _head_tiles(
    model: ModelSpec, heads: tuple[int, int], unit: int, limit_bytes: float | None
) -> tuple[int, ...]:
    """Bounds of heads in as few equal tiles as fit on the chip one at a time; KV groups stay whole."""

    def tile_bytes(first: int, last: int) -> int:
        return block_slice_bytes(model, (heads[0] + unit * first, heads[0] + unit * last), (0, 0))

    bounds = _tiles((heads[1] - heads[0]) // unit, tile_bytes, limit_bytes)
    return tuple(heads[0] + unit * bound for bound in bounds)


def _column_tiles(model: ModelSpec, columns: tuple[int, int], limit_bytes: float | None) -> tuple[int, ...]:
    """Bounds of columns in as few equal tiles as fit on the chip one at a time."""

    step = column_step(model)

    def tile_bytes(first: int, last: int) -> int:
        return block_slice_bytes(model, (0, 0), (columns[0] + step * first, columns[0] + step * last))

    bounds = _tiles((columns[1] - columns[0]) // step, tile_bytes, limit_bytes)
    return tuple(columns[0] + step * bound for bound in bounds)


def _tiles(units: int, tile_bytes: Callable[[int, int], int], limit_bytes: float | None) -> tuple[int, ...]:
    """Bounds of as few nearly equal tiles as have `limit_bytes` at most each: of single units if none do."""
    if units == 0:
        return ()
    for number in range(1, units if limit_bytes is not None else 1):
        bounds = bounds_of(split(units, number))
        if limit_bytes is not None and all(
            tile_bytes(first, last) <= limit_bytes for first, last in pairwise(bounds)
        ):
            return bounds
    return bounds_of(split(units, units if limit_bytes is not None else 1))


def _home(regime: Regime, layer: int) -> Literal["resident", "offloaded"]:
    """The place of a block's weights at the start: a double-buffering chip holds the first block, a streaming
    chip none.
    """
    here = regime == "resident" or (regime == "double-buffered" and layer == 0)
    return "resident" if here else "offloaded"


def _estimates(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    shares: tuple[ChipShare, ...],
    levels: Sequence[Level],
    regime: Regime,
) -> dict[Phase, BlockEstimate]:
    """Predicted times and energy of one block: in the prefill, and in the last decode step."""
    sizes: dict[Phase, tuple[int, int]] = {"prefill": (demand.rows, demand.rows)}
    if demand.new_tokens > 1:
        sizes["decode"] = (1, demand.cached_rows)
    chips = [(share.rank, share.head_tiles, share.tiles) for share in shares]
    return {
        phase: block_estimate(cluster, model, levels, chips, regime, demand.batch, rows, seen)
        for phase, (rows, seen) in sizes.items()
    }


def _check(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    placement: Placement,
    shares: tuple[ChipShare, ...],
) -> None:
    """Check resident weights, loaded ones, KV caches and working sets against each chip's memory."""
    kept: dict[int, int] = {}
    ops: dict[int, list[SizedOp]] = {
        rank: [] for rank in (*(share.rank for share in shares), cluster.source_rank)
    }
    for share in shares:
        first, last = kv_heads(model, *share.heads)
        fetched = [weight_bytes(model, piece) for piece in share.pieces(1 % model.num_layers)]
        slots = {"resident": 0, "double-buffered": sum(fetched), "streamed": max(fetched)}[share.regime]
        limit = cluster.devices[share.rank].on_chip_weight_bytes
        if share.regime == "streamed" and limit is not None and max(fetched) > limit:
            sizes = needs_and_has(max(fetched), limit, " on chip for one KV group or column")
            raise PlanError(
                f"mcu: {cluster.devices[share.rank].name} {sizes}: give it more on_chip_weight_bytes."
            )
        kept[share.rank] = model.num_layers * demand.kv_bytes(model, last - first) + slots
        ops[share.rank] += _ops(model, demand, share, is_root=share is shares[0])
    ops[cluster.source_rank] += end_ops(model, demand)
    check_memory(cluster, model, placement, kept, ops, "give it more memory, or add chips that take a share")


def _ops(model: ModelSpec, demand: Demand, share: ChipShare, is_root: bool) -> list[SizedOp]:
    """One chip's operations: in the prefill, and in the last decode step."""
    cache = "plan" if demand.generates else None
    sizes = [(demand.rows, 0)] + [(1, demand.cached_rows - 1)] * (demand.new_tokens > 1)
    ops = []
    for rows, cached in sizes:
        x = hidden(model, demand.batch, rows)
        for first, last in pairwise(share.head_tiles):
            ops.append(SizedOp(Attention(0, first, last, False, cache, True), (x,), cached))
        for first, last in pairwise(share.tiles):
            ops.append(SizedOp(FeedForward(0, first, last, False, True), (x,)))
        if is_root:
            ops += [SizedOp(Norm(0, "ffn"), (x,)), SizedOp(Residual(0, "ffn"), (x, x))]
    return ops
