"""Where the end-to-end time went: one walk back along the critical path.

The walk starts at the source, at the end of the last request. Each step takes the activity that ended last on
the current device and goes back to its start; a received message leads to its sender, at the time of the call
of send. Time in which no activity ended is waiting. Every instant belongs to exactly one part, so the parts
add up to the latency.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.report import Attribution
from engine.domain.trace import Span

CLOCK_TOLERANCE_S = 1e-9  # an operation may begin this much before the message that it waited for is logged
PART = {
    "compute": "compute_s",
    "recv": "link_s",
    "send": "link_s",
    "load": "load_s",
    "store": "load_s",
    "stage": "staging_s",
}
# Of two activities that end together, the one with the higher rank counts.
RANK = {"send": 0, "recv": 1, "stage": 2, "load": 3, "store": 3, "compute": 4}


class Segment(NamedTuple):
    """A piece of the critical path: what `device` did from `start_s` to `end_s`, or None where it waited.
    A received message is the receiver's, and `staged_s` of its time are copies at both ends.
    """

    span: Span | None
    device: str
    start_s: float
    end_s: float
    staged_s: float = 0.0


def attribute(
    spans: Iterable[Span], cluster: ClusterSpec, source: str, start_s: float, end_s: float
) -> Attribution:
    """The parts of [start_s, end_s) along the critical path that ends at device `source`."""
    parts: dict[str, float] = dict.fromkeys(Attribution.model_fields, 0.0)
    for span, _, began_s, ended_s, staged_s in critical_path(spans, cluster, source, start_s, end_s):
        parts["staging_s"] += staged_s
        parts["wait_s" if span is None else PART[span.kind]] += ended_s - began_s - staged_s
    return Attribution(**parts)


def critical_path(
    spans: Iterable[Span], cluster: ClusterSpec, source: str, start_s: float, end_s: float
) -> Iterator[Segment]:
    """The pieces of [start_s, end_s), the last first."""
    endings: dict[str, list[Span]] = defaultdict(list)
    sends: dict[tuple[str, str, int], Span] = {}
    for item in spans:
        if item.kind in RANK:
            endings[item.device].append(item)
        if item.kind == "send":
            sends[item.device, item.peer, item.message] = item
    for stack in endings.values():
        stack.sort(key=lambda item: (item.end_s, RANK[item.kind]))
    device, now_s = source, end_s
    while now_s > start_s:
        span = _last_ending(endings[device], now_s)
        ended_s = start_s if span is None else max(start_s, min(now_s, span.end_s))
        if now_s > ended_s:
            yield Segment(None, device, ended_s, now_s)
        if span is None:
            return
        began_s, at = span.start_s, device
        if span.kind == "recv":
            sent = sends.get((span.peer, span.device, span.message))
            began_s = sent.start_s if sent else span.start_s
            device = span.peer
        began_s = max(start_s, min(ended_s, began_s))
        staged_s = min(ended_s - began_s, _staging_s(span, cluster)) if span.kind == "recv" else 0.0
        yield Segment(span, at, began_s, ended_s, staged_s)
        now_s = began_s


def _last_ending(stack: list[Span], now_s: float) -> Span | None:
    """Pops the activity that ended last by `now_s`; later ones cannot be on the path any more."""
    while stack:
        span = stack.pop()
        if span.end_s <= now_s + CLOCK_TOLERANCE_S:
            return span
    return None


def _staging_s(span: Span, cluster: ClusterSpec) -> float:
    """Copies between accelerator and network stack on both sides, which a message's time includes."""
    rates = [cluster.devices[cluster.rank(end)].staging_byte_per_s for end in (span.device, span.peer)]
    return sum(span.bytes / rate for rate in rates if rate)
