"""How many requests that change something one person, or one address at the log-in, may send.

A token bucket for each: it holds a minute's worth of requests, so a burst passes, and fills steadily. It is
kept in the memory of the web process: several web processes allow as many times as much.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from django.conf import settings

from webapp.errors import TooMany

MOST_KEPT = 10_000
"""Buckets; those that were used longest ago are forgotten, which fills them."""


class Rates:
    def __init__(self) -> None:
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.lock = threading.Lock()

    def spend(self, who: str, per_minute: int, now_s: float) -> float:
        """Take one request of `who`'s; returns 0, or in how many seconds there is one again."""
        with self.lock:
            left, before_s = self.buckets.pop(who, (float(per_minute), now_s))
            left = min(per_minute, left + (now_s - before_s) * per_minute / 60)
            passes = left >= 1
            self.buckets[who] = (left - 1 if passes else left, now_s)
            if len(self.buckets) > MOST_KEPT:
                self.buckets.popitem(last=False)
        return 0.0 if passes else (1 - left) * 60 / per_minute


rates = Rates()


def check(who: str) -> None:
    """Raises `TooMany`."""
    limit = settings.WRITES_PER_MINUTE
    wait_s = rates.spend(who, limit, time.monotonic()) if limit else 0.0
    if wait_s:
        error = TooMany("", wait_s)
        raise TooMany(
            f"More than {limit} requests within a minute: try again in {error.retry_s} s, and more slowly.",
            wait_s,
        )
