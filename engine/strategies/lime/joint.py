"""LIME's offline optimum: layers per device and streamed blocks, chosen together. Pure.

Algorithm 1 of Sun et al., "LIME" (arXiv 2512.21835) chooses whole streamed layers first, and lets single
blocks stay in memory afterwards. That order costs time: a plan with more half layers is often faster than the
best plan of whole layers with blocks promoted. Here the cheapest set of streamed blocks is known for every
number of layers, and a search over the time that a device may take per step finds the best spread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import ceil, inf
from typing import NamedTuple

from engine.strategies.lime.allocation import LayerAllocation, Ring, cheapest, fastest_first
from engine.strategies.lime.blocks import Streams


class Streaming(NamedTuple):
    """Every stage of a device streams the first `attention` and `ffn` blocks of their kind.

    `busy_s` is how long that takes per segment: computing up to the last of these blocks, and loading
    those of the next segment.
    """

    attention: int
    ffn: int
    busy_s: float

    @property
    def slots(self) -> int:
        return max(self.attention, self.ffn)

    @property
    def streams(self) -> tuple[Streams, ...]:
        """What goes through each slot: whole layers first."""
        layer: Streams = "layer"
        half: Streams = "attention" if self.attention > self.ffn else "ffn"
        whole = min(self.attention, self.ffn)
        return (layer,) * whole + (half,) * (self.slots - whole)


class Member(NamedTuple):
    """One device as the choice of its streamed blocks sees it: bytes, and seconds per layer."""

    memory_bytes: float
    attention_bytes: float
    ffn_bytes: float
    kv_bytes: float
    layer_s: float
    attention_s: float
    load_s: float

    def streaming(self, attention: int, ffn: int) -> Streaming:
        """The blocks at the front of a stage: attention before feed-forward in every layer."""
        if not (attention or ffn):
            return Streaming(0, 0, 0.0)
        front_s = ffn * self.layer_s
        if attention > ffn:
            front_s = (attention - 1) * self.layer_s + self.attention_s
        size = attention * self.attention_bytes + ffn * self.ffn_bytes
        return Streaming(
            attention, ffn, front_s + self.load_s * size / (self.attention_bytes + self.ffn_bytes)
        )


def member_of(ring: Ring, device: int) -> Member:
    attention_bytes = ring.attention_frac * ring.layer_bytes
    return Member(
        ring.memory_bytes[device],
        attention_bytes,
        ring.layer_bytes - attention_bytes,
        ring.kv_bytes,
        ring.step.layer_s[device],
        ring.step.attention_s[device],
        ring.load_s[device],
    )


@lru_cache(maxsize=4096)
def streamings(
    member: Member, num_layers: int, num_segments: int, fine_grained: bool
) -> tuple[Streaming | None, ...]:
    """Number of hosted layers, 0 to `num_layers` → the fastest set of streamed blocks with which they fit.

    None if no set does. Every stage has a layer, and every streamed block's position exists in every stage.
    Streaming one more block frees its bytes in all segments but one.
    """
    found: list[Streaming | None] = [None] * (num_layers + 1)
    for layers in range(num_segments, num_layers + 1):
        need_bytes = layers * (member.attention_bytes + member.ffn_bytes + member.kv_bytes)
        missing = need_bytes - member.memory_bytes
        if missing <= 0:
            found[layers] = Streaming(0, 0, 0.0)
        elif num_segments > 1:
            most = layers // num_segments
            found[layers] = _fastest(member, missing / (num_segments - 1), most, fine_grained)
    return tuple(found)


def _fastest(member: Member, missing: float, most: int, fine_grained: bool) -> Streaming | None:
    """The fastest streaming of at most `most` layers per stage that frees `missing` bytes per shared slot.

    For every number of attention blocks the fewest feed-forward blocks are best. Ties: fewer bytes.
    """
    layer_bytes = member.attention_bytes + member.ffn_bytes
    if missing > most * layer_bytes:
        return None
    if not fine_grained:
        slots = ceil(missing / layer_bytes)
        return member.streaming(slots, slots)
    best: tuple[float, float, Streaming] | None = None
    for attention in range(most + 1):
        left = missing - attention * member.attention_bytes
        ffn = max(0, ceil(left / member.ffn_bytes))
        if ffn > most:
            continue
        one = member.streaming(attention, ffn)
        size = attention * member.attention_bytes + ffn * member.ffn_bytes
        if best is None or (one.busy_s, size) < best[:2]:
            best = one.busy_s, size, one
        if left <= 0:
            break
    return best[2] if best else None


class Spread(NamedTuple):
    """All layers of the model on a ring: `chosen`, the streamed blocks per device, and a lower bound of the
    seconds per step.
    """

    chosen: LayerAllocation
    streaming: tuple[Streaming, ...]
    least_s: float


class Table:
    """What every device of `ring` can host in `num_segments`, and how long it is busy per step with it."""

    def __init__(self, ring: Ring, num_segments: int, num_micro_batches: int, fine_grained: bool):
        self.ring = ring
        self.num_segments = num_segments
        self.num_micro_batches = num_micro_batches
        members = [member_of(ring, device) for device in range(ring.size)]
        self.streamings = [
            streamings(member, ring.num_layers, num_segments, fine_grained) for member in members
        ]
        self.busy_s = [
            [self._busy_s(device, layers) for layers in range(ring.num_layers + 1)]
            for device in range(ring.size)
        ]
        self.grows = [all(a <= b for a, b in pairwise(of_device)) for of_device in self.busy_s]
        """Whether a device is busy for longer with more layers: then those within a bound are a range."""

    def _busy_s(self, device: int, layers: int) -> float:
        """Seconds that a step takes at least because of `device`: it computes for all micro-batches, and its
        slots are reloaded once per segment after the last of them.
        """
        streaming = self.streamings[device][layers]
        if streaming is None:
            return inf
        once_s = layers * self.ring.step.layer_s[device]
        loader_s = self.num_segments * streaming.busy_s
        if not loader_s:
            return self.num_micro_batches * once_s
        return (self.num_micro_batches - 1) * once_s + max(once_s, loader_s)

    def through_s(self, layers: Sequence[int]) -> float:
        """Seconds of one micro-batch without waiting."""
        step = self.ring.step
        compute_s = sum(num * layer_s for num, layer_s in zip(layers, step.layer_s, strict=True))
        return compute_s + step.around_s(self.num_segments) + step.begin_s + step.end_s

    def least_s(self, layers: Sequence[int]) -> float:
        """A lower bound of the seconds per step; inf if the layers do not fit. For one micro-batch it is the
        closed form.
        """
        busy_s = (of_device[num] for of_device, num in zip(self.busy_s, layers, strict=True))
        return max(self.through_s(layers), *busy_s)

    def hosts(self, layers: Sequence[int]) -> bool:
        """Whether every device has the memory for so many layers."""
        return all(of[num] is not None for of, num in zip(self.streamings, layers, strict=True))

    def spread(self, layers: tuple[int, ...]) -> Spread:
        """`layers` with their streamed blocks; they must fit."""
        chosen = tuple(of[num] for of, num in zip(self.streamings, layers, strict=True))
        streaming = tuple(one for one in chosen if one is not None)
        assert len(streaming) == len(layers), "layers were chosen among those that fit"
        slots = tuple(one.slots for one in streaming)
        return Spread(LayerAllocation(self.num_segments, layers, slots), streaming, self.least_s(layers))

    def within(self, bound_s: float) -> tuple[int, ...] | None:
        """The spread with the least time of computing among those in which no device is busy for longer."""
        allowed: list[Sequence[int]] = [
            range(bisect_right(of_device, bound_s))
            if grows
            else [layers for layers, busy_s in enumerate(of_device) if busy_s <= bound_s]
            for of_device, grows in zip(self.busy_s, self.grows, strict=True)
        ]
        if not all(allowed) or sum(one[-1] for one in allowed) < self.ring.num_layers:
            return None
        layers = fastest_first(self.ring, [one[0] for one in allowed], [one[-1] for one in allowed])
        if layers is None:
            return None
        holes = any(len(one) != 1 + one[-1] - one[0] for one in allowed)
        if holes and any(num not in one for num, one in zip(layers, allowed, strict=True)):
            return cheapest(self.ring, allowed)
        return layers

    def best(self) -> Spread | None:
        """The spread with the smallest lower bound; None if the layers do not fit.

        A larger bound on the busiest device allows more spreads, so computing takes no longer with it: the
        best bound is where both times cross.
        """
        bounds = sorted({busy_s for of_device in self.busy_s for busy_s in of_device if busy_s < inf})
        if not bounds or (layers := self.within(bounds[-1])) is None:
            return None
        crossing = bisect_left(bounds, True, key=lambda bound_s: self._through_within_s(bound_s) <= bound_s)
        found = [self.within(bounds[at]) for at in (crossing - 1, crossing) if 0 <= at < len(bounds)]
        candidates = [layers, *(one for one in found if one is not None)]
        return self.spread(min(candidates, key=lambda one: (self.least_s(one), one)))

    def _through_within_s(self, bound_s: float) -> float:
        layers = self.within(bound_s)
        return inf if layers is None else self.through_s(layers)
