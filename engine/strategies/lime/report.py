"""What LIME did in a run: stages and slots, how far loading was covered, online plans, parked rows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import MethodReport, PlanAt
from engine.domain.trace import Mark, Span
from engine.domain.units import human_s
from engine.domain.values import Count, NonNegative, Value
from engine.strategies.lime.allocation import Mode
from engine.strategies.lime.layout import SegmentsLayout

LayerIds = tuple[Count, ...]


class StageLayers(Value):
    """The layers of one stage at the start: completely in memory, streamed, or one block of them streamed."""

    resident: LayerIds
    streamed: LayerIds
    attention_streamed: LayerIds
    ffn_streamed: LayerIds


class ThresholdReached(Value):
    """A threshold of the KV caches' size: from `time_s` on, with `tokens` tokens in them, every stage
    streamed so many more blocks than at the start; that lasts up to `max_tokens` tokens.
    """

    time_s: NonNegative
    tokens: Count
    max_tokens: Count
    attention: Count
    ffn: Count


class RowsParked(Value):
    """Rows of KV caches that were given to another device: from `time_s` on, so many rows of each segment's
    KV caches waited on `target`.
    """

    time_s: NonNegative
    target: str
    rows: Count


class RingDevice(Value):
    """One device of the ring, stages in the order of segments.

    The loader was busy and idle for so long; for `uncovered_s` the device waited for it with nothing
    else to do.
    """

    name: str
    num_layers: Count
    slots: Count
    stages: tuple[StageLayers, ...]
    loaded_bytes: Count
    loader_busy_s: NonNegative
    loader_idle_s: NonNegative
    uncovered_s: NonNegative
    thresholds: tuple[ThresholdReached, ...]
    rows_parked: tuple[RowsParked, ...]

    def line(self) -> str:
        """One sentence per kind of event that there was."""
        whole_s = self.loader_busy_s + self.loader_idle_s
        layers = "1 layer" if self.num_layers == 1 else f"{self.num_layers} layers"
        slots = "1 slot" if self.slots == 1 else f"{self.slots or 'no'} slots"
        parts = [f"{self.name}: {layers}, {slots}"]
        if self.loaded_bytes:
            busy = self.loader_busy_s / whole_s if whole_s else 0.0
            parts.append(f"disk busy {busy:.0%} of the run, {human_s(self.uncovered_s)} of that uncovered")
        if self.thresholds:
            reached = ", ".join(str(one.tokens) for one in self.thresholds)
            parts.append(f"streamed more from {reached} tokens on")
        if self.rows_parked:
            most = max(self.rows_parked, key=lambda one: one.rows)
            parts.append(f"up to {most.rows} rows parked on {most.target}")
        return "; ".join(parts) + "."


class LimeReport(MethodReport):
    """What LIME did in a run. `devices` follow the ring of the last plan; loading, thresholds and parked rows
    are those of all plans.

    `planned_step_s` is the planned time per token of all requests in progress.
    """

    kind: Literal["lime"] = "lime"
    mode: Mode
    num_segments: Count
    planned_step_s: NonNegative
    left_out: tuple[str, ...]
    devices: tuple[RingDevice, ...]

    def lines(self) -> tuple[str, ...]:
        segments = "1 segment" if self.num_segments == 1 else f"{self.num_segments} segments"
        head = f"LIME ({self.mode}): {segments}, {human_s(self.planned_step_s)} planned per token"
        if self.left_out:
            head += f"; without layers: {', '.join(self.left_out)}"
        return f"{head}.", *(one.line() for one in self.devices)


def lime_report(cluster: ClusterSpec, plans: Sequence[PlanAt], trace: Sequence[Span | Mark]) -> LimeReport:
    layout = plans[-1].plan.layout
    assert isinstance(layout, SegmentsLayout), "LIME's plans have LIME's layout"
    spans = [item for item in trace if isinstance(item, Span)]
    loads = [span for span in spans if span.kind == "load"]
    marks = [item for item in trace if isinstance(item, Mark)]
    end_s = max((span.end_s for span in spans), default=0.0)
    return LimeReport(
        mode=layout.mode,
        num_segments=layout.num_segments,
        planned_step_s=layout.planned_step_s,
        left_out=layout.left_out,
        devices=tuple(_device(cluster, layout, rank, loads, marks, end_s) for rank in layout.ranks),
    )


def _device(
    cluster: ClusterSpec,
    layout: SegmentsLayout,
    rank: int,
    all_loads: Sequence[Span],
    marks: Sequence[Mark],
    end_s: float,
) -> RingDevice:
    name = cluster.devices[rank].name
    loads = [span for span in all_loads if span.device == name]
    mine = [mark for mark in marks if mark.device == name]
    busy_s = covered_s([(span.start_s, span.end_s) for span in loads])
    waits = [mark.facts["uncovered_s"] for mark in mine if mark.name == "disk_waits"]
    return RingDevice(
        name=name,
        num_layers=layout.num_layers(rank),
        slots=layout.slots[rank],
        stages=tuple(_stage(layout, rank, bounds) for bounds in layout.stages_of(rank)),
        loaded_bytes=sum(span.bytes for span in loads),
        loader_busy_s=busy_s,
        loader_idle_s=max(0.0, end_s - busy_s),
        uncovered_s=sum(waits),
        thresholds=tuple(
            ThresholdReached(time_s=mark.time_s, **mark.facts) for mark in mine if mark.name == "threshold"
        ),
        rows_parked=tuple(
            RowsParked(time_s=mark.time_s, target=mark.facts["target"], rows=mark.facts["rows"])
            for mark in mine
            if mark.name == "kv_transfer"
        ),
    )


def _stage(layout: SegmentsLayout, rank: int, bounds: tuple[int, int]) -> StageLayers:
    start, stop = bounds
    parts = {
        part: {start + block.position for block in layout.streamed[rank] if block.part == part}
        for part in ("attention", "ffn")
    }
    attention, ffn = parts["attention"], parts["ffn"]
    return StageLayers(
        resident=tuple(sorted(set(range(start, stop)) - attention - ffn)),
        streamed=tuple(sorted(attention & ffn)),
        attention_streamed=tuple(sorted(attention - ffn)),
        ffn_streamed=tuple(sorted(ffn - attention)),
    )


def covered_s(intervals: Sequence[tuple[float, float]]) -> float:
    """Seconds that are inside at least one of the intervals (start, end)."""
    total_s, reached_s = 0.0, float("-inf")
    for start_s, end_s in sorted(intervals):
        total_s += max(0.0, end_s - max(start_s, reached_s))
        reached_s = max(reached_s, end_s)
    return total_s
