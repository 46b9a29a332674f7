"""What Voltage did in a run: the positions, work and exchanges of every layer of the first prompt. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import MethodReport, PlanAt
from engine.domain.model import ModelSpec
from engine.domain.trace import Mark, Span
from engine.domain.units import human_s
from engine.domain.values import Count, NonNegative, Value
from engine.ops.positions import Order
from engine.strategies.voltage.layout import GatherChoice, PositionsLayout
from engine.strategies.voltage.partition import last_layer, shards_at


class DevicePositions(Value):
    """One device in one layer: rows [start, stop) from keys [0, keys_stop), FLOPs and seconds of its
    products, and payload bytes that it sent afterwards.
    """

    device: str
    start: Count
    stop: Count
    keys_stop: Count
    score_order: Order
    value_order: Order
    flops: Count
    compute_s: NonNegative
    sent_bytes: Count


class LayerPositions(Value):
    """The rows that each device computed of a layer. `gather_s` is the time from the end of the last device's
    work until all had their rows.
    """

    layer: Count
    devices: tuple[DevicePositions, ...]
    gather_s: NonNegative


class PositionsReport(MethodReport):
    """What Voltage did in a run. `ratio` is the rule of the last plan, `layers` are those of the first prompt
    of the first request.
    """

    kind: Literal["positions"] = "positions"
    num_positions: Count
    gather: GatherChoice
    owner: str | None
    layers: tuple[LayerPositions, ...]
    compute_s: NonNegative
    gather_s: NonNegative
    repartitions: Count

    def lines(self) -> tuple[str, ...]:
        if not self.layers:
            return ()
        shares = ", ".join(
            f"{one.device} {_span(one.start, one.stop - 1)}"
            for one in self.layers[0].devices
            if one.stop > one.start
        )
        owner = f" {self.owner} generates." if self.owner else ""
        again = f" Positions were divided anew {self.repartitions} times." if self.repartitions else ""
        return (
            f"Positions of {self.num_positions}: {shares}; gather {self.gather}.{owner}{again}",
            f"The prompt's layers: {human_s(self.compute_s)} of products on the slowest device of each, and "
            f"{human_s(self.gather_s)} of exchanges after them.",
        )


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first} to {last}"


def positions_report(
    cluster: ClusterSpec, model: ModelSpec, plans: Sequence[PlanAt], trace: Sequence[Span | Mark]
) -> PositionsReport:
    """Folds the prefill under the first plan; a later plan has its own prefill, which is not shown."""
    layout = plans[0].plan.layout
    assert isinstance(layout, PositionsLayout)
    spans = [item for item in trace if isinstance(item, Span)]
    first = min((span.request for span in spans if span.request >= 0), default=0)
    until_s = plans[1].time_s if len(plans) > 1 else float("inf")
    prefill = [span for span in spans if span.request == first and span.token == 0 and span.end_s <= until_s]
    marks = [item for item in trace if isinstance(item, Mark) and item.name == "repartitioned"]
    end_s = max((span.end_s for span in prefill), default=0.0)
    layers = _layers(cluster, model, layout, prefill, [mark for mark in marks if mark.time_s <= end_s])
    owner = layout.owner
    return PositionsReport(
        num_positions=layout.shards[-1].stop if layout.shards else 0,
        gather=layout.gather,
        owner=None if owner is None else cluster.devices[owner].name,
        layers=layers,
        compute_s=sum(max((one.compute_s for one in layer.devices), default=0.0) for layer in layers),
        gather_s=sum(layer.gather_s for layer in layers),
        repartitions=len(marks),
    )


def _layers(
    cluster: ClusterSpec,
    model: ModelSpec,
    layout: PositionsLayout,
    prefill: Sequence[Span],
    marks: Sequence[Mark],
) -> tuple[LayerPositions, ...]:
    by_layer: dict[int, list[Span]] = defaultdict(list)
    for span in prefill:
        by_layer[span.layer].append(span)
    shards, layers = layout.shards, []
    ends = tuple(accumulate((shard.size for shard in shards), initial=0))
    new_ends = {mark.facts["layer"]: tuple(mark.facts["bounds"]) for mark in marks}
    for layer in range(model.num_layers):
        if layer in new_ends:
            ends = new_ends[layer]
            shards = shards_at(model, layout, ends)
        if layer == model.num_layers - 1:
            shards = last_layer(model, layout, shards)
        spans = by_layer[layer]
        computed = [span for span in spans if span.kind == "compute"]
        done_s = max((span.end_s for span in computed), default=0.0)
        received_s = max((span.end_s for span in spans if span.kind == "recv"), default=done_s)
        devices = []
        for shard in shards:
            name = cluster.devices[shard.device].name
            mine = [span for span in computed if span.device == name]
            devices.append(
                DevicePositions(
                    device=name,
                    start=shard.start,
                    stop=shard.stop,
                    keys_stop=shard.keys_stop,
                    score_order=shard.score_order,
                    value_order=shard.value_order,
                    flops=sum(span.flops for span in mine),
                    compute_s=sum(span.end_s - span.start_s for span in mine),
                    sent_bytes=sum(
                        span.payload_bytes for span in spans if span.kind == "send" and span.device == name
                    ),
                )
            )
        layers.append(
            LayerPositions(layer=layer, devices=tuple(devices), gather_s=max(0.0, received_s - done_s))
        )
    return tuple(layers)
