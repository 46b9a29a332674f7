"""TCP's sender of one message: what it sends when, and how it handles acknowledgements and timers.

The state of a sender is `open` until a loss is known, `fast_recovery` after RACK has found one, and
`timeout_recovery` after a retransmission time-out; an ACK of everything up to `recovery_point` reopens it.
A tail loss probe (RFC 8985, section 7) sends the last segment again if nothing is heard for two round trips.
It is not sent if one segment alone is in flight: its ACK may be delayed, and the time-out comes first.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Literal, NamedTuple

from engine.worlds.simulated.tcp.congestion import CongestionWindow
from engine.worlds.simulated.tcp.path import LossyPath, Transmission
from engine.worlds.simulated.tcp.rack import TIMER_MIN_S, Rack
from engine.worlds.simulated.tcp.round_trip import RTO_MAX_S, RoundTripTime

DUP_THRESH = 3
"""The number of segments acknowledged beyond a gap that shows a loss without a reordering window (RFC 5681,
8985).
"""

SenderState = Literal["open", "fast_recovery", "timeout_recovery"]


class Delivery(NamedTuple):
    """When the message's last segment had left for the first time, and when all of them had arrived.

    Both are seconds after the start. `retransmission_was_lost`: a time-out came during fast recovery, so
    segments of later messages could not have shown the loss sooner.
    """

    left_s: float
    arrived_s: float
    retransmission_was_lost: bool


class TcpSender:
    """Sends all segments of `path`; times are seconds from the start of the message.

    Segments are numbered 0, 1, …; those behind the message's own belong to the next message.
    """

    def __init__(self, congestion: CongestionWindow, round_trip: RoundTripTime, path: LossyPath):
        self.congestion, self.round_trip, self.path = congestion, round_trip, path
        self.total = len(path.received)
        self.now_s = 0.0
        self.state: SenderState = "open"
        # sequence numbers
        self.snd_una = 0  # the first segment that is not acknowledged
        self.snd_nxt = 0  # the first that was never sent
        self.recovery_point = 0  # the recovery or probe is over when SND.UNA gets here
        # segments
        self.sacked = [False] * self.total  # acknowledged, beyond SND.UNA selectively
        self.sacked_beyond_gap = 0  # how many were acknowledged selectively so far
        self.in_flight: dict[int, Transmission] = {}  # in the order of sending
        self.lost: deque[int] = deque()  # to be sent again, in the order of their numbers
        self.transmissions = 0
        self.deliveries_acked = 0  # of the path's `deliveries`
        self.max_in_flight = 0
        self.cwnd_limited_until = 0  # the window was full when segments before this had been sent
        self.retransmission_was_lost = False
        # timers
        self.rack = Rack()
        self.timer_started_s = 0.0  # of the probe and the retransmission time-out
        self.backoff = 1  # of the time-out; doubles each time
        self.probed = self.probe_repaired = False

    def run(self) -> Delivery:
        """Send until all of the message has arrived, and take in the ACKs that are still on their way."""
        while self.path.missing:
            self._send_what_may_go()
            ack_s = self.path.acks[0].received_s if self.path.acks else math.inf
            timer_s = self._timer_s()
            send_s = self.path.accepts_s if self._may_send() else math.inf
            self.now_s = max(self.now_s, min(ack_s, timer_s, send_s))
            if ack_s <= min(timer_s, send_s):
                self._on_ack()
            elif timer_s < send_s:
                self._on_timer()
        while self.path.acks:
            self.now_s = self.path.acks[0].received_s
            self._on_ack()
        if self.state == "fast_recovery":
            self._end_recovery()
        return Delivery(self.path.left_s, self.path.arrived_s, self.retransmission_was_lost)

    # sending

    def _may_send(self) -> bool:
        is_work_left = bool(self.lost) or self.snd_nxt < self.total
        return is_work_left and self.congestion.has_room(len(self.in_flight))

    def _send_what_may_go(self) -> None:
        """Send lost segments, then new ones, as far as the window and the link's queue have room."""
        while self._may_send() and self.path.accepts_s <= self.now_s:
            segment = self.lost.popleft() if self.lost else self.snd_nxt
            if segment == self.snd_nxt:
                self.snd_nxt += 1
            if segment == self.snd_una or not self.in_flight or self.state == "open":
                self.timer_started_s = self.now_s
            self._send(segment)
        if not self.congestion.has_room(len(self.in_flight)):
            self.cwnd_limited_until = self.snd_nxt

    def _send(self, segment: int) -> None:
        self.transmissions += 1
        self.in_flight.pop(segment, None)
        self.in_flight[segment] = transmission = Transmission(self.transmissions, self.now_s)
        self.congestion.prr_out += 1
        self.max_in_flight = max(self.max_in_flight, len(self.in_flight))
        self.path.carry(segment, transmission)

    # acknowledgements

    def _on_ack(self) -> None:
        """Take in the next ACK: what has arrived, how long that took, and what must have been lost."""
        old_una = self.snd_una
        newly_acked = self._mark_acked(self.path.acks.popleft().deliveries)
        while self.snd_una < self.snd_nxt and self.sacked[self.snd_una]:
            self.snd_una += 1
        advanced = self.snd_una > old_una
        self.sacked_beyond_gap += newly_acked - (self.snd_una - old_una)
        if advanced:
            self.timer_started_s, self.backoff = self.now_s, 1
            self.congestion.on_new_ack()
        if self.state != "fast_recovery":
            limited = old_una < self.cwnd_limited_until
            self.congestion.grow(newly_acked, limited, self.max_in_flight)
        if self.snd_una >= self.recovery_point:
            self._end_recovery()
        found = self._detect_losses()
        if self.state == "fast_recovery":
            self.congestion.reduce(newly_acked, len(self.in_flight), progress=advanced and not found)

    def _mark_acked(self, deliveries: int) -> int:
        """Take the path's first `deliveries` as acknowledged; returns how many segments were not before.

        The round trip is measured from a segment's latest transmission only.
        """
        newly_acked = 0
        for segment, transmission in self.path.deliveries[self.deliveries_acked : deliveries]:
            self.rack.on_acked(transmission, self.now_s)
            if not self.sacked[segment]:
                self.sacked[segment] = True
                newly_acked += 1
                if self.in_flight.pop(segment, None) == transmission:
                    self.round_trip.measure(self.now_s - transmission.sent_s)
        self.deliveries_acked = deliveries
        if self.lost:
            self.lost = deque(segment for segment in self.lost if not self.sacked[segment])
        return newly_acked

    def _end_recovery(self) -> None:
        """End a recovery: everything up to `recovery_point` is acknowledged."""
        if self.state == "fast_recovery":
            self.congestion.leave_fast_recovery()
        elif self.state == "open" and self.probed and self.probe_repaired:
            self.congestion.on_probe_repaired()
        self.state = "open"
        self.probed = False

    def _detect_losses(self) -> bool:
        """Have RACK's lost segments sent again; returns whether there are any.

        The reordering window is a quarter of the round trip, unless DupThresh segments beyond the gap have
        been acknowledged or a recovery is going on.
        """
        window_s = 0.0
        if self.state == "open" and self.sacked_beyond_gap < DUP_THRESH:
            window_s = self.path.conditions.round_trip_s / 4
        lost = self.rack.find_lost(self.in_flight, window_s, self.now_s)
        for segment in lost:
            del self.in_flight[segment]
        if lost:
            self.lost = deque(sorted([*self.lost, *lost]))
            if self.state == "open":
                self.congestion.enter_fast_recovery()
                self.state, self.recovery_point = "fast_recovery", self.snd_nxt
        return bool(lost)

    # timers

    def _may_probe(self) -> bool:
        is_alone = self.snd_nxt - self.snd_una <= 1
        return self.state == "open" and not self.probed and not self.sacked_beyond_gap and not is_alone

    def _timer_s(self) -> float:
        """When the next timer expires: reordering, else probe, else retransmission time-out."""
        if self.snd_nxt == self.snd_una or self.rack.timer_s < math.inf:
            return self.rack.timer_s
        after_s = min(RTO_MAX_S, self.round_trip.timeout_s * self.backoff)
        if self._may_probe():
            after_s = min(after_s, 2 * self.round_trip.srtt_s + TIMER_MIN_S)
        return self.timer_started_s + after_s

    def _on_timer(self) -> None:
        if self.rack.timer_s < math.inf:
            self.rack.on_timer()
            if self._detect_losses():
                self.congestion.reduce(1, len(self.in_flight), progress=False)
        elif self._may_probe():
            self._probe()
        else:
            self._time_out()

    def _probe(self) -> None:
        """Send a new segment, or else the last one again, so that its ACK shows what was lost."""
        segment = min(self.snd_nxt, self.total - 1)
        self.snd_nxt = max(self.snd_nxt, segment + 1)
        self.probed, self.probe_repaired = True, not self.path.received[segment]
        self.recovery_point = self.snd_nxt
        self.timer_started_s = self.now_s
        self._send(segment)

    def _time_out(self) -> None:
        """Send all that is not acknowledged again, one segment at first; double the time-out."""
        self.retransmission_was_lost |= self.state == "fast_recovery"
        self.congestion.on_timeout(first_loss=self.state == "open")
        self.state, self.recovery_point, self.probed = "timeout_recovery", self.snd_nxt, False
        unacknowledged = range(self.snd_una, self.snd_nxt)
        self.lost = deque(segment for segment in unacknowledged if not self.sacked[segment])
        self.in_flight.clear()
        self.timer_started_s = self.now_s
        self.backoff *= 2
