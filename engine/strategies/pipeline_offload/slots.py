"""Slots inside a pipeline's stage: layers that do not fit take turns in the same memory, in every pass. Pure.

The baseline of Sun et al., "LIME" (arXiv 2512.21835), Fig. 3(a): of four layers where three fit, the first
and the third share one slot. Every micro-batch pays two loads for each slot (Fig. 4(a)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from engine.strategies.lime.cost import StepTimes

Cycle = tuple[int, ...]
"""Positions in a stage whose layers share a slot, in the order of their turns."""


def num_missing(layers: int, free_bytes: float, layer_bytes: float, kv_bytes: float) -> int:
    """How many of `layers` do not fit beside the others and the KV caches of all."""
    return max(0, ceil((layers * (layer_bytes + kv_bytes) - free_bytes) / layer_bytes))


def cycles_of(layers: int, missing: int) -> tuple[Cycle, ...]:
    """A slot for every missing layer, which the one half a stage further shares; all layers around all slots
    where more than half are missing.
    """
    slots = layers - missing
    if 2 * missing <= layers:
        return tuple((slot, slot + layers // 2) for slot in range(missing))
    return tuple(tuple(range(slot, layers, slots)) for slot in range(slots))


def turns_of(cycles: Sequence[Cycle]) -> dict[int, int]:
    """By position, whose turn is next in its slot."""
    return {
        position: cycle[(turn + 1) % len(cycle)] for cycle in cycles for turn, position in enumerate(cycle)
    }


def offload_events(
    layers: Sequence[int],
    cycles: Sequence[Sequence[Cycle]],
    load_s: Sequence[float],
    steps: Sequence[StepTimes],
    num_micro_batches: int = 1,
) -> list[float]:
    """When the last result of each step is there, s. The source has the first stage.

    As soon as a layer of a slot is computed, the next one of its turn starts to load, beside the device's
    other layers only. The first of every slot are there at 0.
    """
    turns: list[Mapping[int, int]] = [turns_of(one) for one in cycles]
    ready = [[0.0] * num for num in layers]
    free, loader, link = ([0.0] * len(layers) for _ in range(3))
    arrived, finished = [0.0] * num_micro_batches, []
    for number, step in enumerate(steps):
        ends_s = step.begin_s + (steps[number - 1].end_s if number else 0.0)
        for micro_batch in range(num_micro_batches):
            x_s = arrived[micro_batch]
            for device, num in enumerate(layers):
                at_s = max(x_s, free[device]) + (0.0 if device else ends_s)
                for position in range(num):
                    at_s = max(at_s, ready[device][position]) + step.layer_s[device]
                    if position in turns[device]:
                        loader[device] = max(at_s, loader[device]) + load_s[device]
                        ready[device][turns[device][position]] = loader[device]
                free[device] = at_s
                hop = step.leave if device == len(layers) - 1 else step.hops[device]
                link[device] = max(at_s, link[device]) + hop.transfer_s
                x_s = link[device] + hop.delay_s
            arrived[micro_batch] = x_s
        finished.append(max(arrived) + step.end_s)
    return finished
