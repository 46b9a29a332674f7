"""Voltage's layout: how the positions are divided, and the parameters that its program needs."""

from __future__ import annotations

from typing import Literal

from engine.domain.plan import Layout
from engine.domain.values import Count, NonNegative
from engine.strategies.voltage.positions import OrderChoice, PositionShard

GatherChoice = Literal["direct", "ring", "causal"]
LastLayerRows = Literal["all", "needed"]
Decode = Literal["kv_single", "recompute"]


class PositionsLayout(Layout):
    """Device `devices[i]` computes the share `ratios[i]` of the positions: of the prompt, `shards[i]`.

    `owner` is the rank that decodes with a KV cache, None if no device does. `room_bytes` has, for each
    device, the bytes that a working set may take after a new partition; it is empty without `repartition`.
    """

    kind: Literal["positions"] = "positions"
    devices: tuple[Count, ...]
    ratios: tuple[NonNegative, ...]
    owner: Count | None
    gather: GatherChoice
    order: OrderChoice
    causal_trim: bool
    last_layer_rows: LastLayerRows
    decode: Decode
    repartition: bool
    shards: tuple[PositionShard, ...] = ()
    room_bytes: tuple[int, ...] = ()
