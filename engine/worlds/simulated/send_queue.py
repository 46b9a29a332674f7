"""The queue in front of the link over which a device sends, while several connections use it.

A message puts the segments that TCP may have in the queue behind those that wait there already. One of two
segments is in it as a whole, and so are the first segments of the first message on an idle link: the link
carries them at its own rate, whatever happens further on, and what a slower or shared link cannot take waits
there. A longer message that is not the first puts two segments in and then waits for its turn, by TCP's small
queues (net/ipv4/tcp_output.c, `tcp_small_queue_check`): segments of such messages take turns, which is the
equal sharing of `flows.py`. So the queue decides when a message begins to share. Compared with emulated links
in docs/reference/prediction.md.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.domain.token_bucket import SEGMENT_BYTES
from engine.domain.units import transfer_s
from engine.worlds.simulated.flows import DirectedLink, Flow, Route, SharedLinks

FIRST_BYTES = 10 * SEGMENT_BYTES
"""What the first message on an idle link has in the queue before others come: TCP's initial window
(RFC 6928). Measured: 4 to 8 segments at 5 Mbit/s, 17 to 37 at 50 Mbit/s."""

AHEAD_BYTES = 2 * SEGMENT_BYTES
"""What any message has in the queue: TCP hands over two segments at least, as one piece where a link is not
slow (`tcp_min_tso_segs` in ip-sysctl.rst; `tcp_rtx_queue_empty_or_single_skb` in `tcp_small_queue_check`).
"""

LONG_BYTES = 1 << 16
"""The size above which messages share from the start: ten segments ahead change their time by a
few percent.
"""


class Turn(NamedTuple):
    """When the first byte of a message is sent, and when the link has carried all of it, if it is carried as
    a whole.
    """

    start_s: float
    end_s: float | None


class SendQueue:
    """The queue of `link`. Long messages may share it from `whole_until_s` on, when what the link carries as
    a whole is through; the first segments of all that wait are through at `line_until_s`.
    """

    def __init__(self, link: DirectedLink, shared: SharedLinks):
        self.link, self.shared = link, shared
        self.whole_until_s = self.line_until_s = 0.0
        self._carried: dict[Flow, float] = {}
        """Flows of messages carried as a whole, and when this link is through with them."""

    def enter(self, now_s: float, size_bytes: float, route: Route) -> Turn:
        """Put a message in the queue now, on its way over `route`."""
        if self._carried:
            self._let_go(now_s)
        bit_per_s = self.shared.capacity[self.link]
        first = self.line_until_s <= now_s and self.shared.is_idle(self.link)
        if size_bytes <= AHEAD_BYTES or (first and size_bytes <= FIRST_BYTES):
            start_s = max(now_s, self.line_until_s)
            self.whole_until_s = self.line_until_s = start_s + transfer_s(size_bytes, bit_per_s)
            return Turn(start_s, self.whole_until_s)
        start_s = max(now_s, self.whole_until_s)
        ahead_bytes = FIRST_BYTES if first else AHEAD_BYTES
        free = first and size_bytes <= LONG_BYTES and all(map(self.shared.is_idle, route))
        if free:  # else a link further on holds the first segments up
            self.whole_until_s = now_s + transfer_s(FIRST_BYTES, bit_per_s)
        self.line_until_s = max(start_s, self.line_until_s) + transfer_s(ahead_bytes, bit_per_s)
        return Turn(start_s, None)

    def start(self, now_s: float, flow: Flow, turn: Turn) -> None:
        """Take note that the first byte of a message is sent: its flow is on the links from now on."""
        if self._carried:
            self._let_go(now_s)
        if turn.end_s is not None and len(flow.route) > 1 and self.shared.is_idle(self.link):
            self._carried[flow] = turn.end_s

    def _let_go(self, now_s: float) -> None:
        """Take the messages off this link that it has carried; links further on may not be through yet."""
        for flow in [flow for flow, end_s in self._carried.items() if end_s <= now_s]:
            del self._carried[flow]
            self.shared.leave(flow, self.link)
