"""Describe a cluster as LIME's ring, and place every layer on it (section IV-C). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.units import transfer_s
from engine.ops.core import Block, Embed
from engine.ops.sizes import kv_bytes_per_row, weight_bytes
from engine.ops.tensors import Meta, payload_bytes
from engine.program.frames import FRAME_HEADER_BYTES
from engine.strategies.lime.allocation import (
    LayerAllocation,
    Mode,
    Ring,
    allocate,
    bounds_of_stages,
    fastest_first,
    stages_of_segments,
)
from engine.strategies.lime.blocks import Streams, blocks_of, load_frac, refine, whole_layers
from engine.strategies.lime.cost import HopTime, StepTimes, StreamedBlock, steady_step_s
from engine.strategies.shared.demand import Demand, Pass, end_passes, hidden
from engine.strategies.shared.ends import layer_slices
from engine.strategies.shared.shares import largest_remainder, pass_s
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


def hop_of(cluster: ClusterSpec, src: int, dst: int, size_bytes: int) -> HopTime:
    """A message of `size_bytes` from rank to rank on an idle path; nothing to oneself."""
    if src == dst:
        return HopTime()
    path = cluster.path(src, dst)
    rate = min(cluster.links[hop.link].rate(hop.forward) for hop in path)
    wire_bytes = FRAME_HEADER_BYTES + size_bytes
    sent_s, received_s = (
        wire_bytes / rate if rate else 0.0
        for rate in (cluster.devices[rank].staging_byte_per_s for rank in (src, dst))
    )
    occupied_s = cluster.devices[src].message_overhead_s + sent_s + transfer_s(wire_bytes, rate)
    return HopTime(occupied_s, cluster.delay_s(src, dst) + received_s)


def step_times(
    cluster: ClusterSpec, model: ModelSpec, ranks: Sequence[int], demand: Demand, rows: int, cached: int
) -> StepTimes:
    """One forward pass of `rows` new rows after `cached` ones, around the ring of `ranks`."""
    cache = "plan" if demand.generates else None
    x = hidden(model, demand.batch, rows)
    block = Block(0, cache)
    attention, residual, *_ = block.parts(model)
    source = cluster.source_rank
    *begin, end = end_passes(model, demand)
    if cached:
        begin = [Pass(Embed(cached), (Meta((demand.batch, rows), "int64"),))]
    size, last = payload_bytes(x), ranks[-1]
    result_bytes = payload_bytes(hidden(model, demand.batch, 1)) if demand.generates else size

    def seconds(rank: int, *passes: Pass) -> float:
        return sum(pass_s(cluster.devices[rank], model, one) for one in passes)

    return StepTimes(
        layer_s=tuple(seconds(rank, Pass(block, (x,), cached)) for rank in ranks),
        attention_s=tuple(
            seconds(rank, Pass(attention, (x,), cached), Pass(residual, (x, x))) for rank in ranks
        ),
        hops=tuple(
            hop_of(cluster, rank, ranks[(number + 1) % len(ranks)], size) for number, rank in enumerate(ranks)
        ),
        leave=hop_of(cluster, last, source, result_bytes),
        enter=hop_of(cluster, source, ranks[0], size) if source != ranks[0] else None,
        begin_s=seconds(source, *begin),
        end_s=seconds(source, end),
    )


def planned_step(cluster: ClusterSpec, model: ModelSpec, ranks: Sequence[int], demand: Demand) -> StepTimes:
    """The step that a plan is made for: a token in the middle of the answer, else the prompt."""
    if demand.new_tokens > 1:
        return step_times(cluster, model, ranks, demand, 1, (demand.rows + demand.cached_rows) // 2)
    return step_times(cluster, model, ranks, demand, demand.rows, 0)


def ring_of(
    cluster: ClusterSpec,
    model: ModelSpec,
    demand: Demand,
    ranks: Sequence[int],
    memory_bytes: Sequence[float],
    num_tokens: int,
) -> Ring:
    """`memory_bytes` are what `ranks` can give to layers, `num_tokens` the sequence length assumed."""
    attention_bytes, ffn_bytes = (weight_bytes(model, piece) for piece in layer_slices(0))
    size = attention_bytes + ffn_bytes
    return Ring(
        num_layers=model.num_layers,
        layer_bytes=size,
        attention_frac=attention_bytes / size,
        kv_bytes=num_tokens * token_bytes(model, demand),
        memory_bytes=tuple(memory_bytes),
        load_s=tuple(size / cluster.devices[rank].disk_byte_per_s for rank in ranks),
        step=planned_step(cluster, model, ranks, demand),
    )


def token_bytes(model: ModelSpec, demand: Demand) -> int:
    """Bytes that one more token of every unfinished sequence adds to one layer's KV caches."""
    per_row = kv_bytes_per_row(model, model.num_kv_heads)
    return demand.sequences * per_row if demand.generates else 0


def best_placement(
    ring: Ring, mode: Mode, num_segments: int, fine_grained: bool, num_micro_batches: int
) -> RingPlacement | None:
    """The fastest placement in the event model over all numbers of segments, or with `num_segments` (0: all).

    One segment if every layer fits at once. Ties: fewer bytes from disk, fewer segments, fewer layers on
    the first devices. None if the memory does not suffice.
    """
    if sum(ring.capacity(device) for device in range(ring.size)) >= ring.num_layers and num_segments < 2:
        found = [_placed(ring, one, False, num_micro_batches) for one in _all_resident(ring)]
    else:
        counts = [num_segments] if num_segments else _segment_counts(ring, mode)
        allocations = [allocate(ring, count, mode) for count in counts]
        found = [_placed(ring, one, fine_grained, num_micro_batches) for one in allocations if one]

    def key(placement: RingPlacement) -> tuple[float, float, int, tuple[int, ...]]:
        segments = placement.chosen.num_segments
        loaded = segments * sum(load_frac(ring, one) for one in placement.streams)
        return round(placement.step_s, 12), loaded, segments, placement.chosen.layers

    return min(found, key=key, default=None)


def _segment_counts(ring: Ring, mode: Mode) -> range:
    """2 ≤ #Seg ≤ ceil(L/D); Algorithm 1 also stops where one slot holds all that is left."""
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


def _placed(ring: Ring, chosen: LayerAllocation, fine_grained: bool, num_micro_batches: int) -> RingPlacement:
    streams = refine(ring, chosen) if fine_grained else whole_layers(chosen)
    sizes = stages_of_segments(chosen.layers, chosen.num_segments)
    loads_s = [load_frac(ring, one) * ring.load_s[device] for device, one in enumerate(streams)]
    blocks = [blocks_of(one) for one in streams]
    step_s = steady_step_s(sizes, blocks, loads_s, ring.step, num_micro_batches)
    return RingPlacement(chosen, streams, bounds_of_stages(sizes), step_s)
