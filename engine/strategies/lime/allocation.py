"""The paper's offline allocation: layers and whole streamed layers per device of a ring. Pure.

Sun et al., "LIME" (arXiv 2512.21835), section IV-C and Algorithm 1. Three ways to it: `exact` minimises the
cost model, `dp` is Algorithm 1 with the maximum where its own cost model has one (the paper adds load times
that overlap), `printed` is Algorithm 1 to the letter. Single blocks are promoted afterwards (`blocks.py`).
`joint.py` chooses layers and blocks together instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import ceil, inf
from typing import Literal, NamedTuple

from engine.strategies.lime.cost import StepTimes, closed_form_s, idle_s

Mode = Literal["joint", "exact", "dp", "printed"]
WholeLayers = Literal["exact", "dp", "printed"]


class Ring(NamedTuple):
    """Devices in the order of the ring, and the layers to spread over them.

    `memory_bytes` are what devices can give to layers, `load_s` the time to read a layer from disk,
    `kv_bytes` a layer's KV cache at the sequence length that the plan is made for, `last_kv_bytes` at the end
    of the run. `attention_frac` is the attention block's share of `layer_bytes`.
    """

    num_layers: int
    layer_bytes: float
    attention_frac: float
    kv_bytes: float
    memory_bytes: tuple[float, ...]
    load_s: tuple[float, ...]
    step: StepTimes
    last_kv_bytes: float = 0.0

    @property
    def lasting(self) -> Ring:
        """The same ring for the longest sequence: a plan that streams nothing cannot make room later."""
        return self._replace(kv_bytes=max(self.kv_bytes, self.last_kv_bytes))

    @property
    def size(self) -> int:
        return len(self.memory_bytes)

    def capacity(self, device: int, slots: int = 0, num_segments: int = 1) -> int:
        """Layers that `device` can host: a slot hosts num_segments of them in the memory of one."""
        shared_bytes = slots * (num_segments - 1) * self.layer_bytes
        room = self.memory_bytes[device] + shared_bytes
        return max(0, int(room // (self.layer_bytes + self.kv_bytes)))

    def slots_for(self, device: int, layers: int, num_segments: int) -> int | None:
        """The fewest slots with which `device` hosts `layers`; None if it cannot.

        Every stage has a layer, and every slot one of each stage.
        """
        missing = layers * (self.layer_bytes + self.kv_bytes) - self.memory_bytes[device]
        if missing > 0 and num_segments == 1:
            return None
        slots = ceil(missing / ((num_segments - 1) * self.layer_bytes)) if missing > 0 else 0
        return slots if layers >= num_segments * max(1, slots) else None

    def slot_s(self, device: int) -> float:
        """Seconds that a slot is busy per segment: its layer is computed, the next one loaded."""
        return self.load_s[device] + self.step.layer_s[device]


class LayerAllocation(NamedTuple):
    """Per device of a ring: layers in all segments, and streamed layers per stage."""

    num_segments: int
    layers: tuple[int, ...]
    slots: tuple[int, ...]


def allocate(ring: Ring, num_segments: int, mode: WholeLayers) -> LayerAllocation | None:
    """The allocation of `mode` into two segments or more; None if the memory does not suffice.

    Algorithm 1 is about the layers that are left over: without any, the exact plan is the only one.
    """
    if sum(ring.capacity(device) for device in range(ring.size)) >= ring.num_layers:
        mode = "exact"
    ways: dict[WholeLayers, Callable[[Ring, int], LayerAllocation | None]] = {
        "exact": exact,
        "dp": dynamic_program,
        "printed": printed,
    }
    return ways[mode](ring, num_segments)


def planned_s(ring: Ring, chosen: LayerAllocation) -> float:
    """The closed form for whole streamed layers."""
    fronts_s = [slots * layer_s for slots, layer_s in zip(chosen.slots, ring.step.layer_s, strict=True)]
    loads_s = [slots * load_s for slots, load_s in zip(chosen.slots, ring.load_s, strict=True)]
    return closed_form_s(ring.step, chosen.layers, chosen.num_segments, fronts_s, loads_s)


def exact(ring: Ring, num_segments: int) -> LayerAllocation | None:
    """The least `planned_s`; ties: fewer slots, then the lexicographically smaller layers.

    For every bound on the loaders' time there is a best spread of layers: devices in the order of their
    speed, unless what one can host has holes. Then a dynamic program finds it.
    """
    options = [dict(_options(ring, device, num_segments)) for device in range(ring.size)]
    bounds_s = sorted(
        {
            slots * ring.slot_s(device)
            for device, slots_of in enumerate(options)
            for slots in slots_of.values()
        }
    )
    best: tuple[float, int, tuple[int, ...]] | None = None
    for bound_s in bounds_s:
        allowed = [
            [layers for layers, slots in slots_of.items() if slots * ring.slot_s(device) <= bound_s]
            for device, slots_of in enumerate(options)
        ]
        if not all(allowed) or sum(max(layers) for layers in allowed) < ring.num_layers:
            continue
        layers = fastest_first(ring, [min(one) for one in allowed], [max(one) for one in allowed])
        if layers is None or (best is not None and _through_s(ring, layers, num_segments) > best[0]):
            continue  # no spread within this bound is faster than the fastest first
        if any(num not in one for num, one in zip(layers, allowed, strict=True)):
            layers = cheapest(ring, allowed)
        if layers is None:
            continue
        slots = tuple(options[device][num] for device, num in enumerate(layers))
        key = (planned_s(ring, LayerAllocation(num_segments, layers, slots)), sum(slots), layers)
        best = key if best is None else min(best, key)
    if best is None:
        return None
    layers = best[2]
    return LayerAllocation(num_segments, layers, tuple(options[i][num] for i, num in enumerate(layers)))


def _options(ring: Ring, device: int, num_segments: int) -> Iterator[tuple[int, int]]:
    """What `device` can host: layers and the slots for them."""
    for layers in range(num_segments, ring.num_layers + 1):
        slots = ring.slots_for(device, layers, num_segments)
        if slots is not None:
            yield layers, slots


def _through_s(ring: Ring, layers: Sequence[int], num_segments: int) -> float:
    nothing = [0.0] * ring.size
    return closed_form_s(ring.step, layers, num_segments, nothing, nothing)


def fastest_first(ring: Ring, least: Sequence[int], most: Sequence[int]) -> tuple[int, ...] | None:
    """All layers: `least` for every device, the others for the fastest that may have more."""
    layers, left = list(least), ring.num_layers - sum(least)
    if left < 0:
        return None
    for device in sorted(range(ring.size), key=lambda i: (ring.step.layer_s[i], i)):
        more = min(left, most[device] - layers[device])
        layers[device] += more
        left -= more
    return None if left else tuple(layers)


def cheapest(ring: Ring, allowed: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """All layers in the least time of computing, each device with one of its `allowed` numbers."""
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for device, numbers in enumerate(allowed):
        further: dict[int, tuple[float, tuple[int, ...]]] = {}
        for done, (cost_s, layers) in best.items():
            for number in numbers:
                total = done + number
                if total > ring.num_layers:
                    continue
                way = (cost_s + number * ring.step.layer_s[device], (*layers, number))
                if total not in further or way < further[total]:
                    further[total] = way
        best = further
    return best[ring.num_layers][1] if ring.num_layers in best else None


def dynamic_program(ring: Ring, num_segments: int) -> LayerAllocation | None:
    """The best allocation by Algorithm 1, its cost the largest uncovered load: loads of different devices
    overlap.

    Every device is filled first; the layers that are left cost slots. The idle times are those of the
    filled devices (line 3). Ties: the fewest on the later device.
    """
    filled = [ring.capacity(device) for device in range(ring.size)]
    left = ring.num_layers - sum(filled)
    idle = [idle_s(ring.step, filled, num_segments, device, 0.0) for device in range(ring.size)]
    table: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]
    for device in range(ring.size):
        row: dict[int, tuple[float, int]] = {}
        for extra in range(left + 1):
            slots = ring.slots_for(device, filled[device] + extra, num_segments)
            if slots is None or slots > filled[device]:
                continue
            uncovered_s = max(0.0, slots * ring.load_s[device] - idle[device])
            for done, (cost_s, _) in table[-1].items():
                total, way_s = done + extra, max(cost_s, uncovered_s)
                if total <= left and way_s < row.get(total, (inf, 0))[0]:
                    row[total] = (way_s, extra)
        table.append(row)
    if left not in table[-1]:
        return None
    extras: list[int] = []
    for row in reversed(table[1:]):
        extras.insert(0, row[left - sum(extras)][1])
    layers = tuple(num + extra for num, extra in zip(filled, extras, strict=True))
    return _with_slots(ring, num_segments, layers)


def printed(ring: Ring, num_segments: int) -> LayerAllocation | None:
    """Algorithm 1 as printed chooses the devices that stream; layers fill what their slots make room for.

    The paper spreads left/num_segments layers per segment and does not count the memory of the slots
    themselves: more are taken until all layers fit.
    """
    devices = range(ring.size)
    filled = [ring.capacity(device) for device in devices]
    left = ring.num_layers - sum(filled)
    idle = [idle_s(ring.step, filled, num_segments, device, 0.0) for device in devices]
    for num_slots in range(ceil(left / num_segments), sum(filled) + 1):
        slots = printed_slots(num_slots, ring.load_s, idle)
        least = [num_segments * max(1, num) for num in slots]
        most = [ring.capacity(device, slots[device], num_segments) for device in devices]
        if any(low > high for low, high in zip(least, most, strict=True)):
            return None
        layers = fastest_first(ring, least, most)
        if layers is not None:
            return LayerAllocation(num_segments, layers, slots)
    return None


def printed_slots(num_layers: int, load_s: Sequence[float], idle: Sequence[float]) -> tuple[int, ...]:
    """Slots by lines 2 to 11 as printed: delays of different devices add up, equal ones keep the later
    device's.
    """
    cost = [max(0.0, num * load_s[0] - idle[0]) for num in range(num_layers + 1)]
    choices: list[list[int]] = [list(range(num_layers + 1))]
    for device in range(1, len(load_s)):
        row, choice = [0.0] + [inf] * num_layers, [0] * (num_layers + 1)
        for total in range(1, num_layers + 1):
            for here in range(total + 1):
                way_s = max(0.0, cost[total - here] + here * load_s[device] - idle[device])
                if way_s <= row[total]:
                    row[total], choice[total] = way_s, here
        cost = row
        choices.append(choice)
    slots: list[int] = []
    for choice in reversed(choices):
        slots.insert(0, choice[num_layers - sum(slots)])
    return tuple(slots)


def _with_slots(ring: Ring, num_segments: int, layers: tuple[int, ...]) -> LayerAllocation:
    slots = [ring.slots_for(device, num, num_segments) for device, num in enumerate(layers)]
    assert all(num is not None for num in slots), "layers were chosen among those that fit"
    return LayerAllocation(num_segments, layers, tuple(num or 0 for num in slots))


def stages_of_segments(layers: Sequence[int], num_segments: int) -> tuple[tuple[int, ...], ...]:
    """[segment][device] → layers: as even as can be, what is over to the segments with the fewest so far."""
    totals = [0] * num_segments
    per_device = []
    for num in layers:
        base, over = divmod(num, num_segments)
        fewest = sorted(range(num_segments), key=lambda s: (totals[s], s))[:over]
        sizes = [base + (segment in fewest) for segment in range(num_segments)]
        totals = [total + size for total, size in zip(totals, sizes, strict=True)]
        per_device.append(sizes)
    return tuple(zip(*per_device, strict=True))


def bounds_of_stages(stages: Sequence[Sequence[int]]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """[segment][device] → layers [start, stop), consecutive from segment to segment."""
    ends = list(accumulate((size for segment in stages for size in segment), initial=0))
    bounds = iter(pairwise(ends))
    return tuple(tuple(next(bounds) for _ in segment) for segment in stages)
