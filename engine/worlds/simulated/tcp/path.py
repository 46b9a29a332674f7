"""The path of one TCP connection, which loses packets, and the receiver at its end.

Segments and acknowledgements keep their order. An acknowledgement lists every segment that has arrived
(SACK), so a later one makes up for one that was lost.
"""

from __future__ import annotations

import math
from collections import deque
from random import Random
from typing import NamedTuple

DEVICE_QUEUE_SEGMENTS = 3
"""Segments that may wait for the link (TCP Small Queues): with more, the sender waits."""


class PathConditions(NamedTuple):
    """A segment's time on the slowest link, one-way delays there and back, and the fractions lost."""

    segment_s: float
    there_s: float
    back_s: float
    loss_frac: float
    ack_loss_frac: float

    @property
    def round_trip_s(self) -> float:
        """The round trip of one segment on an idle path."""
        return self.segment_s + self.there_s + self.back_s


class Transmission(NamedTuple):
    """One sending of a segment: `serial` counts the sendings of all segments."""

    serial: int
    sent_s: float


class Ack(NamedTuple):
    """An acknowledgement: when the sender gets it, and how many of the path's `deliveries` it covers."""

    received_s: float
    deliveries: int


class LossyPath:
    """Carries the segments 0 … `total` - 1, of which the message has the first `segments`.

    `random` decides which transmissions and which acknowledgements are lost.
    """

    def __init__(self, conditions: PathConditions, random: Random, segments: int, total: int):
        self.conditions, self.random, self.segments = conditions, random, segments
        self.link_free_s = 0.0
        self.received = [False] * total
        self.missing = segments
        """How many segments of the message have not arrived."""
        self.deliveries: list[tuple[int, Transmission]] = []
        """Every (segment, transmission) that has arrived or will, in order."""
        self.acks: deque[Ack] = deque()
        """Acknowledgements on their way to the sender."""
        self.left_s = self.arrived_s = 0.0
        """When the message's last segment has left for the first time, and when the last one arrives."""
        self._delivered_until_loss = self._draw_gap()

    @property
    def accepts_s(self) -> float:
        """When the queue in front of the link takes another segment."""
        return self.link_free_s - DEVICE_QUEUE_SEGMENTS * self.conditions.segment_s

    def carry(self, segment: int, transmission: Transmission) -> None:
        """Put a segment behind those that wait for the link; it arrives or is lost."""
        self.link_free_s = max(transmission.sent_s, self.link_free_s) + self.conditions.segment_s
        if segment == self.segments - 1 and not self.left_s:
            self.left_s = self.link_free_s
        if self._delivered_until_loss < 1:
            self._delivered_until_loss = self._draw_gap()
            return
        self._delivered_until_loss -= 1
        self._receive(segment, transmission, self.link_free_s + self.conditions.there_s)

    def _receive(self, segment: int, transmission: Transmission, received_s: float) -> None:
        """Acknowledge a segment that has arrived, as the receiver does."""
        if not self.received[segment]:
            self.received[segment] = True
            if segment < self.segments:
                self.missing -= 1
                self.arrived_s = received_s
        self.deliveries.append((segment, transmission))
        ack_loss_frac = self.conditions.ack_loss_frac
        if not ack_loss_frac or self.random.random() >= ack_loss_frac:
            self.acks.append(Ack(received_s + self.conditions.back_s, len(self.deliveries)))

    def _draw_gap(self) -> float:
        """How many transmissions arrive until one is lost: a geometric random number."""
        loss_frac = self.conditions.loss_frac
        if loss_frac <= 0:
            return math.inf
        return math.floor(math.log(1 - self.random.random()) / math.log1p(-loss_frac))
