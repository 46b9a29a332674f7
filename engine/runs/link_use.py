"""How much of every link is in use while a run goes on: payload bit/s since the last sample. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from engine.domain.events import LinkSample
from engine.domain.network import LinkState
from engine.domain.units import BITS_PER_BYTE

PAYLOAD_FRAC = 1448 / 1514
"""The payload's part of a full Ethernet frame at MTU 1500."""


class LinkMeter:
    """Keeps each link's counter at its last sample. Times are virtual seconds, rates virtual bit/s."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, bool], tuple[float, int]] = {}

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
        before_s, before_bytes = self._last.get(way, (now_s, state.sent_bytes))
        self._last[way] = (now_s, state.sent_bytes)
        elapsed_s = now_s - before_s
        if elapsed_s <= 0:
            return 0.0
        return (state.sent_bytes - before_bytes) * BITS_PER_BYTE * PAYLOAD_FRAC / elapsed_s
