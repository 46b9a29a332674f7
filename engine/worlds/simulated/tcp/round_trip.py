"""TCP's round-trip time estimate and retransmission time-out (RFC 6298), as Linux computes them."""

from __future__ import annotations

RTO_MIN_S = 0.2
"""Linux' TCP_RTO_MIN: the least that the time-out adds to the round trip."""
RTO_MAX_S = 120.0
"""Linux' TCP_RTO_MAX."""


class RoundTripTime:
    """The estimate of a connection's round-trip time. `srtt_s` is the smoothed round-trip time, `rttvar_s`
    its mean deviation; 0 until the first `start`.
    """

    def __init__(self) -> None:
        self.srtt_s = 0.0
        self.rttvar_s = 0.0

    def start(self, round_trip_s: float) -> None:
        """Take the first measurement R (rule 2.2): SRTT = R, RTTVAR = R / 2. Later calls do nothing."""
        if not self.srtt_s:
            self.srtt_s, self.rttvar_s = round_trip_s, round_trip_s / 2

    def measure(self, round_trip_s: float) -> None:
        """Take a later measurement R (rule 2.3).

        RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|, then SRTT = 7/8 SRTT + 1/8 R.
        """
        self.rttvar_s += (abs(round_trip_s - self.srtt_s) - self.rttvar_s) / 4
        self.srtt_s += (round_trip_s - self.srtt_s) / 8

    @property
    def timeout_s(self) -> float:
        """RTO = SRTT + 4 RTTVAR. Where the RFC has a minimum for the sum, Linux has one for 4 RTTVAR."""
        return self.srtt_s + max(RTO_MIN_S, 4 * self.rttvar_s)
