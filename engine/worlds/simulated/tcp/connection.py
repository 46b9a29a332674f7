"""What one simulated TCP connection keeps from one message to the next, and how it delivers a message."""

from __future__ import annotations

from random import Random

from engine.worlds.simulated.tcp.congestion import CongestionWindow
from engine.worlds.simulated.tcp.path import LossyPath, PathConditions
from engine.worlds.simulated.tcp.round_trip import RoundTripTime
from engine.worlds.simulated.tcp.sender import Delivery, TcpSender

FOLLOWING_SEGMENTS = 3
"""Segments of a following message whose acknowledgements show what this one has lost (DupThresh)."""


class TcpConnection:
    """The congestion window and round-trip time of one (src, dst) pair."""

    def __init__(self) -> None:
        self.congestion = CongestionWindow()
        self.round_trip = RoundTripTime()

    def deliver(
        self, segments: int, conditions: PathConditions, random: Random, followed: bool = False
    ) -> Delivery:
        """Send a message of `segments` segments. `followed`: another message comes right behind it."""
        self.round_trip.start(conditions.round_trip_s)
        total = segments + (FOLLOWING_SEGMENTS if followed else 0)
        path = LossyPath(conditions, random, segments, total)
        return TcpSender(self.congestion, self.round_trip, path).run()
