"""How much of every link is in use while a run goes on: payload bit/s since the last sample. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.domain.events import LinkSample
from engine.domain.network import LinkState
from engine.domain.units import BITS_PER_BYTE

PAYLOAD_FRAC = 1448 / 1514
"""The payload's part of a full Ethernet frame at MTU 1500."""


class _Reading(NamedTuple):
    time_s: float
    sent_bytes: int
    probe_ends: int
    use_bit_per_s: float


class LinkMeter:
    """Keeps each link's counter at its last sample. Times are virtual seconds, rates virtual bit/s.

    Bytes of a measurement are no use of the link by the run, and cannot be told from it: a direction that is
    or was measured since the last sample keeps the use that it had.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[int, bool], _Reading] = {}

    def sample(self, now_s: float, states: Iterable[LinkState]) -> tuple[LinkSample, ...]:
        """The payload rate of every direction of every link since the last sample; 0 in the first one."""
        return tuple(
            LinkSample(
                link=state.link,
                forward=state.forward,
                up=state.up,
                bit_per_s=self._used_bit_per_s(now_s, state),
                set_bit_per_s=state.set_bit_per_s,
                measured_bit_per_s=state.measured_bit_per_s,
            )
            for state in states
        )

    def _used_bit_per_s(self, now_s: float, state: LinkState) -> float:
        way = (state.link, state.forward)
        last = self._last.get(way)
        use_bit_per_s = 0.0
        if last is not None and (state.probe_ends != last.probe_ends or state.probe_ends % 2):
            use_bit_per_s = last.use_bit_per_s
        elif last is not None and now_s > last.time_s:
            sent_bits = (state.sent_bytes - last.sent_bytes) * BITS_PER_BYTE
            use_bit_per_s = sent_bits * PAYLOAD_FRAC / (now_s - last.time_s)
        self._last[way] = _Reading(now_s, state.sent_bytes, state.probe_ends, use_bit_per_s)
        return use_bit_per_s
