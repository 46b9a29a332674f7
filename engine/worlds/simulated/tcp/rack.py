"""RACK (RFC 8985): a segment is lost if one that was sent later has arrived, and enough time has passed."""

from __future__ import annotations

import math
from collections.abc import Mapping

from engine.worlds.simulated.tcp.path import Transmission

TIMER_MIN_S = 0.002
"""The least time of a reordering timer or tail loss probe (Linux' TCP_TIMEOUT_MIN)."""
ROUNDING_S = 1e-9
"""The difference below which times are equal: they differ by rounding errors only."""


class Rack:
    """Finds lost segments by what was sent later and has arrived.

    `newest` is the latest transmission that was acknowledged, and `rtt_s` what its round trip took.
    """

    def __init__(self) -> None:
        self.newest = Transmission(0, -math.inf)
        self.rtt_s = 0.0
        self.timer_s = math.inf
        """When to look for losses again though no acknowledgement comes (the reordering timer)."""

    def on_acked(self, transmission: Transmission, now_s: float) -> None:
        """An acknowledgement of `transmission` was received."""
        if transmission.serial > self.newest.serial:
            self.newest, self.rtt_s = transmission, now_s - transmission.sent_s

    def on_timer(self) -> None:
        """Take all that was sent before `newest` as lost: the reordering timer has expired."""
        self.timer_s = math.inf
        self.rtt_s = -math.inf

    def find_lost(
        self, in_flight: Mapping[int, Transmission], reordering_window_s: float, now_s: float
    ) -> list[int]:
        """The lost ones of the segments `in_flight` (segment → transmission, in the order of sending).

        A segment is lost if it was sent before `newest` and more than `rtt_s` + `reordering_window_s` ago.
        For the first that was not sent long enough ago, the timer is set.
        """
        lost_before_s = now_s - self.rtt_s - reordering_window_s
        lost = []
        for segment, transmission in in_flight.items():
            if transmission.serial >= self.newest.serial:
                break
            if transmission.sent_s > lost_before_s + ROUNDING_S:
                if self.timer_s == math.inf:
                    self.timer_s = now_s + transmission.sent_s - lost_before_s + TIMER_MIN_S
                break
            lost.append(segment)
        else:
            self.timer_s = math.inf
        if lost:
            self.timer_s = math.inf
        return lost
