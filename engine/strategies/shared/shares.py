"""Divide whole units (layers, heads, columns) among devices in proportion to weights, and estimate how long
operations take on a device. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.ops.core import Block
from engine.ops.cost import op_time_s
from engine.ops.operation import cost_of
from engine.strategies.shared.demand import Demand, SizedOp, hidden, in_all_layers


def largest_remainder(total: int, weights: Sequence[float]) -> tuple[int, ...]:
    """Divide `total` units in proportion to `weights`, of which one at least is positive. Each gets the floor
    of its quota; the remaining units go to the largest remainders, ties to the lowest index.
    """
    whole = sum(weights)
    quotas = [total * weight / whole for weight in weights]
    shares = [int(quota) for quota in quotas]
    by_remainder = sorted(range(len(weights)), key=lambda i: (shares[i] - quotas[i], i))
    for index in by_remainder[: total - sum(shares)]:
        shares[index] += 1
    return tuple(shares)


def head_shares(model: ModelSpec, weights: Sequence[float]) -> tuple[int, ...]:
    """Query heads per device, in proportion to `weights`: whole KV groups if every device can have one,
    otherwise single heads.

    If several devices have heads of one group, each of them has a copy of the group's KV head.
    """
    if len(weights) > model.num_kv_heads:
        return largest_remainder(model.num_heads, weights)
    return tuple(model.group_size * groups for groups in largest_remainder(model.num_kv_heads, weights))


def bounds_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """Half-open bounds of consecutive pieces: (2, 0, 3) → (0, 2, 2, 5)."""
    return tuple(accumulate(sizes, initial=0))


def op_s(device: DeviceSpec, model: ModelSpec, one: SizedOp) -> float:
    """Seconds of an operation on `device`, for planning: the mean over the layers of `model`, which differ
    where only some have a sliding window.

    A plan must not depend on the host that plans. So a device whose compute model is this host's measured
    times is planned with the roofline model.
    """
    measured = device.compute_model == "measured"
    device = device.for_family(model.family)
    total_s = 0.0
    for alike, share in in_all_layers(model, one):
        cost = cost_of(alike.op, model, alike.inputs, alike.cached)
        pass_time_s = op_time_s(device, cost.kernels, override="roofline" if measured else None)
        total_s += share * pass_time_s / cost.speed
    return total_s


def prefill_layer_s(device: DeviceSpec, model: ModelSpec, demand: Demand) -> float:
    """Seconds of one whole layer over the prompt."""
    return op_s(device, model, SizedOp(Block(0, None), (hidden(model, demand.batch, demand.rows),)))


def layer_s(device: DeviceSpec, model: ModelSpec, demand: Demand) -> float:
    """Seconds of one whole layer per batch: the prefill and all decode steps."""
    total_s = prefill_layer_s(device, model, demand)
    if demand.new_tokens > 1:
        token = hidden(model, demand.batch, 1)
        middle = (demand.rows + demand.cached_rows) // 2
        total_s += (demand.new_tokens - 1) * op_s(device, model, SizedOp(Block(0, "plan"), (token,), middle))
    return total_s


def named_worker(cluster: ClusterSpec, name: str, where: str) -> int | None:
    """Rank of the worker called `name`, None for an empty name; raises `SpecError` for any other device."""
    if not name:
        return None
    rank = cluster.rank(name)
    if rank not in cluster.workers:
        raise SpecError(f"{where}: {name} is a terminal or has failed: name another worker.")
    return rank


def fastest(cluster: ClusterSpec, ranks: Sequence[int], model: ModelSpec, demand: Demand) -> int:
    """The rank among `ranks` that computes a layer in the shortest time; ties to the lowest rank."""
    return min(ranks, key=lambda rank: (layer_s(cluster.devices[rank], model, demand), rank))
