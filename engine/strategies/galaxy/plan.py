"""Plan Galaxy: how many heads, columns and rows each device gets, within its memory. Pure.

Ye et al., "Galaxy: A Resource-Efficient Collaborative Edge AI System for In-situ Transformer Inference"
(INFOCOM 2024): the heterogeneity- and memory-aware planner. The paper's full formulas were not available.
`balance` follows its description: shares follow capacity, and what a memory cannot hold moves to another
device, one granule at a time. `exact` (`exact.py`) minimises the same objective.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from math import inf
from typing import Literal, NamedTuple, Protocol

from engine.domain.by_hand import PlanByHand
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
from engine.strategies.galaxy.time import MemberTimes, layer_of_prompt_s
from engine.strategies.planner.exact import UnitShares, best_shares, most_granules
from engine.strategies.shared.by_hand import bounds_by_hand
from engine.strategies.shared.demand import (
    Demand,
    SizedOp,
    attention_ops,
    beside_rows,
    check_memory,
    end_ops,
    hidden,
    weights_bytes,
    working_bytes,
)
from engine.strategies.shared.pipeline import ends_placement
from engine.strategies.shared.shares import bounds_of, largest_remainder, op_s
from engine.strategies.shared.stages import source_first
from engine.strategies.shared.tensor_parallel import Bounds, ShareLayout, kv_bytes_of, shares_placement

GRANULES_PER_HEAD = 4
"""The columns of the feed-forward part are divided in this many granules per attention head."""

EXACT_MEMBERS = 8
"""The most devices that `exact` plans for; with more it only takes over where `balance` finds no room."""

Planner = Literal["exact", "balance"]
PlannedBy = Literal["exact", "balance", "best", "by_hand"]
RowShares = Literal["best", "equal", "proportional"]

REMEDY = "give it more memory, or add devices that take a share"

NeedBytes = Callable[[int, int, int], float]
"""Bytes that member i needs with so many head units and so many granules of columns."""


class NeedUpTo(Protocol):
    """The same, exact up to `enough_bytes`: of a share that needs more, it may say less than it needs."""

    def __call__(self, i: int, groups: int, count: int, enough_bytes: float = inf) -> float: ...


class LayerTimes(Value):
    """Predicted seconds of a layer over the prompt: transfers behind tiles of the products, or apart."""

    whole: NonNegative
    tiles: NonNegative


class GalaxyLayout(ShareLayout):
    """Heads and columns of each member, and its rows between the parts.

    Member i has rows [rows[i], rows[i + 1]) of the prompt; other lengths are shared by `row_weights`. With
    `overlap` the rows travel in tiles beside the products. `planner` chose the shares.
    """

    kind: Literal["galaxy"] = "galaxy"
    rows: tuple[Count, ...]
    row_weights: tuple[NonNegative, ...]
    overlap: bool
    planner: PlannedBy
    predicted_layer_s: LayerTimes


class NoRoom(Exception):
    """Raised if members need more memory than they have, and no other has room: (member, bytes needed)."""

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

    def over_bytes(i: int, heads: int = 0, columns: int = 0) -> float:
        return need_bytes(i, shares[i][0] + heads, shares[i][1] + columns) - memory_bytes[i]

    while True:
        overflow = [over_bytes(i) for i in members]
        worst = max(members, key=lambda i: (overflow[i], -i))
        if overflow[worst] <= 0:
            return tuple(heads for heads, _ in shares), tuple(columns for _, columns in shares)
        for kind in (1, 0):
            others = [i for i in members if i != worst and shares[worst][kind]]
            room = [i for i in others if over_bytes(i, heads=1 - kind, columns=kind) <= 0]
            if room:
                taker = max(room, key=lambda i: (capacities[i] / (shares[i][kind] + 1), -i))
                shares[worst][kind] -= 1
                shares[taker][kind] += 1
                break
        else:
            raise NoRoom([(i, over + memory_bytes[i]) for i, over in enumerate(overflow) if over > 0])


class Task(NamedTuple):
    """What is to be divided among `group` (ranks), and what the planner knows of it.

    `columns` are divided in `granules` at these bounds. `tiles`: transfers overlap with tiles of products.
    """

    cluster: ClusterSpec
    model: ModelSpec
    demand: Demand
    group: tuple[int, ...]
    capacities: tuple[float, ...]
    cuts: tuple[int, ...]
    ends_bytes: int
    tiles: bool

    @property
    def granules(self) -> int:
        return len(self.cuts) - 1

    @property
    def memory_bytes(self) -> tuple[float, ...]:
        return tuple(self.cluster.devices[rank].usable_bytes for rank in self.group)


def task_of(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    overlap: bool,
    group: Sequence[int] | None = None,
) -> Task:
    """The planning task for all workers, or for those in `group`, in this order."""
    group = source_first(cluster) if group is None else group
    granules = min(GRANULES_PER_HEAD * model.num_heads, model.intermediate_size)
    return Task(
        cluster,
        model,
        demand,
        tuple(group),
        tuple(_capacity(cluster.devices[rank], model, demand) for rank in group),
        tuple(chunk_bounds(model.intermediate_size, granules)),
        weights_bytes(ends_placement(name, cluster, model), model, cluster.source_rank),
        overlap and demand.rows > 1,
    )


def need_bytes_of(task: Task, sizes: Sequence[int]) -> NeedUpTo:
    """Bytes of memory that each member needs; `sizes` are the members' rows."""
    model, demand = task.model, task.demand
    granule = max(stop - start for start, stop in pairwise(task.cuts))
    at_ends_bytes = working_bytes(model, end_ops(model, demand))

    @cache
    def staying_bytes(groups: int, count: int) -> int:
        """What stays of a share on any member."""
        heads, columns = sizes_of(groups, count)
        pieces = (
            Slice(layer=0, part="attention", axis="heads", start=0, stop=heads),
            Slice(layer=0, part="ffn", axis="columns", start=0, stop=columns),
        )
        per_layer = sum(weight_bytes(model, piece) for piece in pieces) + demand.kv_bytes(model, groups)
        return model.num_layers * per_layer

    @cache
    def ops_bytes(groups: int, count: int) -> int:
        """What the largest operation of a share works with, beside the KV rows from disk."""
        own = member_ops(model, demand, *sizes_of(groups, count), sizes, task.tiles)
        return working_bytes(model, [one._replace(fetched_bytes=0) for one in own])

    def works_bytes(groups: int, count: int) -> int:
        """No operation works with heads and with columns, and none needs less for more of them."""
        return max(ops_bytes(groups, 0), ops_bytes(0, count)) + demand.fetched_bytes(model, groups)

    def sizes_of(groups: int, count: int) -> tuple[int, int]:
        return groups * model.group_size, min(count * granule, model.intermediate_size)

    def need_bytes(i: int, groups: int, count: int, enough_bytes: float = inf) -> float:
        at_source = task.group[i] == task.cluster.source_rank
        work_bytes, ends_bytes = (at_ends_bytes, task.ends_bytes) if at_source else (0, 0)
        stays_bytes = staying_bytes(groups, count) + ends_bytes
        if stays_bytes + work_bytes > enough_bytes:
            return stays_bytes + work_bytes
        return stays_bytes + max(work_bytes, works_bytes(groups, count))

    return need_bytes


def galaxy_plan(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    overlap: bool,
    planner: Planner,
    row_shares: RowShares,
    by_hand: PlanByHand | None = None,
) -> Plan[GalaxyLayout]:
    """Galaxy's plan: each device's share of heads and columns, and of rows between them.

    Raises `PlanError` naming every device that lacks memory for its share when no other device has room for
    it.
    """
    task = task_of(name, cluster, model, demand, overlap)
    try:
        choice = given(name, task, by_hand) if by_hand else choose(task, planner, row_shares)
    except NoRoom as error:
        devices = [(cluster.devices[task.group[i]], need) for i, need in error.needs]
        short = ", ".join(
            f"{device.name} {needs_and_has(need, device.usable_bytes)}" for device, need in devices
        )
        raise PlanError(f"{name}: {short}, and no other device has room for the rest: {REMEDY}.") from error
    return plan_with(name, task, overlap, choice)


def plan_with(name: str, task: Task, overlap: bool, choice: Choice) -> Plan[GalaxyLayout]:
    """The plan with these shares; raises `PlanError` if memory is short."""
    cluster, model, demand, *_ = task
    bounds, sizes = choice.bounds, largest_remainder(demand.rows, choice.row_weights)
    plan = shares_placement(name, cluster, model, bounds).with_layout(
        GalaxyLayout(
            **bounds._asdict(),
            rows=bounds_of(sizes),
            row_weights=choice.row_weights,
            overlap=overlap,
            planner=choice.planner,
            predicted_layer_s=LayerTimes(
                whole=layer_of_prompt_s(cluster, model, demand, bounds, sizes, tiles=False),
                tiles=layer_of_prompt_s(cluster, model, demand, bounds, sizes, tiles=True),
            ),
        )
    )
    check_shares(cluster, model, demand, plan)
    return plan


def check_shares(cluster: ClusterSpec, model: ModelSpec, demand: Demand, plan: Plan[GalaxyLayout]) -> None:
    """Check every device's memory with the shares of `plan`; raises `PlanError`."""
    layout = plan.layout
    bounds = Bounds(layout.group, layout.heads, layout.columns)
    sizes, tiles = largest_remainder(demand.rows, layout.row_weights), layout.overlap and demand.rows > 1
    ops = {
        rank: member_ops(
            model,
            demand,
            bounds.heads[i + 1] - bounds.heads[i],
            bounds.columns[i + 1] - bounds.columns[i],
            sizes,
            tiles,
        )
        for i, rank in enumerate(bounds.group)
    }
    ops.setdefault(cluster.source_rank, []).extend(end_ops(model, demand))
    check_memory(cluster, model, plan, kv_bytes_of(bounds, model, demand), ops, REMEDY)


class Choice(NamedTuple):
    """Shares of the members, their weights for dividing rows, who chose them, and a layer's seconds."""

    bounds: Bounds
    row_weights: tuple[float, ...]
    planner: PlannedBy
    layer_s: float


def choose(task: Task, planner: Planner, row_shares: RowShares) -> Choice:
    """The fastest layer among the ways to divide rows, and of `exact` and `balance` if both may plan.

    Raises `NoRoom`: by `balance` alone, also where its moves do not find the room that there is.
    """
    equal = (1.0,) * len(task.group)
    weights = {"equal": [equal], "proportional": [task.capacities], "best": [equal, task.capacities]}
    choices, error = list[Choice](), NoRoom([])
    for row_weights in weights[row_shares]:
        sizes = largest_remainder(task.demand.rows, row_weights)
        need_bytes = need_bytes_of(task, sizes)
        try:
            units = task.model.num_kv_heads
            shares = balance(units, task.granules, task.capacities, need_bytes, task.memory_bytes)
            choices.append(_choice(task, shares, row_weights, "balance"))
        except NoRoom as no_room:
            error = no_room
        if planner == "exact" and (len(task.group) <= EXACT_MEMBERS or not choices):
            best = exact_shares(task, sizes, need_bytes)
            if best is not None:
                choices.append(_choice(task, best, row_weights, "exact"))
    if not choices:
        raise error
    return min(choices, key=lambda choice: (choice.layer_s, choice.planner == "balance"))


def given(name: str, task: Task, plan: PlanByHand) -> Choice:
    """The shares of a plan made by hand. Raises `PlanError` if they are not all that there is."""
    cluster, model = task.cluster, task.model
    bounds = bounds_by_hand(name, cluster, model, plan, head_step=model.group_size)
    rows_of = {share.device: share.rows for share in plan.devices}
    weights = tuple(rows_of[cluster.devices[rank].name] for rank in bounds.group)
    if not sum(weights):
        raise PlanError(f"{name}: the plan made by hand gives no device any rows: give one device some.")
    sizes = largest_remainder(task.demand.rows, weights)
    layer_s = layer_of_prompt_s(cluster, model, task.demand, bounds, sizes, task.tiles)
    return Choice(bounds, weights, "by_hand", layer_s)


def bounds_in(task: Task, shares: UnitShares) -> Bounds:
    groups, counts = shares
    return Bounds(
        task.group,
        bounds_of([count * task.model.group_size for count in groups]),
        tuple(task.cuts[bound] for bound in bounds_of(counts)),
    )


def _choice(task: Task, shares: UnitShares, row_weights: tuple[float, ...], planner: Planner) -> Choice:
    bounds = bounds_in(task, shares)
    sizes = largest_remainder(task.demand.rows, row_weights)
    layer_s = layer_of_prompt_s(task.cluster, task.model, task.demand, bounds, sizes, task.tiles)
    return Choice(bounds, row_weights, planner, layer_s)


def exact_shares(task: Task, sizes: Sequence[int], need_bytes: NeedUpTo) -> UnitShares | None:
    """The least time of the slowest members over the prompt, at which alone the paper's planner looks."""
    units, members = task.model.num_kv_heads, range(len(task.group))
    memory_bytes = task.memory_bytes

    def fits(i: int, groups: int, count: int) -> bool:
        return need_bytes(i, groups, count, memory_bytes[i]) <= memory_bytes[i]

    most = [most_granules(units, task.granules, partial(fits, i)) for i in members]
    no_s = [0.0] * (units + 1), [0.0] * (task.granules + 1)
    found = best_shares([no_s[0]] * len(members), [no_s[1]] * len(members), most)
    if found is None or len(members) > EXACT_MEMBERS:  # the times of so many take too long: any that fit
        return found
    times = MemberTimes(task.cluster, task.model, task.demand, task.group, sizes, task.tiles)
    size = task.model.group_size
    heads = [n * size for n in range(units + 1)]
    mha_s = [[times.mha_s(i, count) for count in heads] for i in members]
    mlp_s = [
        [times.mlp_s(i, count) if n <= most[i][0] else inf for n, count in enumerate(task.cuts)]
        for i in members
    ]
    return best_shares(mha_s, mlp_s, most)


def _capacity(device: DeviceSpec, model: ModelSpec, demand: Demand) -> float:
    """1 / (t_MHA + t_MLP): the inverse of the seconds of whole parts over the prompt."""
    x = hidden(model, demand.batch, demand.rows)
    parts = Attention(0, 0, model.num_heads, True), FeedForward(0, 0, model.intermediate_size, True)
    return 1 / sum(op_s(device, model, SizedOp(op, (x,))) for op in parts)


def member_ops(
    model: ModelSpec, demand: Demand, heads: int, columns: int, sizes: Sequence[int], tiles: bool
) -> list[SizedOp]:
    """One member's largest operations: in the prefill, and in the last decode step."""
    cache, keys = "plan" if demand.generates else None, heads // model.group_size
    prompt, *fed_back = attention_ops(model, demand, 0, heads)
    ffn = FeedForward(0, 0, columns, True)
    tile = hidden(model, demand.batch, max(sizes))
    mine = tuple(range(heads))

    def wide(count: int, rows: int) -> Meta:
        return Meta((demand.batch, count, rows, model.head_dim), model.dtype)

    ops = [
        SizedOp(Residual(0, "ffn"), (tile, tile)),
        SizedOp(Norm(0, "ffn"), (tile,)),
        SizedOp(Add(), (tile, tile)),
    ]
    if tiles:
        queries, keys_values = wide(heads, demand.rows), wide(2 * keys, demand.rows)
        inner = Meta((demand.batch, max(sizes), columns), model.dtype)
        ops += [
            SizedOp(Project(0, 0, heads), (tile,)),
            SizedOp(Attend(0, mine, tuple(range(keys)), cache), (queries, keys_values)),
            SizedOp(Join(0, 0, heads, mine, True), (wide(heads, max(sizes)),)),
            SizedOp(Expand(0, 0, columns), (tile,)),
            SizedOp(Contract(0, 0, columns, True), (inner,)),
        ]
    if not tiles or demand.rows > demand.kept_rows > 0:
        fed_back = [prompt, *fed_back]
    for attention in fed_back:
        (x,) = attention.inputs
        ops += [attention, SizedOp(ffn, (x,))]
        if demand.evicted_rows:  # this member may have to add all recomputed rows
            ops.append(SizedOp(Residual(0, "ffn"), (x, x)))
    return beside_rows(model, demand, keys, ops)
