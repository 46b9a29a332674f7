"""The watchdog of a device: it suspects peers that stay silent while a program waits for them.

A killed process closes its connections. A frozen one, or one behind a link that is down, only stays silent,
and TCP notices that after half a minute. So a device that waits for a silent peer pings it, and suspects it
when no byte arrives within a limit. Any byte counts as an answer: a slow transfer is no failure. While
messages flow, no pings are sent. A device that got no processor for a while has sent no pings either, so
it suspects nobody for that while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

CHECK_PERIOD_S = 0.1
"""Wall seconds between two checks."""

PING_AFTER_S = 0.3
"""Virtual seconds of silence before a peer is pinged. TCP detects that its last packet was lost sooner than
that; an earlier ping would reveal the gap to TCP and so change the run.
"""

LEAST_WAITS = 3
"""A device waits at least so often before it suspects a peer: for a message, then after each ping."""

LEAST_SILENCE_S = 1.0
"""Wall seconds that a process on a busy host may be silent without having failed."""


class SilenceLimits(NamedTuple):
    """Wall seconds of silence after which a peer is pinged, and after which it is suspected."""

    ping_after_s: float
    suspect_after_s: float


def silence_limits(silence_s: float, dilation: float) -> SilenceLimits:
    """The limits of a run whose peers may be silent for `silence_s` virtual seconds."""
    suspect_after_s = max(LEAST_SILENCE_S, silence_s * dilation)
    return SilenceLimits(min(PING_AFTER_S * dilation, suspect_after_s / LEAST_WAITS), suspect_after_s)


class PeerWatchdog:
    """Watches the peers that a device waits for. All times are wall seconds.

    `awaited()` gives the peers that programs wait for, and since when; `last_byte_s(peer)` gives the time of
    the last byte from a peer. `ping` sends a ping; `report` names a suspected peer to the supervisor, once,
    and the time of its last byte if it is only silent (None: it cannot be reached).
    """

    def __init__(
        self,
        limits: SilenceLimits,
        awaited: Callable[[], Mapping[int, float]],
        last_byte_s: Callable[[int], float],
        ping: Callable[[int], None],
        report: Callable[[int, float | None], None],
    ):
        self.limits = limits
        self._awaited, self._last_byte_s, self._ping, self._report = awaited, last_byte_s, ping, report
        self._checked_s = 0.0
        self._pings_s: dict[int, list[float]] = {}  # to each peer, in its present silence
        self._trusted_s: dict[int, float] = {}
        self.suspected: set[int] = set()

    def check(self, now_s: float) -> None:
        """Ping the awaited peers that are silent; suspect those that do not answer."""
        if now_s - self._checked_s < CHECK_PERIOD_S:
            return
        self._checked_s = now_s
        for peer, since_s in self._awaited().items():
            last_byte_s = self._last_byte_s(peer)
            begun_s = max(since_s, last_byte_s, self._trusted_s.get(peer, 0.0))
            pings_s = [ping_s for ping_s in self._pings_s.get(peer, []) if ping_s > begun_s]
            if now_s - begun_s > self.limits.suspect_after_s and len(pings_s) + 1 >= LEAST_WAITS:
                self.suspect(peer, last_byte_s)
            elif now_s - max([begun_s, *pings_s[-1:]]) > self.limits.ping_after_s:
                pings_s.append(now_s)
                self._ping(peer)
            self._pings_s[peer] = pings_s

    def suspect(self, peer: int, last_byte_s: float | None = None) -> None:
        """Report `peer` once. The supervisor decides whether it has failed, because it has reports of all
        devices.
        """
        if peer not in self.suspected:
            self.suspected.add(peer)
            self._report(peer, last_byte_s)

    def trust(self, peer: int, now_s: float) -> None:
        """Trust `peer`, which has joined (again) or runs: it may be suspected for its silence from now on."""
        self._trusted_s[peer] = now_s
        self.suspected.discard(peer)
