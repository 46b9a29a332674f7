"""What a fresh TCP connection would add to the first message over a long path. Pure.

Predictions and emulations give a connection the windows of one that has been in use for a while. A fresh one
sends ten segments (RFC 6928) and doubles with every round trip (RFC 5681, slow start), which counts where
round trips are long.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.token_bucket import SEGMENT_BYTES
from engine.domain.trace import Mark, Span
from engine.domain.units import human, human_s, transfer_s

INITIAL_SEGMENTS = 10
FAR_S = 0.02
"""One-way delay above which a report says what a fresh connection would need."""

WORTH_SAYING_S = 1e-3


class FirstMessage(NamedTuple):
    """The first message of one pair, and what it takes on a connection in use and on a fresh one."""

    span: Span
    delay_s: float
    used_s: float
    fresh_s: float


def slow_start_s(size_bytes: float, bit_per_s: float, round_trip_s: float) -> float:
    """Seconds for which a fresh connection waits for acknowledgements while it sends so many bytes."""
    waited_s, window_bytes = 0.0, INITIAL_SEGMENTS * SEGMENT_BYTES
    while size_bytes > window_bytes and transfer_s(window_bytes, bit_per_s) < round_trip_s:
        waited_s += round_trip_s - transfer_s(window_bytes, bit_per_s)
        size_bytes, window_bytes = size_bytes - window_bytes, 2 * window_bytes
    return waited_s


def slow_start_notes(cluster: ClusterSpec, trace: Iterable[Span | Mark]) -> tuple[str, ...]:
    """One sentence about the first message that slow start would delay most; none on short paths."""
    if sum(link.delay(way) for link in cluster.links for way in (True, False)) <= FAR_S:
        return ()
    firsts = [_first(cluster, item) for item in trace if isinstance(item, Span) and item.message == 0]
    delayed = [one for one in firsts if one is not None and one.fresh_s - one.used_s > WORTH_SAYING_S]
    if not delayed:
        return ()
    worst = max(delayed, key=lambda one: one.fresh_s - one.used_s)
    others = f" (so for {len(delayed)} pairs of devices)" if len(delayed) > 1 else ""
    return (
        f"The first message from {worst.span.device} to {worst.span.peer}, "
        f"{human(worst.span.bytes, 'B')} over {human_s(worst.delay_s)} of delay, counts as on a connection "
        f"in use, which takes {human_s(worst.used_s)}; on a fresh one TCP's slow start makes that "
        f"{human_s(worst.fresh_s)}{others}.",
    )


def _first(cluster: ClusterSpec, span: Span) -> FirstMessage | None:
    """What `span` says of its pair; None if it is no message sent over a long path that loses nothing."""
    if span.kind != "send":
        return None
    ends = cluster.rank(span.device), cluster.rank(span.peer)
    there, back = cluster.path(*ends), cluster.path(*reversed(ends))
    delay_s = sum(cluster.links[hop.link].delay(hop.forward) for hop in there)
    if delay_s <= FAR_S or any(cluster.links[hop.link].loss(hop.forward) for hop in (*there, *back)):
        return None  # lost packets are simulated, and slow start with them
    bit_per_s = min(cluster.links[hop.link].rate(hop.forward) for hop in there)
    round_trip_s = delay_s + sum(cluster.links[hop.link].delay(hop.forward) for hop in back)
    used_s = transfer_s(span.bytes, bit_per_s) + delay_s
    return FirstMessage(span, delay_s, used_s, used_s + slow_start_s(span.bytes, bit_per_s, round_trip_s))
