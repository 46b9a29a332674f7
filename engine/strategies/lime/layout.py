"""LIME's layout: the stages of every segment, what is streamed, and who stores KV rows for whom."""

from __future__ import annotations

from typing import Literal

from engine.domain.plan import Layout
from engine.domain.values import Count, NonNegative
from engine.strategies.lime.allocation import Mode
from engine.strategies.lime.blocks import OnlinePlan
from engine.strategies.lime.cost import StreamedBlock
from engine.strategies.lime.transfer import Transfer


class SegmentsLayout(Layout):
    """The stages of LIME's segments, and what goes through slots.

    `segments[segment][device]` is [rank, start, stop]: layers [start, stop) of one stage.

    By rank: `streamed` has the blocks that go through the slots from the start, `slots` the number of their
    layers, `online` the plans that make room as KV caches grow. `left_out` names workers without layers.
    A prompt passes in parts of `chunk_rows` tokens; 0: at once. `micro_batch` requests of a burst pass
    together.
    """

    kind: Literal["segments"] = "segments"
    mode: Mode
    segments: tuple[tuple[tuple[Count, Count, Count], ...], ...]
    slots: dict[int, Count]
    streamed: dict[int, tuple[StreamedBlock, ...]]
    online: dict[int, tuple[OnlinePlan, ...]]
    transfers: tuple[Transfer, ...]
    fluctuation_rows: Count
    planned_step_s: NonNegative
    left_out: tuple[str, ...]
    chunk_rows: Count = 0
    micro_batch: Count = 1

    @property
    def ranks(self) -> tuple[int, ...]:
        """The devices in the order of the ring."""
        return tuple(rank for rank, _, _ in self.segments[0])

    @property
    def num_segments(self) -> int:
        return len(self.segments)

    def stages_of(self, rank: int) -> tuple[tuple[int, int], ...]:
        """The layers [start, stop) of `rank` in each segment."""
        place = self.ranks.index(rank)
        return tuple((start, stop) for _, start, stop in (segment[place] for segment in self.segments))

    def num_layers(self, rank: int) -> int:
        return sum(stop - start for start, stop in self.stages_of(rank))
