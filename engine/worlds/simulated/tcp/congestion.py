"""TCP's congestion window: Reno (RFC 5681) and proportional rate reduction (RFC 6937), in segments."""

from __future__ import annotations

import math

INITIAL_CWND = 20.0
"""The initial window: 10 segments (RFC 6928), doubled by the messages with which a run warms its connections
up.
"""
MIN_SSTHRESH = 2.0


class CongestionWindow:
    """The congestion window: `cwnd` segments may be in flight. It doubles per round trip below `ssthresh`,
    and grows by 1 above.
    """

    def __init__(self) -> None:
        self.cwnd = INITIAL_CWND
        self.ssthresh = math.inf
        self.prior_cwnd = 1.0  # before the last fast recovery
        self.prr_delivered = self.prr_out = 0  # segments delivered and sent since that recovery began
        self.owes_reduction = False

    def has_room(self, in_flight: int) -> bool:
        """Whether another segment may be sent."""
        return in_flight < int(self.cwnd)

    def grow(self, acked: int, limited: bool, max_in_flight: int) -> None:
        """Grow the window, as `acked` segments were acknowledged; `limited`: the window was full when they
        were in flight.

        An unused window does not grow, but for slow start up to twice what was ever in flight.
        """
        if self.cwnd < self.ssthresh:
            if limited or self.cwnd < 2 * max_in_flight:
                self.cwnd = min(self.cwnd + acked, self.ssthresh)
        elif limited:
            self.cwnd += acked / int(self.cwnd)

    def halve_ssthresh(self) -> None:
        """A loss: ssthresh is half the window."""
        self.ssthresh = max(MIN_SSTHRESH, self.cwnd // 2)

    def enter_fast_recovery(self) -> None:
        """Begin to reduce the window to ssthresh (`reduce`)."""
        self.prior_cwnd = self.cwnd
        self.halve_ssthresh()
        self.prr_delivered = self.prr_out = 0

    def reduce(self, delivered: int, in_flight: int, progress: bool) -> None:
        """Set the window during fast recovery (RFC 6937, section 3): about as much goes out as arrives.

        With more in flight than ssthresh, the share ssthresh / prior_cwnd of it; with less, slow start up to
        ssthresh, one segment faster on `progress`: the ACK moved SND.UNA and showed no further loss.
        """
        self.prr_delivered += delivered
        if in_flight > self.ssthresh:
            share = math.ceil(self.ssthresh * self.prr_delivered / self.prior_cwnd) - self.prr_out
        else:
            share = max(self.prr_delivered - self.prr_out, delivered) + progress
            share = min(share, int(self.ssthresh) - in_flight)
        if not self.prr_out:  # the first retransmission goes out in any case
            share = max(share, 1)
        self.cwnd = in_flight + max(share, 0)

    def leave_fast_recovery(self) -> None:
        self.cwnd = self.ssthresh

    def on_probe_repaired(self) -> None:
        """Let the next ACK halve the window, as a tail loss probe has repaired a loss (RFC 8985, section
        7.4).
        """
        self.owes_reduction = True

    def on_new_ack(self) -> None:
        """Act on an ACK that has moved SND.UNA."""
        if self.owes_reduction:
            self.halve_ssthresh()
            self.cwnd, self.owes_reduction = self.ssthresh, False

    def on_timeout(self, first_loss: bool) -> None:
        """A retransmission time-out leaves one segment; `first_loss`: ssthresh was not halved before."""
        if first_loss:
            self.halve_ssthresh()
        self.cwnd = 1.0
