"""Turn AdaptLink's roles into a plan: holdings, work, the memory check, and the predicted step time."""

from __future__ import annotations

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Placement, Plan, Slice
from engine.ops.core import Attention, Residual
from engine.ops.operation import Op
from engine.strategies.adaptlink.layout import (
    CommMode,
    FfnPartition,
    Predicted,
    PredictedSides,
    PredictedStep,
    SharesLayout,
)
from engine.strategies.adaptlink.roles import ColumnShard, Roles, Spare, ffn_ops, ffn_time
from engine.strategies.adaptlink.shares import sides_s
from engine.strategies.shared.demand import Demand, SizedOp, block_ops, check_memory, end_ops
from engine.strategies.shared.ends import layer_slices
from engine.strategies.shared.shares import op_s


def plan_of_roles(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    ends: Placement,
    roles: Roles,
    partition: FfnPartition = "columns",
    comm_mode: CommMode = "eq5",
    spare: Spare | None = None,
) -> Plan[SharesLayout]:
    """`roles` as a plan; raises `PlanError` if a device lacks memory for its part of it. `spare` is memory
    for new copies during the run.
    """
    held = _pieces(model, roles)
    copies = [
        HeldSlice(device=piece.device, slice=_columns(layer, piece), home="backup")
        for pieces in roles.backups.values()
        for piece in pieces
        for layer in range(model.num_layers - roles.num_split, model.num_layers)
    ]
    layout = layout_of(cluster, model, demand, roles, partition, comm_mode).model_copy(
        update={} if spare is None else spare._asdict()
    )
    placement = Placement(
        strategy=ends.strategy,
        holdings=(
            *ends.holdings,
            *(HeldSlice(device=rank, slice=piece) for rank, pieces in held.items() for piece in pieces),
            *copies,
        ),
        work=(
            *ends.work,
            *(
                ComputedSlice(device=rank, slice=piece)
                for rank, pieces in held.items()
                for piece in pieces
                if piece.axis == "all" or piece.start < piece.stop
            ),
        ),
    )
    groups = dict.fromkeys(held, 0) | {roles.primary: model.num_layers * model.num_kv_heads}
    for share in roles.heads:
        moved = (share.stop - share.start) // model.group_size
        groups[share.device] += moved
        groups[roles.primary] -= moved
    kv_bytes = {rank: count * demand.kv_bytes(model, 1) for rank, count in groups.items()}
    devices = {holding.device for holding in placement.holdings} | set(layout.servers)
    ops: dict[int, list[SizedOp]] = {rank: [] for rank in devices | {roles.primary, cluster.source_rank}}
    ops[roles.primary] += block_ops(model, demand)
    ops[cluster.source_rank] += end_ops(model, demand)
    for rank in layout.servers:
        ops[rank] += ffn_ops(model, demand)
    check_memory(cluster, model, placement, kv_bytes, ops, "give it more memory, or lower beta")
    return placement.with_layout(layout)


def layout_of(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    roles: Roles,
    partition: FfnPartition,
    comm_mode: CommMode,
) -> SharesLayout:
    """`roles` with what the page draws: shares in blocks of the grid, and predicted times."""
    width = model.intermediate_size // roles.grid
    return SharesLayout(
        partition=partition,
        comm_mode=comm_mode,
        primary=roles.primary,
        grid=roles.grid,
        split_layers=tuple(range(model.num_layers - roles.num_split, model.num_layers)),
        shares={
            shard.device: tuple(range(shard.start // width, shard.stop // width)) for shard in roles.shards
        },
        shards=roles.shards,
        heads=roles.heads,
        backups=dict(roles.backups),
        coverage=roles.coverage(),
        workers=cluster.workers,
        predicted=predicted(cluster, model, demand, roles),
    )


def predicted(cluster: ClusterSpec, model: ModelSpec, demand: Demand, roles: Roles) -> Predicted:
    """Seconds of all layers of one step: of a token, or of an encoder's prompt. Moved heads are not counted.

    Equation 1 repaired: layers follow each other, the sides of a split part run side by side. `eq5` is the
    paper's side, `exact` counts messages of full size.
    """
    last = max(ffn_ops(model, demand), key=lambda one: -one.inputs[0].shape[1])
    ranks = [shard.device for shard in roles.shards]
    times = [ffn_time(cluster, model, {last: 1}, rank, roles.primary) for rank in ranks]
    shares = [(shard.stop - shard.start) / model.intermediate_size for shard in roles.shards]
    cached, cache = (demand.cached_rows - 1, "plan") if demand.new_tokens > 1 else (0, None)
    x, primary = last.inputs[0], cluster.devices[roles.primary]
    others: list[tuple[Op, int, int]] = [
        (Attention(0, 0, model.num_heads, True, cache), 1, cached),
        (Residual(0, "attention"), 2, 0),
        (Residual(0, "ffn"), 2, 0),
    ]
    attention_s = sum(op_s(primary, model, SizedOp(op, (x,) * count, rows)) for op, count, rows in others)
    whole = model.num_layers - roles.num_split

    def sides(exact: bool) -> dict[int, float]:
        return dict(zip(ranks, sides_s(shares, times, exact), strict=True))

    def step_s(sides: dict[int, float]) -> float:
        split_s = roles.num_split * (attention_s + max(sides.values()))
        return whole * (attention_s + times[0].compute_s) + split_s

    by_eq5, exactly = sides(exact=False), sides(exact=True)
    return Predicted(
        step_s=PredictedStep(
            eq5=step_s(by_eq5),
            exact=step_s(exactly),
            primary_alone=model.num_layers * (attention_s + times[0].compute_s),
        ),
        sides_s=PredictedSides(eq5=by_eq5, exact=exactly),
    )


def _pieces(model: ModelSpec, roles: Roles) -> dict[int, list[Slice]]:
    """Slices by device, in the order of layers; the primary has the norms of all."""
    mine = roles.primary
    held: dict[int, list[Slice]] = {shard.device: [] for shard in roles.shards}
    for layer in range(model.num_layers):
        attention, ffn = layer_slices(layer)
        moved = [share for share in roles.heads if share.layer == layer]
        if moved:
            attention = _heads(layer, 0, moved[0].start)
        held[mine].append(attention)
        for share in moved:
            held[share.device].append(_heads(layer, share.start, share.stop))
        if layer < model.num_layers - roles.num_split:
            held[mine].append(ffn)
        else:
            for shard in roles.shards:
                held[shard.device].append(_columns(layer, shard))
    return held


def _heads(layer: int, start: int, stop: int) -> Slice:
    return Slice(layer=layer, part="attention", axis="heads", start=start, stop=stop)


def _columns(layer: int, shard: ColumnShard) -> Slice:
    return Slice(layer=layer, part="ffn", axis="columns", start=shard.start, stop=shard.stop)
