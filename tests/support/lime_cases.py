"""Small rings for LIME's planner, and every allocation that one has."""

from itertools import product

from engine.strategies.lime.allocation import LayerAllocation, Ring, planned_s
from engine.strategies.lime.cost import HopTime, StepTimes

MB, MS = 1e6, 1e-3


def ring(
    num_layers,
    layer_s,
    load_s,
    memory_bytes,
    hop_s=1 * MS,
    layer_bytes=100 * MB,
    kv_bytes=0.0,
    attention_frac=1 / 3,
):
    """A ring of equal hops; attention takes its share of a layer's time."""
    hops = tuple(HopTime(hop_s) for _ in layer_s) if len(layer_s) > 1 else (HopTime(),)
    step = StepTimes(
        tuple(layer_s),
        tuple(attention_frac * one for one in layer_s),
        hops,
        leave=hops[-1],
    )
    return Ring(num_layers, layer_bytes, attention_frac, kv_bytes, tuple(memory_bytes), tuple(load_s), step)


EXAMPLE = ring(8, (10 * MS, 20 * MS), (20 * MS, 40 * MS), (300 * MB, 300 * MB))
"""Two devices of three layers' memory each, and eight layers."""


def compositions(total, parts):
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield first, *rest


def every_allocation(one, num_segments):
    """All layers and slots that the memory allows, with every slot in every stage."""
    for layers in compositions(one.num_layers, one.size):
        for slots in product(*(range(num // num_segments + 1) for num in layers)):
            fits = all(
                (num - k * (num_segments - 1)) * one.layer_bytes + num * one.kv_bytes <= memory
                for num, k, memory in zip(layers, slots, one.memory_bytes, strict=True)
            )
            if fits and min(layers) >= num_segments:
                yield LayerAllocation(num_segments, layers, slots)


def brute_force_s(one, num_segments):
    return min((planned_s(one, chosen) for chosen in every_allocation(one, num_segments)), default=None)
