"""Plan Galaxy: heads and columns in proportion to capacity, moved where memory is too small. Pure.

Ye et al., "Galaxy: A Resource-Efficient Collaborative Edge AI System for In-situ Transformer Inference"
(INFOCOM 2024): the heterogeneity- and memory-aware planner. The paper's full formulas were not available:
here shares follow capacity, and what a memory cannot hold moves to another device, one granule at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan, Slice
from engine.domain.units import needs_and_has
from engine.domain.values import Count, NonNegative, Value
from engine.ops.core import Add, Attention, FeedForward, Norm, Residual
from engine.ops.heads import Attend, Join, Project
from engine.ops.sizes import weight_bytes
from engine.ops.tensors import Meta
from engine.ops.tiles import Contract, Expand
from engine.program.collectives import chunk_bounds
from engine.strategies.galaxy.time import layer_of_prompt_s
from engine.strategies.shared.demand import (
    Demand,
    Pass,
    attention_passes,
    beside_rows,
    check_memory,
    end_passes,
    hidden,
    weights_bytes,
    working_bytes,
)
from engine.strategies.shared.pipeline import ends_placement
from engine.strategies.shared.shares import bounds_of, largest_remainder, pass_s
from engine.strategies.shared.stages import source_first
from engine.strategies.shared.tensor_parallel import Bounds, ShareLayout, kv_bytes_of, shares_placement

GRANULES_PER_HEAD = 4
"""The columns of the feed-forward part are divided in this many granules per attention head."""

REMEDY = "give it more memory, or add devices that take a share"

NeedBytes = Callable[[int, int, int], float]
"""Bytes that member i needs with so many head units and so many granules of columns."""


class LayerTimes(Value):
    """Predicted seconds of a layer over the prompt: transfers behind tiles of the products, or apart."""

    whole: NonNegative
    tiles: NonNegative


class GalaxyLayout(ShareLayout):
    """Heads and columns of each member, and its rows between the parts.

    Member i has rows [rows[i], rows[i + 1]) of the prompt; other lengths are shared by `row_weights`. With
    `overlap` the rows travel in tiles beside the products.
    """

    kind: Literal["galaxy"] = "galaxy"
    rows: tuple[Count, ...]
    row_weights: tuple[NonNegative, ...]
    overlap: bool
    predicted_layer_s: LayerTimes


class NoRoom(Exception):
    """Some members need more memory than they have, and no other has room: (member, bytes needed)."""

    def __init__(self, needs: Sequence[tuple[int, float]]):
        super().__init__(f"no room for what these members cannot hold: {list(needs)}")
        self.needs = tuple(needs)


def balance(
    head_units: int,
    granules: int,
    capacities: Sequence[float],
    need_bytes: NeedBytes,
    memory_bytes: Sequence[float],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Head units and granules of each member: in proportion to `capacities`, then moved until all fit.

    Repeatedly takes one granule from the member with the largest overflow (ties: the lowest), or one head
    unit if no granule can move. It goes to the member with room that has the most capacity per unit. Raises
    `NoRoom`.
    """
    members = range(len(capacities))
    shares = [
        [heads, columns]
        for heads, columns in zip(
            largest_remainder(head_units, capacities), largest_remainder(granules, capacities), strict=True
        )
    ]

    def over_bytes(i: int, kind: int = 0, more: int = 0) -> float:
        counts = list(shares[i])
        counts[kind] += more
        return need_bytes(i, *counts) - memory_bytes[i]

    while True:
        overflow = [over_bytes(i) for i in members]
        worst = max(members, key=lambda i: (overflow[i], -i))
        if overflow[worst] <= 0:
            return tuple(heads for heads, _ in shares), tuple(columns for _, columns in shares)
        for kind in (1, 0):
            others = [i for i in members if i != worst and shares[worst][kind]]
            room = [i for i in others if over_bytes(i, kind, 1) <= 0]
            if room:
                taker = max(room, key=lambda i: (capacities[i] / (shares[i][kind] + 1), -i))
                shares[worst][kind] -= 1
                shares[taker][kind] += 1
                break
        else:
            raise NoRoom([(i, over + memory_bytes[i]) for i, over in enumerate(overflow) if over > 0])


def galaxy_plan(
    name: str, cluster: ClusterSpec, model: ModelSpec, demand: Demand, overlap: bool, rows_by_speed: bool
) -> Plan[GalaxyLayout]:
    """Raises `PlanError` naming every device that lacks memory for its share when no other device has room
    for it.
    """
    group = source_first(cluster)
    capacities = [_capacity(cluster.devices[rank], model, demand) for rank in group]
    row_weights = capacities if rows_by_speed else [1.0] * len(group)
    sizes = largest_remainder(demand.rows, row_weights)
    granules = min(GRANULES_PER_HEAD * model.num_heads, model.intermediate_size)
    granule = -(-model.intermediate_size // granules)
    ends = weights_bytes(ends_placement(name, cluster, model), model, cluster.source_rank)
    tiles = overlap and demand.rows > 1

    @cache
    def need_bytes(i: int, groups: int, count: int) -> float:
        heads, columns = groups * model.group_size, min(count * granule, model.intermediate_size)
        pieces = (
            Slice(layer=0, part="attention", axis="heads", start=0, stop=heads),
            Slice(layer=0, part="ffn", axis="columns", start=0, stop=columns),
        )
        per_layer = sum(weight_bytes(model, piece) for piece in pieces) + demand.kv_bytes(model, groups)
        passes = member_passes(model, demand, heads, columns, sizes, tiles)
        source = group[i] == cluster.source_rank
        if source:
            passes += end_passes(model, demand)
        return model.num_layers * per_layer + working_bytes(model, passes) + source * ends

    memory_bytes = [cluster.devices[rank].memory_bytes for rank in group]
    try:
        groups, counts = balance(model.num_kv_heads, granules, capacities, need_bytes, memory_bytes)
    except NoRoom as error:
        short = ", ".join(
            f"{device.name} {needs_and_has(need, device.memory_bytes)}"
            for device, need in ((cluster.devices[group[i]], need) for i, need in error.needs)
        )
        raise PlanError(f"{name}: {short}, and no other device has room for the rest: {REMEDY}.") from error
    heads = [count * model.group_size for count in groups]
    cuts = chunk_bounds(model.intermediate_size, granules)
    ends_at = [cuts[bound] for bound in bounds_of(counts)]
    columns = [stop - start for start, stop in pairwise(ends_at)]
    bounds = Bounds(group, bounds_of(heads), bounds_of(columns))
    placement = shares_placement(name, cluster, model, bounds)
    passes = {
        rank: member_passes(model, demand, heads[i], columns[i], sizes, tiles) for i, rank in enumerate(group)
    }
    passes.setdefault(cluster.source_rank, []).extend(end_passes(model, demand))
    check_memory(cluster, model, placement, kv_bytes_of(bounds, model, demand), passes, REMEDY)
    predicted = LayerTimes(
        whole=layer_of_prompt_s(cluster, model, demand, bounds, sizes, tiles=False),
        tiles=layer_of_prompt_s(cluster, model, demand, bounds, sizes, tiles=True),
    )
    return placement.with_layout(
        GalaxyLayout(
            **bounds._asdict(),
            rows=bounds_of(sizes),
            row_weights=tuple(row_weights),
            overlap=overlap,
            predicted_layer_s=predicted,
        )
    )


def _capacity(device: DeviceSpec, model: ModelSpec, demand: Demand) -> float:
    """1 / (t_MHA + t_MLP): the inverse of the seconds of whole parts over the prompt."""
    x = hidden(model, demand.batch, demand.rows)
    parts = Attention(0, 0, model.num_heads, True), FeedForward(0, 0, model.intermediate_size, True)
    return 1 / sum(pass_s(device, model, Pass(op, (x,))) for op in parts)


def member_passes(
    model: ModelSpec, demand: Demand, heads: int, columns: int, sizes: Sequence[int], tiles: bool
) -> list[Pass]:
    """One member's largest operations: in the prefill, and in the last decode step."""
    cache, keys = "plan" if demand.generates else None, heads // model.group_size
    prompt, *fed_back = attention_passes(model, demand, 0, heads)
    ffn = FeedForward(0, 0, columns, True)
    tile = hidden(model, demand.batch, max(sizes))
    mine = tuple(range(heads))

    def wide(count: int, rows: int) -> Meta:
        return Meta((demand.batch, count, rows, model.head_dim), model.dtype)

    passes = [
        Pass(Residual(0, "ffn"), (tile, tile)),
        Pass(Norm(0, "ffn"), (tile,)),
        Pass(Add(), (tile, tile)),
    ]
    if tiles:
        queries, keys_values = wide(heads, demand.rows), wide(2 * keys, demand.rows)
        inner = Meta((demand.batch, max(sizes), columns), model.dtype)
        passes += [
            Pass(Project(0, 0, heads), (tile,)),
            Pass(Attend(0, mine, tuple(range(keys)), cache), (queries, keys_values)),
            Pass(Join(0, 0, heads, mine, True), (wide(heads, max(sizes)),)),
            Pass(Expand(0, 0, columns), (tile,)),
            Pass(Contract(0, 0, columns, True), (inner,)),
        ]
    if not tiles or demand.rows > demand.kept_rows > 0:
        fed_back = [prompt, *fed_back]
    for attention in fed_back:
        (x,) = attention.inputs
        passes += [attention, Pass(ffn, (x,))]
        if demand.evicted_rows:  # this member may have to add all recomputed rows
            passes.append(Pass(Residual(0, "ffn"), (x, x)))
    return beside_rows(model, demand, keys, passes)
