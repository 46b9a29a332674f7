"""Predict the time of a forward pass of Voltage. Pure.

Hu, Li, "When the Edge Meets Transformers: Distributed Inference with Transformer Models" (ICDCS 2024),
sections IV and V: every device computes its rows of a layer, then all devices exchange them; the source sends
the input to all devices over its link, and the last layer's rows return over it.

The paper adds the slowest device's compute time and the longest exchange. Here every device has a clock of
its own, because a device may begin its next layer before others have theirs: with a causal gather the first
one waits for nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.ops.tensors import payload_bytes
from engine.program.frames import framed_bytes
from engine.strategies.planner.exchange import Exchange, Flags, Floats
from engine.strategies.shared.demand import Demand, SizedOp, hidden
from engine.strategies.shared.shares import op_s
from engine.strategies.voltage.layout import GatherChoice
from engine.strategies.voltage.positions import PositionShard

CAUSAL_DEVICES = 8
"""The most devices for which every layer of a causal gather is calculated, because early devices run ahead;
else the last of `FIRST_LAYERS` repeats.
"""
FIRST_LAYERS = 3


class PassTime:
    """The time of forward passes on the workers `devices`, with one way of gathering. `owner` is the rank
    that fills a KV cache, even without rows.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        batch: int,
        devices: Sequence[int],
        gather: GatherChoice,
        owner: int | None = None,
    ):
        self.cluster, self.model, self.batch = cluster, model, batch
        self.gather, self.owner = gather, owner
        self.devices = tuple(devices)
        self.source = cluster.source_rank
        outside = () if self.source in self.devices else (self.source,)
        self.everyone = (*self.devices, *outside)
        self.all = Exchange(cluster, self.everyone)
        self.ring = Exchange(cluster, self.devices) if gather == "ring" else None
        self._known_s: dict[tuple[PositionShard, int], float] = {}

    def pass_s(self, shards: Sequence[PositionShard], final: Sequence[PositionShard]) -> float:
        """Seconds from the embedded prompt at the source to the last layer's rows there. `final` are the
        shards of that layer.
        """
        rows, sizes = shards[-1].stop, sizes_of(shards)
        layer_s = self.shard_times_s(shards, rows)
        ready_s, free_s = self._input_s(rows)
        layers = self.model.num_layers - 1
        runs_ahead = self.gather == "causal" and len(self.devices) <= CAUSAL_DEVICES
        exact = layers if runs_ahead else min(layers, FIRST_LAYERS)
        before_s = ready_s
        for _ in range(exact):
            before_s = ready_s
            ready_s, free_s = self.gathered_s(ready_s + layer_s, sizes, free_s)
        more_s = (layers - exact) * (ready_s - before_s)
        return self._output_s(
            ready_s + more_s + self.shard_times_s(final, rows), sizes_of(final), free_s + more_s.max()
        )

    def shard_times_s(self, shards: Sequence[PositionShard], rows: int) -> Floats:
        """Seconds of each device's shard of a layer over `rows` rows."""
        return np.array(
            [self._shard_s(one, rows) if one.size or one.device == self.owner else 0.0 for one in shards]
        )

    def _shard_s(self, shard: PositionShard, rows: int) -> float:
        if (shard, rows) not in self._known_s:
            x = hidden(self.model, self.batch, rows)
            op = shard.op(0, "plan" if shard.device == self.owner else None)
            device = self.cluster.devices[shard.device]
            self._known_s[shard, rows] = op_s(device, self.model, SizedOp(op, (x,)))
        return self._known_s[shard, rows]

    def gathered_s(self, computed_s: Floats, sizes: Floats, free_s: Floats) -> tuple[Floats, Floats]:
        """When each device has the rows that it needs for the next layer, and when each link is free."""
        if len(sizes) == 1:
            return computed_s, free_s
        if self.ring is not None:
            return self.ring.ring_s(computed_s, self.bytes_of(sizes)), free_s
        return self._exchanged_s(computed_s, sizes, self._gathers(sizes), free_s)

    def sending_s(self, sizes: Floats) -> Floats:
        """Seconds for which each device's rows occupy the slowest link that they leave over."""
        message_bytes = self._padded(self.bytes_of(sizes))
        most_s: Floats = self.all.loads_s(message_bytes, self._gathers(sizes)).max(1)[: len(sizes)]
        return most_s

    def bytes_of(self, sizes: Floats) -> Floats:
        """Bytes of a message with so many rows."""
        row_bytes = payload_bytes(hidden(self.model, self.batch, 1))
        return np.where(sizes > 0, framed_bytes(sizes * row_bytes), 0.0)

    def _gathers(self, sizes: Floats) -> Flags:
        """Flags that say which device sends its rows to which after a layer."""
        sent, count = np.zeros((len(self.everyone),) * 2, dtype=bool), len(sizes)
        sent[:count, :count] = ~np.eye(count, dtype=bool)
        if self.gather == "causal":
            sent = np.triu(sent)
            sent[:, :count] &= sizes > 0
        return sent

    def _exchanged_s(
        self, computed_s: Floats, sizes: Floats, sent: Flags, free_s: Floats
    ) -> tuple[Floats, Floats]:
        message_bytes = self._padded(self.bytes_of(sizes))
        arrived_s, free_s = self.all.arrivals_s(self._padded(computed_s), message_bytes, sent, free_s)
        return np.maximum(computed_s, arrived_s[: len(computed_s)]), free_s

    def _padded(self, values: Floats) -> Floats:
        """`values` with a zero for a source that computes nothing."""
        return np.append(values, np.zeros(len(self.everyone) - len(values)))

    def _input_s(self, rows: int) -> tuple[Floats, Floats]:
        """When each device has the whole input, and when each link is free."""
        count, source = len(self.everyone), self.everyone.index(self.source)
        sent, sizes = np.zeros((count, count), dtype=bool), np.zeros(count)
        sent[source, : len(self.devices)] = True
        sent[source, source] = False
        sizes[source] = rows
        start_s, free_s = np.zeros(count), np.zeros(len(self.all.rate))
        arrived_s, free_s = self.all.arrivals_s(start_s, self.bytes_of(sizes), sent, free_s)
        return np.maximum(arrived_s, 0.0)[: len(self.devices)], free_s

    def _output_s(self, computed_s: Floats, sizes: Floats, free_s: Floats) -> float:
        """When the source has all rows."""
        source = self.everyone.index(self.source)
        sent = np.zeros((len(self.everyone),) * 2, dtype=bool)
        sent[:, source] = True
        sent[source, source] = False
        message_bytes = self._padded(self.bytes_of(sizes))
        arrived_s, _ = self.all.arrivals_s(self._padded(computed_s), message_bytes, sent, free_s)
        own_s = computed_s[source] if source < len(computed_s) else 0.0
        return float(max(own_s, arrived_s[source]))


def forward_s(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    shards: Sequence[PositionShard],
    final: Sequence[PositionShard],
    gather: GatherChoice = "direct",
    owner: int | None = None,
) -> float:
    """Seconds from the embedded prompt at the source to the last layer's rows there; `final` are the shards
    of that layer.
    """
    devices = [shard.device for shard in shards]
    return PassTime(cluster, model, demand.batch, devices, gather, owner).pass_s(shards, final)


def sizes_of(shards: Sequence[PositionShard]) -> Floats:
    """The rows of each shard."""
    return np.array([float(shard.size) for shard in shards])
