"""Plan slots inside a pipeline stage: layers that do not fit share memory and are loaded in every pass. Pure.

The baseline of Sun et al., "LIME" (arXiv 2512.21835), Fig. 3(a): of four layers where three fit, the first
and the third share one slot. Every micro-batch pays two loads for each slot (Fig. 4(a)).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

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


def cycles_by_rows(
    layers: int, free_bytes: float, layer_bytes: float, row_bytes: float, rows: int, longest: int
) -> tuple[tuple[int, tuple[Cycle, ...]], ...]:
    """(rows, cycles) in order: from so many rows in the KV caches on, these are the cycles. Planned are
    `rows` rows; up to `longest` of them more layers take turns as memory gets short, while a slot is left.
    """
    missing = num_missing(layers, free_bytes, layer_bytes, rows * row_bytes)
    found = [(0, cycles_of(layers, missing))]
    while row_bytes and missing < layers - 1:
        lasts = int((free_bytes - (layers - missing) * layer_bytes) // (layers * row_bytes))
        if lasts >= longest:
            break
        missing += 1
        found.append((lasts + 1, cycles_of(layers, missing)))
    return tuple(found)


def turns_of(cycles: Sequence[Cycle]) -> dict[int, int]:
    """Position → the position whose layer is loaded next into its slot."""
    return {
        position: cycle[(turn + 1) % len(cycle)] for cycle in cycles for turn, position in enumerate(cycle)
    }
