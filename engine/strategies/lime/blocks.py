"""Chooses the attention and feed-forward blocks that are streamed: fine-grained residency, and the plans that
make room for a growing KV cache. Pure.

Sun et al., "LIME" (arXiv 2512.21835): Algorithm 1, lines 13 to 27, where the memory cost of a block that
becomes resident is (#Seg-1) times its size; section IV-D, Eqs. 5 to 7, read per token.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Literal, NamedTuple

from engine.strategies.lime.allocation import LayerAllocation, Ring
from engine.strategies.lime.cost import StreamedBlock, idle_s

Streams = Literal["layer", "ffn", "attention", "nothing"]
"""What still goes through a slot; the rest of its layers is resident."""

ORDER: tuple[Streams, ...] = ("layer", "ffn", "attention", "nothing")
BLOCKS: dict[Streams, tuple[Literal["attention", "ffn"], ...]] = {
    "layer": ("attention", "ffn"),
    "ffn": ("ffn",),
    "attention": ("attention",),
    "nothing": (),
}


def load_frac(ring: Ring, streams: Sequence[Streams]) -> float:
    """Layers' worth of bytes that go through the slots per segment."""
    share = {
        "layer": 1.0,
        "attention": ring.attention_frac,
        "ffn": 1 - ring.attention_frac,
        "nothing": 0.0,
    }
    return sum(share[one] for one in streams)


def blocks_of(streams: Sequence[Streams]) -> tuple[StreamedBlock, ...]:
    """The streamed blocks of every stage, in the order of computation."""
    return tuple(
        StreamedBlock(position, part) for position, one in enumerate(streams) for part in BLOCKS[one]
    )


def whole_layers(chosen: LayerAllocation) -> tuple[tuple[Streams, ...], ...]:
    """Residency by layers: every slot streams all of its layer."""
    layer: Streams = "layer"
    return tuple((layer,) * slots for slots in chosen.slots)


def spare_bytes(ring: Ring, chosen: LayerAllocation, device: int, streams: Sequence[Streams]) -> float:
    """What `device` has left beside its weights, its slots and the KV caches assumed."""
    layers, further = chosen.layers[device], chosen.num_segments - 1
    weights_bytes = (layers - further * load_frac(ring, streams)) * ring.layer_bytes
    return ring.memory_bytes[device] - weights_bytes - layers * ring.kv_bytes


def refine(ring: Ring, chosen: LayerAllocation) -> tuple[tuple[Streams, ...], ...]:
    """Make blocks resident where the load is least covered, until that device has no room or no need."""
    streams = [list(one) for one in whole_layers(chosen)]
    spare = [spare_bytes(ring, chosen, device, one) for device, one in enumerate(streams)]

    def entry(device: int) -> tuple[float, int]:
        front_s = ring.step.front_s(device, blocks_of(streams[device]))
        load_s = load_frac(ring, streams[device]) * ring.load_s[device]
        idle = idle_s(ring.step, chosen.layers, chosen.num_segments, device, front_s)
        return idle - load_s, device

    heap = [entry(device) for device in range(ring.size) if streams[device]]
    heapq.heapify(heap)
    while heap:
        covered_s, device = heapq.heappop(heap)
        frac = None if covered_s >= 0 else _keep_one(ring, chosen, streams[device], spare[device])
        if frac is None:
            break
        spare[device] -= (chosen.num_segments - 1) * frac * ring.layer_bytes
        heapq.heappush(heap, entry(device))
    return tuple(tuple(one) for one in streams)


def _keep_one(ring: Ring, chosen: LayerAllocation, streams: list[Streams], spare: float) -> float | None:
    """Let one block stay in memory, in `streams`; its share of a layer, or None if none fits."""
    unit_bytes = (chosen.num_segments - 1) * ring.layer_bytes
    attention, ffn = ring.attention_frac, 1 - ring.attention_frac
    moves: tuple[tuple[Streams, Streams, float], ...] = (
        ("layer", "attention", ffn),
        ("layer", "ffn", attention),
        ("ffn", "nothing", ffn),
        ("attention", "nothing", attention),
    )
    for before, after, frac in moves:
        if before in streams and spare >= unit_bytes * frac:
            streams[streams.index(before)] = after
            streams.sort(key=ORDER.index)
            return frac
    return None


class OnlinePlan(NamedTuple):
    """Up to `max_tokens`, stream `attention` and `ffn` more blocks per stage than at the start."""

    max_tokens: int
    attention: int
    ffn: int


def online_plans(
    free_bytes: float,
    token_bytes: float,
    room: OnlinePlan,
    block_bytes: tuple[float, float],
    lookahead: int,
    layers_only: bool,
) -> tuple[OnlinePlan, ...]:
    """What to stream as sequences grow, first the plan of the start (TS^1, Eq. 5), then Eqs. 6 and 7.

    `room` is how many tokens and blocks there are at most; `block_bytes` what one more streamed block
    frees, attention and feed-forward. Each plan frees least among those that last `lookahead` tokens longer
    than the one before; ties: fewer feed-forward blocks.
    """
    attention_bytes, ffn_bytes = block_bytes

    def plan(attention: int, ffn: int) -> OnlinePlan:
        room_bytes = free_bytes + attention * attention_bytes + ffn * ffn_bytes
        lasts = int(room_bytes // token_bytes) if token_bytes else room.max_tokens
        return OnlinePlan(min(room.max_tokens, lasts), attention, ffn)

    pairs = sorted(
        (a * attention_bytes + b * ffn_bytes, b, a)
        for a in range(room.attention + 1)
        for b in range(room.ffn + 1)
        if a == b or not layers_only
    )
    plans = [plan(0, 0)]
    for freed_bytes, ffn, attention in pairs:
        candidate = plan(attention, ffn)
        if freed_bytes and candidate.max_tokens >= plans[-1].max_tokens + lookahead:
            plans.append(candidate)
    return tuple(plans)


def streamed_online(blocks: Sequence[StreamedBlock], online: OnlinePlan) -> tuple[StreamedBlock, ...]:
    """`blocks` and what `online` adds: the resident blocks nearest the front of the stage."""
    more: list[StreamedBlock] = []
    for part, wanted in (("attention", online.attention), ("ffn", online.ffn)):
        taken = {block.position for block in blocks if block.part == part}
        position = 0
        while wanted:
            if position not in taken:
                more.append(StreamedBlock(position, part))  # type: ignore[arg-type]
                wanted -= 1
            position += 1
    return tuple(sorted({*blocks, *more}))
