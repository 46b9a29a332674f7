"""AdaptLink's layout as a plan: holdings, work, memory of every device, and the step that is predicted."""

from __future__ import annotations

from typing import Any, Literal

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Holding, Plan, Slice, Work
from engine.ops.core import Attention, Residual
from engine.ops.operation import Op
from engine.strategies.adaptlink.roles import HeadShare, Layout, Shard, ffn_passes, ffn_time
from engine.strategies.adaptlink.serve import servers_of
from engine.strategies.adaptlink.shares import sides_s
from engine.strategies.shared.demand import Demand, Pass, block_passes, check_memory, end_passes
from engine.strategies.shared.ends import layer_slices
from engine.strategies.shared.shares import pass_s

Partition = Literal["columns", "summa"]


def plan_of_layout(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    ends: Plan,
    layout: Layout,
    partition: Partition = "columns",
) -> Plan:
    """`layout` as a plan; raises `PlanError` if a device lacks memory for its part of it."""
    held = _pieces(model, layout)
    copies = [
        Holding(device=piece.device, slice=_columns(layer, piece), home="backup")
        for pieces in layout.backups.values()
        for piece in pieces
        for layer in range(model.num_layers - layout.num_split, model.num_layers)
    ]
    plan = Plan(
        strategy=ends.strategy,
        holdings=(
            *ends.holdings,
            *(Holding(device=rank, slice=piece) for rank, pieces in held.items() for piece in pieces),
            *copies,
        ),
        work=(
            *ends.work,
            *(
                Work(device=rank, slice=piece)
                for rank, pieces in held.items()
                for piece in pieces
                if piece.axis == "all" or piece.start < piece.stop
            ),
        ),
        extra={"partition": partition, **extra_of(cluster, model, demand, layout)},
    )
    groups = dict.fromkeys(held, 0) | {layout.primary: model.num_layers * model.num_kv_heads}
    for share in layout.heads:
        moved = (share.stop - share.start) // model.group_size
        groups[share.device] += moved
        groups[layout.primary] -= moved
    kv_bytes = {rank: count * demand.kv_bytes(model, 1) for rank, count in groups.items()}
    devices = {holding.device for holding in plan.holdings}
    passes: dict[int, list[Pass]] = {rank: [] for rank in devices | {layout.primary, cluster.source_rank}}
    passes[layout.primary] += block_passes(model, demand)
    passes[cluster.source_rank] += end_passes(model, demand)
    for rank in servers_of(plan.extra):
        passes[rank] += ffn_passes(model, demand)
    check_memory(cluster, model, plan, kv_bytes, passes, "give it more memory, or lower beta")
    return plan


def extra_of(cluster: ClusterSpec, model: ModelSpec, demand: Demand, layout: Layout) -> dict[str, Any]:
    """What the program runs by and the page draws: shards in columns, shares in blocks."""
    width = model.intermediate_size // layout.grid
    return {
        "view": "shares",
        "primary": layout.primary,
        "grid": layout.grid,
        "split_layers": list(range(model.num_layers - layout.num_split, model.num_layers)),
        "shares": {
            str(shard.device): list(range(shard.start // width, shard.stop // width))
            for shard in layout.shards
        },
        "shards": [list(shard) for shard in layout.shards],
        "heads": [list(share) for share in layout.heads],
        "backups": {str(rank): [list(piece) for piece in pieces] for rank, pieces in layout.backups.items()},
        "coverage": layout.coverage(),
        "epoch": 0,
        "workers": list(cluster.workers),
        "predicted": predicted(cluster, model, demand, layout),
    }


def layout_in(extra: dict[str, Any]) -> Layout:
    """Inverse of `extra_of`."""
    return Layout(
        primary=extra["primary"],
        grid=extra["grid"],
        num_split=len(extra["split_layers"]),
        shards=tuple(Shard(*shard) for shard in extra["shards"]),
        heads=tuple(HeadShare(*share) for share in extra["heads"]),
        backups={
            int(rank): tuple(Shard(*piece) for piece in pieces) for rank, pieces in extra["backups"].items()
        },
    )


def predicted(cluster: ClusterSpec, model: ModelSpec, demand: Demand, layout: Layout) -> dict[str, Any]:
    """Seconds of all layers of one step: of a token, or of an encoder's prompt. Moved heads are not counted.

    Equation 1 repaired: layers follow each other, the sides of a split part run side by side. `eq5` is the
    paper's side, `exact` counts messages of full size.
    """
    last = max(ffn_passes(model, demand), key=lambda one: -one.inputs[0].shape[1])
    ranks = [shard.device for shard in layout.shards]
    times = [ffn_time(cluster, model, {last: 1}, rank, layout.primary) for rank in ranks]
    shares = [(shard.stop - shard.start) / model.intermediate_size for shard in layout.shards]
    cached, cache = (demand.cached_rows - 1, "plan") if demand.new_tokens > 1 else (0, None)
    x, primary = last.inputs[0], cluster.devices[layout.primary]
    others: list[tuple[Op, int, int]] = [
        (Attention(0, 0, model.num_heads, True, cache), 1, cached),
        (Residual(0, "attention"), 2, 0),
        (Residual(0, "ffn"), 2, 0),
    ]
    attention_s = sum(pass_s(primary, model, Pass(op, (x,) * count, rows)) for op, count, rows in others)
    whole = model.num_layers - layout.num_split
    sides = {name: sides_s(shares, times, name == "exact") for name in ("eq5", "exact")}
    step_s = {
        name: whole * (attention_s + times[0].compute_s) + layout.num_split * (attention_s + max(each))
        for name, each in sides.items()
    }
    return {
        "step_s": step_s | {"primary_alone": model.num_layers * (attention_s + times[0].compute_s)},
        "sides_s": {
            name: {str(rank): side for rank, side in zip(ranks, each, strict=True)}
            for name, each in sides.items()
        },
    }


def _pieces(model: ModelSpec, layout: Layout) -> dict[int, list[Slice]]:
    """Slices by device, in the order of layers; the primary has the norms of all."""
    mine = layout.primary
    held: dict[int, list[Slice]] = {shard.device: [] for shard in layout.shards}
    for layer in range(model.num_layers):
        attention, ffn = layer_slices(layer)
        moved = [share for share in layout.heads if share.layer == layer]
        if moved:
            attention = _heads(layer, 0, moved[0].start)
        held[mine].append(attention)
        for share in moved:
            held[share.device].append(_heads(layer, share.start, share.stop))
        if layer < model.num_layers - layout.num_split:
            held[mine].append(ffn)
        else:
            for shard in layout.shards:
                held[shard.device].append(_columns(layer, shard))
    return held


def _heads(layer: int, start: int, stop: int) -> Slice:
    return Slice(layer=layer, part="attention", axis="heads", start=start, stop=stop)


def _columns(layer: int, shard: Shard) -> Slice:
    return Slice(layer=layer, part="ffn", axis="columns", start=shard.start, stop=shard.stop)
