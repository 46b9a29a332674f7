"""The watchdog of a device: it suspects peers that stay silent while a program waits for them.

A killed process closes its connections. A frozen one, or one behind a link that is down, only stays silent,
and TCP notices that after half a minute. So a device that waits for a silent peer asks it, and suspects it
when no byte arrives within a limit. Any byte counts as an answer: a slow transfer is no failure. While
messages flow, nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

CHECK_PERIOD_S = 0.1
"""Wall seconds between two checks."""

ASK_AFTER_S = 0.3
"""Virtual seconds of silence before a peer is asked. TCP notices a lost last packet sooner than that; asking
earlier would show it the gap and change the run.
"""

QUESTIONS = 3
"""At least so many questions are asked before a peer is suspected."""

LEAST_SILENCE_S = 1.0
"""Wall seconds: a process on a busy host may be silent for so long without having failed."""


class SilenceLimits(NamedTuple):
    """Wall seconds of silence after which a peer is asked, and after which it is suspected."""

    ask_after_s: float
    suspect_after_s: float


def silence_limits(silence_s: float, dilation: float) -> SilenceLimits:
    """The limits of a run whose peers may be silent for `silence_s` virtual seconds."""
    suspect_after_s = max(LEAST_SILENCE_S, silence_s * dilation)
    return SilenceLimits(min(ASK_AFTER_S * dilation, suspect_after_s / QUESTIONS), suspect_after_s)


class PeerWatchdog:
    """Watches the peers that a device waits for. All times are wall seconds.

    `awaited()` gives the peers that programs wait for, and since when; `heard_s(peer)` the time of the last
    byte from a peer. `ask` sends a question; `report` tells the supervisor of a suspected peer, once.
    """

    def __init__(
        self,
        limits: SilenceLimits,
        awaited: Callable[[], Mapping[int, float]],
        heard_s: Callable[[int], float],
        ask: Callable[[int], None],
        report: Callable[[int], None],
    ):
        self.limits = limits
        self._awaited, self._heard_s, self._ask, self._report = awaited, heard_s, ask, report
        self._checked_s = 0.0
        self._asked_s: dict[int, float] = {}
        self.suspected: set[int] = set()

    def check(self, now_s: float) -> None:
        """Ask the peers that are awaited and silent; suspect those that do not answer."""
        if now_s - self._checked_s < CHECK_PERIOD_S:
            return
        self._checked_s = now_s
        for peer, since_s in self._awaited().items():
            silent_s = now_s - max(since_s, self._heard_s(peer))
            asked_ago_s = now_s - self._asked_s.get(peer, 0.0)
            if silent_s > self.limits.suspect_after_s:
                self.suspect(peer)
            elif silent_s > self.limits.ask_after_s and asked_ago_s > self.limits.ask_after_s:
                self._asked_s[peer] = now_s
                self._ask(peer)

    def suspect(self, peer: int) -> None:
        """Report `peer`, unless that was done. The supervisor decides, because it knows more."""
        if peer not in self.suspected:
            self.suspected.add(peer)
            self._report(peer)

    def trust(self, peer: int) -> None:
        """`peer` has joined (again): it may be suspected again."""
        self.suspected.discard(peer)
