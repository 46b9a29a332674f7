"""Place attention on one device, the host, and experts on all by speed and memory. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Literal

from engine.domain.by_hand import DeviceShare, PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import ComputedSlice, HeldSlice, Layout, Placement, Plan, Slice
from engine.domain.values import Count
from engine.ops.core import Add, Residual
from engine.ops.mixture import Experts, Route, SharedExpert
from engine.ops.sizes import weight_bytes
from engine.ops.tensors import Meta
from engine.strategies.shared.by_hand import check_whole, workers_of
from engine.strategies.shared.demand import (
    Demand,
    SizedOp,
    attention_ops,
    check_memory,
    end_ops,
    hidden,
    needed_bytes,
)
from engine.strategies.shared.ends import end_holdings, end_work
from engine.strategies.shared.messages import message_s
from engine.strategies.shared.shares import bounds_of, largest_remainder, op_s

ExpertsBy = Literal["host", "flops", "memory", "even", "load"]
BISECTIONS = 60
REMEDY = "give it more memory, or add devices that take experts"


class ExpertsLayout(Layout):
    """`host` computes attention, routers and shared experts of all layers. Member i of `group` (ranks) has
    experts [experts[i], experts[i + 1]) of each; a model without experts is on the host alone.
    """

    kind: Literal["experts"] = "experts"
    host: Count
    group: tuple[Count, ...]
    experts: tuple[Count, ...]

    @property
    def asked(self) -> tuple[int, ...]:
        """The members with experts."""
        return tuple(
            rank
            for rank, (start, stop) in zip(self.group, pairwise(self.experts), strict=True)
            if start < stop
        )

    def experts_of(self, rank: int) -> tuple[int, int]:
        me = self.group.index(rank)
        return self.experts[me], self.experts[me + 1]


def placement_of(
    name: str, cluster: ClusterSpec, model: ModelSpec, host: int, group: Sequence[int], bounds: Sequence[int]
) -> Placement:
    """The host's parts of all layers, and everybody's experts."""
    held, work = [*end_holdings(cluster, model)], [*end_work(cluster, model)]
    for layer in range(model.num_layers):
        attention = Slice(layer=layer, part="attention")
        held.append(HeldSlice(device=host, slice=attention))
        work.append(ComputedSlice(device=host, slice=attention))
        for rank, (start, stop) in zip(group, pairwise(bounds), strict=True):
            piece = Slice(layer=layer, part="ffn", axis="experts", start=start, stop=stop, bare=rank != host)
            held.append(HeldSlice(device=rank, slice=piece))
            if start < stop:
                work.append(ComputedSlice(device=rank, slice=piece))
        if host not in group:
            around = Slice(layer=layer, part="ffn", axis="experts")
            held.append(HeldSlice(device=host, slice=around))
    return Placement(strategy=name, holdings=tuple(held), work=tuple(work))


def ops_of(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    host: int,
    group: Sequence[int],
    bounds: Sequence[int],
) -> dict[int, list[SizedOp]]:
    """The largest operations of every device, by rank: any may get all rows."""
    rows, each, size = demand.batch * demand.rows, model.experts_per_token, model.hidden_size
    x = hidden(model, demand.batch, demand.rows)
    routed = Meta((demand.batch, demand.rows, size + model.num_experts), model.dtype)
    ops = {host: [*attention_ops(model, demand, 0, model.num_heads)]}
    ops[host] += [SizedOp(Residual(0, "ffn"), (x, x)), SizedOp(Route(0), (x,)), SizedOp(Add(), (x, x))]
    if model.shared_intermediate_size:
        ops[host].append(SizedOp(SharedExpert(0), (routed,)))
    for rank, (start, stop) in zip(group, pairwise(bounds), strict=True):
        most = min(each, stop - start)
        mine = Meta((1, rows, size + stop - start), model.dtype)
        experts = Experts(0, start, stop, rows * most, min(stop - start, rows * most))
        ops.setdefault(rank, []).append(SizedOp(experts, (mine,)))
    ops.setdefault(cluster.source_rank, []).extend(end_ops(model, demand))
    return ops


def kv_of(model: ModelSpec, demand: Demand, host: int) -> Mapping[int, int]:
    return {host: model.num_layers * demand.kv_bytes(model, model.num_kv_heads)}


def experts_plan(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    hosts: Sequence[int],
    by: ExpertsBy,
    given: PlanByHand | None,
) -> Plan[ExpertsLayout]:
    """The plan with the first of `hosts` under which all experts fit. Raises the `PlanError` of the first
    one if none does.
    """
    refusals = []
    for host in hosts:
        try:
            group, counts = (
                given_counts(name, cluster, model, given)
                if given
                else (cluster.workers, expert_counts(name, cluster, model, demand, host, by))
            )
            bounds = bounds_of(counts)
            placement = placement_of(name, cluster, model, host, group, bounds)
            ops = ops_of(cluster, model, demand, host, group, bounds)
            check_memory(cluster, model, placement, kv_of(model, demand, host), ops, REMEDY)
            return placement.with_layout(ExpertsLayout(host=host, group=tuple(group), experts=bounds))
        except PlanError as error:
            refusals.append(error)
    raise refusals[0]


def given_counts(
    name: str, cluster: ClusterSpec, model: ModelSpec, plan: PlanByHand
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ranks and experts of a plan made by hand. Raises `PlanError`."""
    check_whole(name, model, plan.devices, "experts")
    ranks = workers_of(name, cluster, [share.device for share in plan.devices])
    return ranks, tuple(share.experts for share in plan.devices)


def expert_counts(
    name: str, cluster: ClusterSpec, model: ModelSpec, demand: Demand, host: int, by: ExpertsBy
) -> tuple[int, ...]:
    """Experts per worker. With `host` that one has as many as fit, and the others share the rest by speed.
    With `load` the device that needs longest for its experts' rows, and for their way there and back, needs
    as short as may be, never longer than by speed. Raises `PlanError` for a model without a record of that.
    """
    if by == "load" and not model.expert_load:
        raise PlanError(
            f"{name}: by=load places experts by how often they were chosen, and {model.name} has no record: "
            "give --likely-experts REPORT, the report of a run with this method, or by=flops."
        )
    workers = cluster.workers
    room = rooms(name, cluster, model, demand, host)
    one = Meta((1, 1, model.hidden_size + 1), model.dtype)
    speed = [
        1 / op_s(cluster.devices[rank], model, SizedOp(Experts(0, 0, 1, 1, 1), (one,))) for rank in workers
    ]
    weights = {"even": [1.0] * len(workers), "memory": [float(one) for one in room]}.get(by, speed)
    counts = [0] * len(workers)
    if by == "host":
        at = workers.index(host)
        counts[at] = min(room[at], model.num_experts)
    while left := model.num_experts - sum(counts):
        free = [have - count for have, count in zip(room, counts, strict=True)]
        open_to = [weight if some else 0.0 for weight, some in zip(weights, free, strict=True)]
        if not any(open_to):  # too little memory: the check says who lacks what
            open_to, free = weights if any(weights) else [1.0] * len(workers), [left] * len(workers)
        for at, more in enumerate(largest_remainder(left, open_to)):
            counts[at] += min(more, free[at])
    if by == "load" and sum(room) >= model.num_experts:
        away_s = [way_s(cluster, model, host, rank) for rank in workers]
        rates = [1 / (1 / rate + way) for rate, way in zip(speed, away_s, strict=True)]
        return counts_by_load(model.expert_load, rates, room, tuple(counts))
    return tuple(counts)


def way_s(cluster: ClusterSpec, model: ModelSpec, host: int, rank: int) -> float:
    """The time of a row to another device and back."""
    if rank == host:
        return 0.0
    size = model.hidden_size * model.element_bytes
    return message_s(cluster, host, rank, size) + message_s(cluster, rank, host, size)


def counts_by_load(
    load: Sequence[int], speed: Sequence[float], room: Sequence[int], by_speed: tuple[int, ...]
) -> tuple[int, ...]:
    """How many consecutive experts each device has so that the longest time, load over speed, is the
    shortest; `by_speed` unless that is longer.

    Within a given time every device takes as many as it can, in order: if that does not place all, nothing
    does. So the time is bisected.
    """
    sums = [0, *accumulate(load)]

    def placed(within_s: float) -> tuple[int, ...]:
        counts, at = [], 0
        for rate, most in zip(speed, room, strict=True):
            reached = bisect_right(sums, sums[at] + within_s * rate, at, len(sums)) - 1
            counts.append(min(reached - at, most))
            at += counts[-1]
        return tuple(counts)

    best, best_s = by_speed, longest_s(load, speed, by_speed)
    low_s, high_s = 0.0, best_s
    for _ in range(BISECTIONS):
        middle_s = (low_s + high_s) / 2
        counts = placed(middle_s)
        if sum(counts) < len(load):
            low_s = middle_s
            continue
        high_s = longest_s(load, speed, counts)
        if high_s < best_s:
            best, best_s = counts, high_s
    return best


def longest_s(load: Sequence[int], speed: Sequence[float], counts: Sequence[int]) -> float:
    """The time of the device that needs longest for the rows of its experts."""
    sums = [0, *accumulate(load)]
    return max(
        (sums[stop] - sums[start]) / rate
        for rate, (start, stop) in zip(speed, pairwise(bounds_of(counts)), strict=True)
    )


def rooms(name: str, cluster: ClusterSpec, model: ModelSpec, demand: Demand, host: int) -> list[int]:
    """How many experts of every layer each worker has memory for."""
    each = model.num_layers * weight_bytes(
        model, Slice(layer=0, part="ffn", axis="experts", start=0, stop=1, bare=True)
    )
    nothing = bounds_of([0] * len(cluster.workers))
    placement = placement_of(name, cluster, model, host, cluster.workers, nothing)
    most = bounds_of([model.num_experts])
    found = []
    for rank in cluster.workers:
        ops = ops_of(cluster, model, demand, host, (rank,), most)
        need = needed_bytes(model, placement, rank, kv_of(model, demand, host), ops)
        found.append(int(max(0, (cluster.devices[rank].usable_bytes - need) // each)))
    return found


def of_experts(cluster: ClusterSpec, layout: ExpertsLayout) -> PlanByHand:
    """The layout as a person could have written it."""
    shares = (
        DeviceShare(device=cluster.devices[rank].name, experts=stop - start)
        for rank, (start, stop) in zip(layout.group, pairwise(layout.experts), strict=True)
    )
    return PlanByHand(devices=tuple(shares))
