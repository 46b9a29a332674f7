"""Plan Voltage: shares of the positions, the decode owner, and the check that all layers fit. Pure.

Hu, Li, "When the Edge Meets Transformers: Distributed Inference with Transformer Models" (ICDCS 2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError, SpecError
from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Placement, Plan, Slice
from engine.strategies.planner.choice import PLANNER_HELP, PlannedParams, PlannerChoice
from engine.strategies.planner.order import nearest_first
from engine.strategies.shared.by_hand import ratios_by_hand, workers_of
from engine.strategies.shared.demand import (
    Demand,
    SizedOp,
    block_ops,
    check_memory,
    end_ops,
    hidden,
    weights_bytes,
)
from engine.strategies.shared.ends import end_holdings, end_work, layer_slices
from engine.strategies.shared.shares import layer_s, named_worker, prefill_layer_s
from engine.strategies.voltage.layout import Decode, GatherChoice, LastLayerRows, PositionsLayout
from engine.strategies.voltage.partition import last_layer, shards_for
from engine.strategies.voltage.positions import OrderChoice, PositionShard, bounds


class VoltageParams(PlannedParams):
    units = ("rows",)
    settings = ("decoder",)
    rule = ("ratio",)
    planner: PlannerChoice = Field(
        default="paper", description=PLANNER_HELP.format(rule="all devices, with positions as `ratio` says")
    )
    ratio: Literal["even", "proportional"] = Field(
        default="even",
        description="With planner=paper, positions per device: equal (the paper), or by speed.",
    )
    gather: GatherChoice = Field(
        default="direct",
        description="All-gather: to each peer, around a ring, or only to the peers whose rows come later "
        "(with causal_trim).",
    )
    order: OrderChoice = Field(
        default="auto", description="Order of matrix products: Theorem 2 decides, or one of the two always."
    )
    causal_trim: bool = Field(
        default=False, description="Compute keys only as far as the causal mask lets a device's rows see."
    )
    last_layer_rows: Literal["auto", LastLayerRows] = Field(
        default="auto",
        description="Rows of the last layer: all (the paper), or only the one that the answer is read from; "
        "auto: all with planner=paper, else needed.",
    )
    decode: Decode = Field(
        default="kv_single",
        description="New tokens: by one device with the KV cache, or each by a pass over all rows.",
    )
    decode_owner: str = Field(
        default="",
        description="Worker that generates; empty: the fastest, with planner=best the one that ends soonest.",
    )
    fallback: Literal["none", "single"] = Field(
        default="none",
        description="single: one device alone where all together are predicted to take longer.",
    )
    repartition: bool = Field(
        default=False,
        description="After a change of a device's speed, divide the positions anew before the next layer.",
    )


class Division(NamedTuple):
    """A way to divide the positions: `ratios` for the workers `devices` (ranks), and who decodes with a KV
    cache.
    """

    devices: tuple[int, ...]
    ratios: tuple[float, ...]
    owner: int | None


def plan_with(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    params: VoltageParams,
    chosen: Division,
) -> Plan[PositionsLayout]:
    """The plan of a division: which device computes which positions of every layer. Raises `PlanError` where
    a worker lacks memory.
    """
    cluster = cluster.without([rank for rank in cluster.workers if rank not in chosen.devices])
    owner = chosen.owner
    layout = _options(model, demand, params).model_copy(
        update={"devices": chosen.devices, "ratios": chosen.ratios, "owner": owner}
    )
    shards = shards_for(model, layout, demand.rows)
    final = last_layer(model, layout, shards)
    layout = layout.model_copy(update={"shards": shards})
    holdings = (
        *end_holdings(cluster, model),
        *(
            HeldSlice(device=rank, slice=piece)
            for rank in cluster.workers
            for layer in range(model.num_layers)
            for piece in layer_slices(layer)
        ),
    )
    work = [*end_work(cluster, model), *_works(model, params, shards, final)]
    if owner is not None:
        work += [
            ComputedSlice(device=owner, phase="decode", slice=piece)
            for layer in range(model.num_layers)
            for piece in layer_slices(layer)
        ]
    kv_bytes = {} if owner is None else {owner: model.num_layers * demand.kv_bytes(model, model.num_kv_heads)}
    placement = Placement(strategy=name, holdings=holdings, work=tuple(work))
    if params.repartition:
        room_bytes = tuple(
            int(cluster.devices[rank].usable_bytes)
            - weights_bytes(placement, model, rank)
            - kv_bytes.get(rank, 0)
            for rank in chosen.devices
        )
        layout = layout.model_copy(update={"room_bytes": room_bytes})
    check_memory(
        cluster,
        model,
        placement,
        kv_bytes,
        _ops(cluster, model, demand, layout),
        "voltage keeps all layers on every worker: give it more memory, take it out, "
        "or choose a strategy that splits the weights (gpipe, megatron)",
    )
    return placement.with_layout(layout)


def _options(model: ModelSpec, demand: Demand, params: VoltageParams) -> PositionsLayout:
    """The layout without devices."""
    return PositionsLayout(
        devices=(),
        ratios=(),
        owner=None,
        gather=params.gather,
        order=params.order,
        causal_trim=params.causal_trim,
        last_layer_rows=last_layer_rows(model, demand, params),
        decode=params.decode,
        repartition=params.repartition,
    )


def last_layer_rows(model: ModelSpec, demand: Demand, params: VoltageParams) -> LastLayerRows:
    """All of a text that is not continued: its hidden states are the answer."""
    if not (demand.generates or model.num_classes):
        return "all"
    if params.last_layer_rows == "auto":
        return "all" if params.planner == "paper" else "needed"
    return params.last_layer_rows


def rule(cluster: ClusterSpec, model: ModelSpec, demand: Demand, params: VoltageParams) -> Division:
    """The shares made by hand, else those of the paper's rule, which has all workers. Raises `PlanError` if
    the worker that is wanted cannot decode with them.
    """
    wanted = wanted_decoder(cluster, params)
    devices: Sequence[int] = cluster.workers
    if params.plan is not None:
        devices, ratios = ratios_by_hand("voltage", cluster, params.plan)
    elif params.ratio == "even":
        ratios = (1 / len(devices),) * len(devices)
    else:
        speeds = [1 / prefill_layer_s(cluster.devices[rank], model, demand) for rank in devices]
        ratios = tuple(speed / sum(speeds) for speed in speeds)
    owner = _owner(cluster, model, demand, params, devices, ratios, wanted)
    if owner is not None and owner not in devices:
        raise PlanError(
            f"voltage: {cluster.devices[owner].name} is to generate, and the plan made by hand does not name "
            "it: give it rows, or 0 rows."
        )
    if owner is not None and wanted not in (None, owner):
        raise PlanError(
            f"voltage: {cluster.devices[wanted].name} is to generate, but with causal_trim only "
            f"{cluster.devices[owner].name}, which has the last positions, fills a whole KV cache: "
            f"name it, or switch causal_trim off."
        )
    return Division(tuple(devices), ratios, owner)


def wanted_decoder(cluster: ClusterSpec, params: VoltageParams) -> int | None:
    """The rank that is to decode, None for any. Raises `PlanError` where a plan made by hand is at odds with
    the parameters.
    """
    named = named_worker(cluster, params.decode_owner, "parameters of voltage, decode_owner")
    if params.plan is None or params.plan.decoder is None:
        return named
    (decoder,) = workers_of("voltage", cluster, [params.plan.decoder])
    if named not in (None, decoder) or params.decode == "recompute":
        raise PlanError(
            f"voltage: the plan made by hand lets {params.plan.decoder} generate, and the parameters say "
            "otherwise (decode_owner, decode): leave decoder out of the plan."
        )
    return decoder


def _owner(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    params: VoltageParams,
    devices: Sequence[int],
    ratios: Sequence[float],
    wanted: int | None,
) -> int | None:
    """Who decodes with a KV cache: the one that is wanted, else the fastest; with trimmed keys the one that
    has the last rows.
    """
    if not decodes_with_cache(demand, params):
        return None
    if params.causal_trim:
        ends = bounds(demand.rows, ratios)
        return devices[max(i for i in range(len(ratios)) if ends[i] < ends[i + 1])]
    if wanted is not None:
        return wanted
    order = nearest_first(cluster, model, demand)
    return min(devices, key=lambda rank: (layer_s(cluster.devices[rank], model, demand), order.index(rank)))


def decodes_with_cache(demand: Demand, params: VoltageParams) -> bool:
    """Whether one device generates all tokens but the first."""
    return demand.generates and params.decode != "recompute"


def check_params(model: ModelSpec, params: VoltageParams) -> None:
    """Check that parameters go with each other and with the model; raises `SpecError`."""
    where = "parameters of voltage"
    if params.gather == "causal" and not (model.causal and params.causal_trim):
        raise SpecError(
            f"{where}, gather: causal hands no rows to earlier devices, which need them unless the model is "
            f"causal and causal_trim is on ({model.name}, {params.causal_trim}): choose direct or ring."
        )
    if params.repartition and params.gather != "direct":
        raise SpecError(
            f"{where}, repartition: new bounds travel with the shards that one device sends to all others, "
            f"and gather is {params.gather}: choose direct."
        )
    if params.decode_owner and params.decode == "recompute":
        raise SpecError(
            f"{where}, decode_owner is {params.decode_owner}, but with decode recompute all devices "
            f"generate: leave it empty."
        )


def _works(
    model: ModelSpec, params: VoltageParams, shards: Sequence[PositionShard], final: Sequence[PositionShard]
) -> list[ComputedSlice]:
    """The work of every device. If one row of the last layer is needed, its owner computes that layer."""
    works = []
    for layer in range(model.num_layers):
        chosen = final if layer == model.num_layers - 1 else shards
        alone = chosen is not shards and chosen != shards
        pieces = [
            (shard.device, piece if alone else _rows_of(piece, shard))
            for shard in chosen
            if shard.size
            for piece in layer_slices(layer)
        ]
        phase: Literal["both", "prefill"] = "both" if params.decode == "recompute" else "prefill"
        works += [ComputedSlice(device=device, phase=phase, slice=piece) for device, piece in pieces]
    return works


def _rows_of(piece: Slice, shard: PositionShard) -> Slice:
    return piece.model_copy(update={"axis": "positions", "start": shard.start, "stop": shard.stop})


def _ops(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, layout: PositionsLayout
) -> dict[int, list[SizedOp]]:
    """Each device's largest operations, for the memory check."""
    owner, ops = layout.owner, {rank: list[SizedOp]() for rank in cluster.workers}
    ops.setdefault(cluster.source_rank, []).extend(end_ops(model, demand))
    again = demand.generates and owner is None
    for rows in range(demand.rows, demand.cached_rows + 1) if again else [demand.rows]:
        shards, x = shards_for(model, layout, rows), hidden(model, demand.batch, rows)
        for shard in {*shards, *last_layer(model, layout, shards)}:
            ops[shard.device].append(SizedOp(shard.op(0, "plan" if shard.device == owner else None), (x,)))
    if owner is not None:
        ops[owner] += block_ops(model, demand)[1:]
    return ops
