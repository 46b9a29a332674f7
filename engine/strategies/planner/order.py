"""The order of the workers in which a search takes them: the cluster's own, not that of its list. Pure.

So a permutation of the same devices and links is planned in the same way.
"""

from __future__ import annotations

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.ops.tensors import payload_bytes
from engine.strategies.shared.demand import Demand, hidden
from engine.strategies.shared.messages import message_s
from engine.strategies.shared.shares import layer_s


def nearest_first(cluster: ClusterSpec, model: ModelSpec, demand: Demand) -> tuple[int, ...]:
    """Workers (ranks) from the source on, each the one that a request's rows reach soonest from the one
    before; of equally near ones the fastest, then the first by name.
    """
    prompt, token = (payload_bytes(hidden(model, demand.batch, rows)) for rows in (demand.rows, 1))
    further, devices = max(0, demand.new_tokens - 1), cluster.devices
    speed_s = {rank: layer_s(devices[rank], model, demand) for rank in cluster.workers}
    at, order, left = cluster.source_rank, list[int](), set(cluster.workers)

    def distance(rank: int) -> tuple[float, float, str]:
        hop_s = message_s(cluster, at, rank, prompt) + further * message_s(cluster, at, rank, token)
        return hop_s, speed_s[rank], devices[rank].name

    while left:
        at = min(left, key=distance)
        order.append(at)
        left.remove(at)
    return tuple(order)
