"""Predict the time of a forward pass of Voltage by the paper's cost model. Pure.

Hu, Li, "When the Edge Meets Transformers: Distributed Inference with Transformer Models" (ICDCS 2024),
sections IV and V: a layer takes as long as its slowest device, then all devices exchange their rows. The
input is sent to one device after the other over the source's link; the last layer's rows return over it.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.units import transfer_s
from engine.ops.tensors import payload_bytes
from engine.strategies.shared.demand import Demand, Pass, hidden
from engine.strategies.shared.shares import pass_s
from engine.strategies.voltage.positions import PositionShard


def forward_s(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    shards: Sequence[PositionShard],
    final: Sequence[PositionShard],
) -> float:
    """Seconds from the embedded prompt at the source to the last layer's rows there; `final` are the shards
    of that layer.
    """
    source, x = cluster.source_rank, hidden(model, demand.batch, demand.rows)
    row_bytes = payload_bytes(x) // demand.rows

    def layer_s(pieces: Sequence[PositionShard]) -> float:
        return max(
            pass_s(cluster.devices[piece.device], model, Pass(piece.op(0, None), (x,)))
            for piece in pieces
            if piece.size
        )

    def wire_s(src: int, dst: int, rows: int) -> float:
        if src == dst or not rows:
            return 0.0
        rate = min(cluster.links[hop.link].rate(hop.forward) for hop in cluster.path(src, dst))
        return transfer_s(rows * row_bytes, rate)

    def farthest_s(pairs: Sequence[tuple[int, int]]) -> float:
        """The largest fixed cost of one message (overhead and delay) among these pairs of devices."""
        return max(
            (
                cluster.devices[src].message_overhead_s + cluster.delay_s(src, dst)
                for src, dst in pairs
                if src != dst
            ),
            default=0.0,
        )

    devices = [shard.device for shard in shards]
    input_s = sum(wire_s(source, rank, demand.rows) for rank in devices)
    input_s += farthest_s([(source, rank) for rank in devices])
    out_s = [sum(wire_s(mine.device, rank, mine.size) for rank in devices) for mine in shards]
    in_s = [sum(wire_s(peer.device, rank, peer.size) for peer in shards) for rank in devices]
    gather_s = max(*out_s, *in_s) + farthest_s([(a, b) for a in devices for b in devices])
    output_s = sum(wire_s(shard.device, source, shard.size) for shard in final)
    output_s += farthest_s([(shard.device, source) for shard in final if shard.size])
    return input_s + (model.num_layers - 1) * (layer_s(shards) + gather_s) + layer_s(final) + output_s
