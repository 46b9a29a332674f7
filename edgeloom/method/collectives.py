"""Collectives of a group of devices, and how large messages are."""

from __future__ import annotations

from engine.program.collectives import (
    AllReduce,
    Rows,
    all_gather,
    all_reduce,
    broadcast,
    chunk_bounds,
    gather,
    reduce_scatter,
    ring_gather,
    rows_in,
)
from engine.program.frames import framed_bytes

__all__ = [
    "AllReduce",
    "Rows",
    "all_gather",
    "all_reduce",
    "broadcast",
    "chunk_bounds",
    "framed_bytes",
    "gather",
    "reduce_scatter",
    "ring_gather",
    "rows_in",
]
