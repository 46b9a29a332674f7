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
from engine.strategies.lime.ring import hop_of

TARGET_TOKENS_PER_SOURCE_TOKEN = 1.5
"""A device stores rows for another one only if its own KV caches can grow that much longer."""


NOTE_BYTES = 5 * 8
"""The bytes of a message's note: its kind, request, segment and rows."""


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
    """Pairs of devices that park rows, as (source, target) by position: the first to be full with the last,
    and so on inwards.

    `max_tokens` is how long each device's KV caches can grow before it streams more.
    """
    order = sorted(range(len(max_tokens)), key=lambda device: (max_tokens[device], device))
    return tuple(
        (low, high)
        for low, high in zip(order[: len(order) // 2], reversed(order), strict=False)
        if max_tokens[high] >= TARGET_TOKENS_PER_SOURCE_TOKEN * max_tokens[low]
    )


def num_rows(uncovered_s: float, s_per_byte: float, row_bytes: float, fixed_s: float = 0.0) -> int:
    """Rows that go to the target and back while the device would wait for its disk anyway.

    Eq. 8 counts one crossing of the link; every parked row crosses it twice per segment. `s_per_byte` is for
    both ways, `fixed_s` what the messages take however many rows they have.
    """
    return int(max(0.0, uncovered_s - fixed_s) / (s_per_byte * row_bytes))


def round_trip(cluster: ClusterSpec, src: int, dst: int, num_layers: int) -> tuple[float, float]:
    """Seconds per byte there and back, and seconds of the rest: four messages, without rows (rows, both
    acknowledgements, the request), and the operations that take rows out of caches and put them there.
    """
    there, back = byte_per_s(cluster, src, dst), byte_per_s(cluster, dst, src)
    messages_s = 2 * (
        hop_of(cluster, src, dst, NOTE_BYTES).total_s + hop_of(cluster, dst, src, NOTE_BYTES).total_s
    )
    operations_s = 3 * num_layers * sum(cluster.devices[rank].op_overhead_s for rank in (src, dst))
    staging = [rate for rank in (src, dst) if (rate := cluster.devices[rank].staging_byte_per_s)]
    return 1 / there + 1 / back + sum(2 / rate for rate in staging), messages_s + operations_s


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
