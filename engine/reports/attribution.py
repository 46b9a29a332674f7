"""Attributes the end-to-end time to its causes by one walk back along the critical path.

The walk starts at the source, at the end of the last request. Each step takes the activity that ended last on
the current device and goes back to its start; a received message leads to its sender, at the time of the call
of send. Time in which no activity ended is waiting. Every instant belongs to exactly one part, so the parts
add up to the latency.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
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
    spans: Iterable[Span],
    cluster: ClusterSpec,
    source: str,
    start_s: float,
    end_s: float,
    idle: Sequence[tuple[float, float]] = (),
) -> Attribution:
    """The parts of [start_s, end_s) along the critical path that ends at device `source`.

    Of the time in which nothing ended, that within the `idle` times counts as idle, the rest as waiting. The
    idle times come in their order, none within another.
    """
    starts_s, stops_s = [start for start, _ in idle], [stop for _, stop in idle]
    parts: dict[str, float] = dict.fromkeys(Attribution.model_fields, 0.0)
    for span, _, began_s, ended_s in _walk(spans, source, start_s, end_s):
        if span is None:
            met = idle[bisect_right(stops_s, began_s) : bisect_left(starts_s, ended_s)]
            idle_s = sum(min(ended_s, stop) - max(began_s, start) for start, stop in met)
            parts["idle_s"] += idle_s
            parts["wait_s"] += ended_s - began_s - idle_s
            continue
        took_s = ended_s - began_s
        if span.kind == "recv":
            staged_s = min(took_s, _staging_s(span, cluster))
            parts["staging_s"] += staged_s
            took_s -= staged_s
        parts[PART[span.kind]] += took_s
    return Attribution(**parts)


def critical_path(
    spans: Iterable[Span], cluster: ClusterSpec, source: str, start_s: float, end_s: float
) -> Iterator[Segment]:
    """The pieces of [start_s, end_s), the last first."""
    for span, device, began_s, ended_s in _walk(spans, source, start_s, end_s):
        received = span is not None and span.kind == "recv"
        staged_s = min(ended_s - began_s, _staging_s(span, cluster)) if span and received else 0.0
        yield Segment(span, device, began_s, ended_s, staged_s)


def _walk(
    spans: Iterable[Span], source: str, start_s: float, end_s: float
) -> Iterator[tuple[Span | None, str, float, float]]:
    """The critical path as (activity, device, began, ended), the last first. Most spans of a long run are on
    it, so it must not take long.
    """
    endings: dict[str, list[Span]] = defaultdict(list)
    sends: dict[tuple[str, str, int], Span] = {}
    for item in spans:
        kind = item.kind
        if kind in RANK:
            endings[item.device].append(item)
            if kind == "send":
                sends[item.device, item.peer, item.message] = item
    for stack in endings.values():
        _sort(stack)
    device, now_s = source, end_s
    while now_s > start_s:
        stack, latest_s = endings[device], now_s + CLOCK_TOLERANCE_S
        while stack and stack[-1].end_s > latest_s:
            stack.pop()  # what ended later cannot be on the path any more
        if not stack:
            yield None, device, start_s, now_s
            return
        span = stack.pop()
        ended_s = span.end_s
        if ended_s < now_s:
            ended_s = max(ended_s, start_s)
            yield None, device, ended_s, now_s
        else:
            ended_s = now_s
        began_s, at = span.start_s, device
        if span.kind == "recv":
            sent = sends.get((span.peer, span.device, span.message))
            began_s = sent.start_s if sent else span.start_s
            device = span.peer
        if began_s > ended_s:
            began_s = ended_s
        if began_s < start_s:
            began_s = start_s
        yield span, at, began_s, ended_s
        now_s = began_s


def _sort(spans: list[Span]) -> None:
    """Sort by end, and those that end together by `RANK`, which few runs need."""
    spans.sort(key=attrgetter("end_s"))
    ends = list(map(attrgetter("end_s"), spans))
    together = [index for index, (a, b) in enumerate(pairwise(ends)) if a == b]
    for index in together:
        if RANK[spans[index].kind] > RANK[spans[index + 1].kind]:
            start, stop = bisect_left(ends, ends[index]), bisect_right(ends, ends[index])
            spans[start:stop] = sorted(spans[start:stop], key=lambda item: RANK[item.kind])


def _staging_s(span: Span, cluster: ClusterSpec) -> float:
    """Copies between accelerator and network stack on both sides, which a message's time includes."""
    rates = [cluster.devices[cluster.rank(end)].staging_byte_per_s for end in (span.device, span.peer)]
    return sum(span.bytes / rate for rate in rates if rate)
