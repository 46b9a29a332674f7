"""Plan LIME's KV cache transfer: which device stores how many rows for which other device. Pure.

Sun et al., "LIME" (arXiv 2512.21835), section IV-D and Algorithm 2. The newest rows are stored on a device
with free memory while their layers do not run; `parking.py` moves them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.units import BITS_PER_BYTE
from engine.domain.values import Value
from engine.ops.tensors import Tensor

TARGET_TOKENS_PER_SOURCE_TOKEN = 1.5
"""A device stores rows for another one only if its own KV caches can grow that much longer."""


class Transfer(Value):
    """Rows of rank `source` wait on rank `target`.

    `segment_bytes` are those of one token of one sequence in a segment's caches of the source,
    `target_bytes` those in all of the target's own; `free_bytes` is what the target has for
    KV caches, `max_rows` what one message may have.
    """

    source: int
    target: int
    segment_bytes: int
    target_bytes: int
    free_bytes: float
    max_rows: int


def pairs_of(max_tokens: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """(source, target) by position: the first to be full with the last, and so on inwards.

    `max_tokens` is how long each device's KV caches can grow before it streams more.
    """
    order = sorted(range(len(max_tokens)), key=lambda device: (max_tokens[device], device))
    return tuple(
        (low, high)
        for low, high in zip(order[: len(order) // 2], reversed(order), strict=False)
        if max_tokens[high] >= TARGET_TOKENS_PER_SOURCE_TOKEN * max_tokens[low]
    )


def num_rows(uncovered_s: float, byte_per_s: float, row_bytes: float) -> int:
    """Eq. 8: rows that the link carries while the device would wait for its disk anyway."""
    return int(max(0.0, uncovered_s) * byte_per_s // row_bytes)


def rows_to_park(
    wanted: int, parked: int, tokens: int, max_tokens: int, step_tokens: int, fluctuation: int
) -> int:
    """Algorithm 2's choice: fewer rows at once, more only shortly before the next plan is due.

    `tokens` are there after the coming step, `step_tokens` come with each; changes by less than `fluctuation`
    rows are not worth it.
    """
    if abs(wanted - parked) < fluctuation:
        return parked
    if wanted > parked and tokens + parked * step_tokens < max_tokens - step_tokens:
        return parked
    return wanted


def byte_per_s(cluster: ClusterSpec, src: int, dst: int) -> float:
    """Byte/s of the slowest link on the path."""
    return min(cluster.links[hop.link].rate(hop.forward) for hop in cluster.path(src, dst)) / BITS_PER_BYTE


class ParkedRows:
    """How many rows to park: recorded, because devices receive changes of links at different moments."""

    def __init__(self, rows: int):
        self.rows = rows

    def __call__(self, *inputs: Tensor) -> Any:
        return self.rows

    def prior(self, *inputs: Tensor) -> Any:
        return self.rows
