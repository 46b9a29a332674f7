"""Place all layers on a ring: stages and streamed blocks, with the time per step in the event model. Pure.

Sun et al., "LIME" (arXiv 2512.21835), section IV-C. `best_placement` goes the paper's way: whole streamed
layers first, then blocks that stay. `search.py` chooses both together, and the ring too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from engine.strategies.lime.allocation import (
    LayerAllocation,
    Ring,
    WholeLayers,
    allocate,
    bounds_of_stages,
    fastest_first,
    stages_of_segments,
)
from engine.strategies.lime.blocks import Streams, blocks_of, load_frac, refine, whole_layers
from engine.strategies.lime.cost import StepTimes, StreamedBlock, event_model, steady_step_s
from engine.strategies.shared.shares import largest_remainder
from engine.strategies.shared.stages import fill


class RingPlacement(NamedTuple):
    """An allocation made concrete: [segment][device] → layers [start, stop), streamed blocks per device."""

    chosen: LayerAllocation
    streams: tuple[tuple[Streams, ...], ...]
    stages: tuple[tuple[tuple[int, int], ...], ...]
    step_s: float

    @property
    def blocks(self) -> tuple[tuple[StreamedBlock, ...], ...]:
        return tuple(blocks_of(one) for one in self.streams)


def best_placement(
    ring: Ring, mode: WholeLayers, num_segments: int, fine_grained: bool, num_micro_batches: int
) -> RingPlacement | None:
    """The fastest placement in the event model over all numbers of segments, or with `num_segments` (0: all).

    One segment if every layer fits at once. Ties: fewer bytes from disk, fewer segments, fewer layers on
    the first devices. None if the memory does not suffice.
    """
    lasting = ring.lasting
    if sum(map(lasting.capacity, range(ring.size))) >= ring.num_layers and num_segments < 2:
        found = [placed(ring, one, whole_layers(one), num_micro_batches) for one in _all_resident(lasting)]
    else:
        counts = [num_segments] if num_segments else _segment_counts(ring, mode)
        allocations = [allocate(ring, count, mode) for count in counts]
        residency = refine if fine_grained else lambda _, one: whole_layers(one)
        found = [placed(ring, one, residency(ring, one), num_micro_batches) for one in allocations if one]
    return min(found, key=lambda one: order_of(ring, one), default=None)


def order_of(ring: Ring, placement: RingPlacement) -> tuple[float, float, int, tuple[int, ...]]:
    """The key by which placements are compared, smaller being better: time per step, bytes from disk,
    segments, layers on the first devices.
    """
    segments = placement.chosen.num_segments
    loaded = segments * sum(load_frac(ring, one) for one in placement.streams)
    return round(placement.step_s, 12), loaded, segments, placement.chosen.layers


def _segment_counts(ring: Ring, mode: WholeLayers) -> range:
    """Numbers of segments to try: 2 ≤ #Seg ≤ ceil(L/D); Algorithm 1 also stops where one slot holds all that
    is left.
    """
    most = ceil(ring.num_layers / ring.size)
    if mode != "exact":
        left = ring.num_layers - sum(ring.capacity(device) for device in range(ring.size))
        most = min(most, left + 1)
    return range(2, most + 1)


def _all_resident(ring: Ring) -> list[LayerAllocation]:
    """Plain pipelines: as much as fits on the fastest, or in proportion to speed; no device is left out."""
    most = [ring.capacity(device) for device in range(ring.size)]
    fastest = fastest_first(ring, [1] * ring.size, most)
    speeds = [1 / layer_s for layer_s in ring.step.layer_s]
    shares = [1 + more for more in largest_remainder(ring.num_layers - ring.size, speeds)]
    ways = (fastest, fill(shares, most))
    return [LayerAllocation(1, layers, (0,) * ring.size) for layers in ways if layers is not None]


def placed(
    ring: Ring,
    chosen: LayerAllocation,
    streams: Sequence[Sequence[Streams]],
    num_micro_batches: int,
) -> RingPlacement:
    """`chosen` and what its slots stream as stages, with the time per step in the event model."""
    sizes = stages_of_segments(chosen.layers, chosen.num_segments)
    blocks = [blocks_of(one) for one in streams]
    step_s = steady_step_s(sizes, blocks, _loads_s(ring, streams), ring.step, num_micro_batches)
    return RingPlacement(chosen, tuple(map(tuple, streams)), bounds_of_stages(sizes), step_s)


def event_times(
    ring: Ring, placement: RingPlacement, steps: Sequence[StepTimes], num_micro_batches: int
) -> list[float]:
    """When each of these steps is finished, s."""
    sizes = [[stop - start for start, stop in segment] for segment in placement.stages]
    loads_s = _loads_s(ring, placement.streams)
    return event_model(sizes, placement.blocks, loads_s, steps, num_micro_batches)


def _loads_s(ring: Ring, streams: Sequence[Sequence[Streams]]) -> list[float]:
    return [load_frac(ring, one) * ring.load_s[device] for device, one in enumerate(streams)]
