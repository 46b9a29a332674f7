"""Plan LIME: the ring, the placement of layers, the online plans, and who stores KV rows for whom. Pure.

Sun et al., "LIME" (arXiv 2512.21835), sections IV-C (offline) and IV-D (online).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Literal

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Placement, Plan
from engine.domain.units import human
from engine.ops.sizes import kv_bytes_per_row, weight_bytes
from engine.strategies.lime.allocation import Ring
from engine.strategies.lime.blocks import OnlinePlan, online_plans, spare_bytes
from engine.strategies.lime.by_hand import given
from engine.strategies.lime.layout import SegmentsLayout
from engine.strategies.lime.params import LimeParams
from engine.strategies.lime.placement import RingPlacement, best_placement
from engine.strategies.lime.ring import Rings, token_bytes
from engine.strategies.lime.search import Choice, fastest, request_s
from engine.strategies.lime.slots import piece_at
from engine.strategies.lime.transfer import Transfer, pairs_of
from engine.strategies.planner.order import nearest_first
from engine.strategies.planner.pipelines import batches
from engine.strategies.shared.demand import Demand, block_ops, working_bytes
from engine.strategies.shared.ends import layer_slices
from engine.strategies.shared.pipeline import ends_placement
from engine.strategies.shared.shares import layer_s
from engine.strategies.shared.stages import Stage, free_bytes

SMALLEST_CHUNK = 8
"""The fewest tokens of a part of a prompt: smaller ones save little memory, and every part takes a turn of
its own on every device.
"""


def plan_of(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    params: LimeParams,
    pipeline: Sequence[Stage] = (),
) -> Plan[SegmentsLayout]:
    """LIME's plan. `pipeline` is a plain pipeline that fits: the plan is not slower than it.

    With planner=best as many requests of a burst pass together as let all of them end first. Raises
    `PlanError` if not even one layer per slot fits.
    """
    sizes = batches(demand.sequences) if params.planner == "best" else [1]
    plans: list[tuple[float, Plan[SegmentsLayout]]] = []
    refused: PlanError | None = None
    for size in sizes:
        try:
            plans.append(_in_batches(name, cluster, model, demand._replace(batch=size), params, pipeline))
        except PlanError as error:
            refused = refused or error
    if refused is not None and not plans:
        raise refused
    return min(plans, key=lambda one: one[0])[1]


def _in_batches(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    params: LimeParams,
    pipeline: Sequence[Stage],
) -> tuple[float, Plan[SegmentsLayout]]:
    """The plan for one size of batches, and the seconds of a round of requests with it.

    A long prompt passes in parts if its working set would take the memory of a block that is streamed then,
    or of the whole plan; with planner=best wherever that is faster, as with one layer more on a fast device.
    Raises `PlanError`.
    """
    plans: list[tuple[float, Plan[SegmentsLayout]]] = []
    refused: list[PlanError] = []
    attempts = [demand._replace(chunk_rows=rows) for rows in _chunks(model, demand, params)]
    for number, attempt in enumerate(attempts):
        try:
            plans.append(_plan_for(name, cluster, model, attempt, params, pipeline))
        except PlanError as error:
            refused.append(error)
            continue
        further = attempts[number + 1 :]
        saved = further and _pass_bytes(model, attempt) - _pass_bytes(model, further[0])
        if saved and params.planner == "best":
            continue
        streams = any(plans[-1][1].layout.slots.values())
        if not saved or not streams or saved < min(weight_bytes(model, piece) for piece in layer_slices(0)):
            break
    if not plans:
        raise refused[-1]
    return min(plans, key=lambda one: one[0])


def _chunks(model: ModelSpec, demand: Demand, params: LimeParams) -> tuple[int, ...]:
    """Tokens of a prompt to try at a time: 0 (all), half of them, a quarter, and so on."""
    if not demand.generates or model.vision:
        return (0,)
    if params.plan is not None and params.plan.prefill_chunk is not None:
        return (params.plan.prefill_chunk,)
    if params.prefill_chunk:
        return (min(params.prefill_chunk, demand.rows),)
    sizes = [0]
    rows = demand.rows
    while rows > SMALLEST_CHUNK:
        rows = ceil(rows / 2)
        sizes.append(rows)
    return tuple(sizes)


def _pass_bytes(model: ModelSpec, demand: Demand) -> int:
    return working_bytes(model, block_ops(model, demand))


def _plan_for(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    params: LimeParams,
    pipeline: Sequence[Stage],
) -> tuple[float, Plan[SegmentsLayout]]:
    """The plan for one size of prompt parts, and the seconds of a round of requests with it.

    KV memory is kept free for sequences of the length that is assumed, or of the true one if no plan for the
    assumed one can be extended to it. Raises `PlanError` if the memory does not suffice.
    """
    ends = ends_placement(name, cluster, model)
    rooms = free_bytes(cluster, model, demand.longest, ends)
    order = nearest_first(cluster, model, demand) if params.planner == "best" else tuple(rooms)
    free = {rank: rooms[rank] - params.reserve_frac * cluster.devices[rank].usable_bytes for rank in order}
    refused: PlanError | None = None
    for num_tokens in dict.fromkeys((demand.cached_rows, demand.true.cached_rows)):
        rings = Rings(cluster, model, demand, free, num_tokens)
        try:
            choice = _choice(cluster, model, demand, params, rings, pipeline)
        except PlanError as error:  # of a plan made by hand
            refused = error
            continue
        if choice is None:
            continue
        layout = _layout(cluster, model, demand, params, choice)
        if params.online_planner == "off" or _lasts(layout, demand):
            return request_s(rings, choice, demand.num_batches), _plan(ends, layout)
    if refused is not None:
        raise refused
    kv_bytes = demand.cached_rows * token_bytes(model, demand)
    raise _too_small(name, cluster, model, free, kv_bytes, params)


def _lasts(layout: SegmentsLayout, demand: Demand) -> bool:
    """Whether every device has an online plan with which the KV caches fit up to the last token."""
    last = demand.sequences * demand.true.cached_rows
    return all(plans[-1].max_tokens >= last for plans in layout.online.values())


def _choice(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    params: LimeParams,
    rings: Rings,
    pipeline: Sequence[Stage],
) -> Choice | None:
    if params.plan is not None:
        return given(rings, cluster, params.plan, params.fine_grained, demand.num_batches)
    if params.mode == "joint":
        return fastest(
            rings,
            params.num_segments,
            params.fine_grained,
            demand.num_batches,
            pipeline,
            params.planner == "best",
        )
    for ranks in _rings(cluster, model, demand, rings):
        ring = rings.of(ranks)
        placement = best_placement(
            ring, params.mode, params.num_segments, params.fine_grained, demand.num_batches
        )
        if placement is not None:
            return Choice(ranks, ring, placement)
    return None


def _layout(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    params: LimeParams,
    choice: Choice,
) -> SegmentsLayout:
    """The layout that devices run and the live view draws."""
    ranks, ring, placement = choice
    segments = tuple(
        tuple((rank, start, stop) for rank, (start, stop) in zip(ranks, segment, strict=True))
        for segment in placement.stages
    )
    online = [_online(ring, placement, device, model, demand, params) for device in range(ring.size)]
    streamed = dict(zip(ranks, placement.blocks, strict=True))
    return SegmentsLayout(
        mode=params.mode,
        segments=segments,
        slots={rank: len({block.position for block in blocks}) for rank, blocks in streamed.items()},
        streamed=streamed,
        online=dict(zip(ranks, online, strict=True)),
        transfers=_transfers(ring, placement, model, demand, ranks, online, params),
        fluctuation_rows=params.fluctuation_rows,
        planned_step_s=placement.step_s,
        chunk_rows=demand.chunk_rows,
        micro_batch=demand.batch,
        left_out=tuple(cluster.devices[rank].name for rank in cluster.workers if rank not in ranks),
    )


def _plan(ends: Placement, layout: SegmentsLayout) -> Plan[SegmentsLayout]:
    """Holdings and work of all stages; of the streamed blocks, the first segment's are there at the start."""
    holdings, work = list(ends.holdings), list(ends.work)
    for rank in layout.ranks:
        for number, bounds in enumerate(layout.stages_of(rank)):
            streamed = {piece_at(bounds, block) for block in layout.streamed[rank]} if number else set()
            for piece in (piece for layer in range(*bounds) for piece in layer_slices(layer)):
                home: Literal["resident", "offloaded"] = "offloaded" if piece in streamed else "resident"
                holdings.append(HeldSlice(device=rank, slice=piece, home=home))
                work.append(ComputedSlice(device=rank, slice=piece))
    return Plan(strategy=ends.strategy, holdings=tuple(holdings), work=tuple(work), layout=layout)


def _rings(cluster: ClusterSpec, model: ModelSpec, demand: Demand, rings: Rings) -> Iterator[tuple[int, ...]]:
    """Rings worth trying, in this order: all devices with room for a layer, the fastest where there are fewer
    layers than devices; then the largest devices, few enough for two segments with a layer for each.
    """
    free, need_bytes = rings.free_bytes, _layer_bytes(model) + rings.kv_bytes
    able = [rank for rank in free if free[rank] >= need_bytes]
    source = cluster.source_rank

    def speed(rank: int) -> tuple[bool, float, int]:
        return rank != source, layer_s(cluster.devices[rank], model, demand), rank

    def size(rank: int) -> tuple[bool, float, int]:
        return rank != source, -free[rank], rank

    first = sorted(able, key=speed)[: model.num_layers]
    if able:
        yield tuple(rank for rank in able if rank in first)
    for num in range(min(len(first) - 1, model.num_layers // 2), 0, -1):
        largest = sorted(able, key=size)[:num]
        yield tuple(rank for rank in able if rank in largest)


def _layer_bytes(model: ModelSpec) -> int:
    return sum(weight_bytes(model, piece) for piece in layer_slices(0))


def _too_small(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    free: dict[int, float],
    kv_bytes: int,
    params: LimeParams,
) -> PlanError:
    have = ", ".join(
        f"{cluster.devices[rank].name} has {human(max(0.0, size), 'B')}" for rank, size in free.items()
    )
    how = (
        "without streaming" if params.num_segments == 1 else "even with streamed layers sharing their memory"
    )
    reserve = ", or lower reserve_frac" if params.reserve_frac else ""
    return PlanError(
        f"{name}: {model.name} needs {model.num_layers} layers of {human(_layer_bytes(model), 'B')} with "
        f"{human(kv_bytes, 'B')} of KV cache each, which do not fit {how}: {have} for layers: add devices or "
        f"memory, or shorten prompt and answer{reserve}."
    )


def _online(
    ring: Ring, placement: RingPlacement, device: int, model: ModelSpec, demand: Demand, params: LimeParams
) -> tuple[OnlinePlan, ...]:
    """How `device` makes room as its KV caches grow, counted in tokens of all sequences."""
    chosen, blocks = placement.chosen, placement.blocks[device]
    smallest = min(stop - start for start, stop in (segment[device] for segment in placement.stages))
    streamed = [sum(block.part == part for block in blocks) for part in ("attention", "ffn")]
    adapts = params.online_planner != "off"
    room = OnlinePlan(
        demand.sequences * model.max_positions, *(adapts * (smallest - num) for num in streamed)
    )
    frees = [(chosen.num_segments - 1) * weight_bytes(model, piece) for piece in layer_slices(0)]
    row_bytes = kv_bytes_per_row(model, model.num_kv_heads) if demand.generates else 0
    return online_plans(
        _kv_room(ring, placement, device),
        chosen.layers[device] * row_bytes,
        room,
        (frees[0], frees[1]),
        params.lookahead_tokens,
        params.online_planner == "layers",
    )


def _kv_room(ring: Ring, placement: RingPlacement, device: int) -> float:
    """Bytes that `device` has left for KV caches."""
    assumed = placement.chosen.layers[device] * ring.kv_bytes
    return spare_bytes(ring, placement.chosen, device, placement.streams[device]) + assumed


def _transfers(
    ring: Ring,
    placement: RingPlacement,
    model: ModelSpec,
    demand: Demand,
    ranks: Sequence[int],
    online: Sequence[Sequence[OnlinePlan]],
    params: LimeParams,
) -> tuple[Transfer, ...]:
    """Choose which device stores rows for which, for the whole run. None if everything is resident: then no
    device waits for its disk.
    """
    chosen = placement.chosen
    if not (params.kv_transfer and demand.generates and chosen.num_segments > 1):
        return ()
    row_bytes = kv_bytes_per_row(model, model.num_kv_heads)
    largest = [
        max(stop - start for start, stop in (segment[device] for segment in placement.stages))
        for device in range(ring.size)
    ]
    return tuple(
        Transfer(
            source=ranks[source],
            target=ranks[target],
            segment_bytes=largest[source] * row_bytes,
            target_bytes=chosen.layers[target] * row_bytes,
            free_bytes=_kv_room(ring, placement, target),
            max_rows=working_bytes(model, block_ops(model, demand)) // (2 * demand.batch * row_bytes),
        )
        for source, target in pairs_of([plans[0].max_tokens for plans in online])
    )
