"""Compute the cost of an attention head on owner and neighbours, and the deadline of a block. Pure.

Yao et al., EdgeFormer, Eqs. 5 to 10. `corrected` counts FLOPs and bytes: c = 4·T·S·E/f locally, and on a
neighbour 3·T·E elements there, c, and T·E elements back. `paper` is Eqs. 6 and 8 as printed: multiply-adds
over FLOP/s, elements over bit/s, no fixed cost. `device` prices the operation as the device's own compute
model does, with the links of `corrected`. T new rows, S rows seen, E head dim; T = S in a prefill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, inf
from types import MappingProxyType
from typing import Literal, NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.ops.heads import Attend, kv_of
from engine.ops.tensors import Meta
from engine.strategies.edgeformer.allocation import Site, slots_s
from engine.strategies.shared.demand import SizedOp
from engine.strategies.shared.shares import op_s

CostModel = Literal["corrected", "paper", "device"]
DeadlineMode = Literal["ratio", "forward_s", "block_s", "none"]


class AttentionRows(NamedTuple):
    """Sizes of one block's attention: `batch` sequences, `new` rows over `seen` rows."""

    batch: int
    new: int
    seen: int


def sites_of(
    cluster: ClusterSpec,
    model: ModelSpec,
    owner: int,
    neighbours: Sequence[int],
    own_room: int,
    lent_rooms: Sequence[int],
    rows: AttentionRows,
    cost_model: CostModel,
    slowdowns: Mapping[int, float] = MappingProxyType({}),
) -> tuple[Site, ...]:
    """The owner first, then `neighbours` (ranks), as `cluster` is now. `lent_rooms` is by rank. Bytes to and
    from the ranks in `slowdowns` take so many times longer than the links' rates say.
    """
    fixed_s, head_s = local_s(cluster, model, owner, rows, cost_model)
    sites = [Site(owner, own_room, fixed_s, head_s)]
    for rank in neighbours:
        fixed_s, head_s = local_s(cluster, model, rank, rows, cost_model)
        trip_s, moved_s = link_s(cluster, model, owner, rank, rows, cost_model)
        moved_s *= slowdowns.get(rank, 1.0)
        sites.append(Site(rank, lent_rooms[rank], fixed_s + trip_s, head_s + moved_s))
    return tuple(sites)


def local_s(
    cluster: ClusterSpec, model: ModelSpec, rank: int, rows: AttentionRows, cost_model: CostModel
) -> tuple[float, float]:
    """Fixed seconds, and seconds per head, of attention on device `rank`."""
    device = cluster.devices[rank]
    products = rows.batch * rows.new * rows.seen * model.head_dim
    if cost_model == "device":
        one_s, two_s = (_attend_s(cluster, model, rank, rows, heads) for heads in (1, 2))
        return one_s - (two_s - one_s), two_s - one_s
    return 0.0, (products if cost_model == "paper" else 4 * products) / device.flop_per_s


def link_s(
    cluster: ClusterSpec, model: ModelSpec, owner: int, rank: int, rows: AttentionRows, cost_model: CostModel
) -> tuple[float, float]:
    """Fixed seconds of a round trip, and seconds per head for Q, K, V there and the context back."""
    there, back = path_bit_per_s(cluster, owner, rank), path_bit_per_s(cluster, rank, owner)
    elements = rows.batch * rows.new * model.head_dim
    if cost_model == "paper":
        return 0.0, 3 * elements / there + elements / back
    bits = 8 * model.element_bytes * elements
    overheads_s = cluster.devices[owner].message_overhead_s + cluster.devices[rank].message_overhead_s
    trip_s = cluster.delay_s(owner, rank) + cluster.delay_s(rank, owner) + overheads_s
    return trip_s, 3 * bits / there + bits / back


def deadline_s(
    mode: DeadlineMode,
    value: float,
    num_layers: int,
    nominal: Sequence[Site],
    heads: int,
    only: Sequence[int] | None = None,
) -> float:
    """T_max of one block. ratio: when the first `value` of the heads could be through under `nominal`
    conditions (where a fixed split has them: `only`), so that a worse network later prunes more; forward_s:
    `value` is for the whole pass; block_s: per block.

    The paper names no unit. A share of the makespan of all heads would leave time for none where every device
    has one: the share is therefore counted in slots, in order of finish time, the nearest whole number of
    them, so that heads of small models can go one by one.
    """
    if mode == "none":
        return inf
    if mode == "ratio":
        number = max(1, floor(value * heads + 0.5))
        slots = slots_s(nominal, max(heads, number), only)
        return slots[min(len(slots), number) - 1] if slots else 0.0
    return value / num_layers if mode == "forward_s" else value


def path_bit_per_s(cluster: ClusterSpec, src: int, dst: int) -> float:
    """Rate of the slowest link from rank `src` to rank `dst`."""
    return min(cluster.links[hop.link].rate(hop.forward) for hop in cluster.path(src, dst))


def _attend_s(cluster: ClusterSpec, model: ModelSpec, rank: int, rows: AttentionRows, heads: int) -> float:
    """Seconds of `heads` heads on device `rank`, as its compute model prices them."""
    numbers = (0,) * heads
    attend = Attend(0, numbers, kv_of(model, numbers))
    queries = Meta((rows.batch, heads, rows.new, model.head_dim), model.dtype)
    keys_values = Meta((rows.batch, 2, rows.seen, model.head_dim), model.dtype)
    return op_s(cluster.devices[rank], model, SizedOp(attend, (queries, keys_values)))
