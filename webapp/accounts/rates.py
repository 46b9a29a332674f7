"""How many requests that change something or make a file one person, or one address at the log-in, may send.

A token bucket for each: it holds a minute's worth of requests, so a burst passes, and fills steadily. It is
kept in Redis, for all web processes together; while Redis does not answer, in the memory of each.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from webapp.base.errors import TooMany
from webapp.base.redis import REDIS_ERRORS, client

MOST_KEPT = 10_000
"""Most buckets that are kept; those that were used longest ago are forgotten, which fills them."""


class Rates:
    def __init__(self) -> None:
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.lock = Lock()

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

_turns: WeakValueDictionary[int, Lock] = WeakValueDictionary()
_taking = Lock()


@contextmanager
def turn(person: int) -> Iterator[None]:
    """Let this process compute nothing else for `person` inside the block: only their own other requests
    wait.
    """
    with _taking:
        mine = _turns.setdefault(person, Lock())
    with mine:
        yield


SPEND = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local kept = redis.call('HMGET', KEYS[1], 'left', 'at')
local most = tonumber(ARGV[1])
local left = tonumber(kept[1]) or most
local at = tonumber(kept[2]) or now
left = math.min(most, left + math.max(0, now - at) * most / 60)
local wait = 0
if left >= 1 then left = left - 1 else wait = (1 - left) * 60 / most end
redis.call('HSET', KEYS[1], 'left', tostring(left), 'at', tostring(now))
redis.call('EXPIRE', KEYS[1], 60)
return tostring(wait)
"""
"""KEYS: the bucket. ARGV: a minute's worth. One step for Redis, with its clock; a minute fills any bucket."""


def spend(who: str, per_minute: int) -> float:
    """Take one request of `who`'s; returns 0, or in how many seconds there is one again."""
    try:
        answer: Any = client().eval(SPEND, 1, f"rate:{who}", per_minute)
        return float(answer)
    except REDIS_ERRORS:
        return rates.spend(who, per_minute, time.monotonic())


def check(who: str, limit: int) -> None:
    """One more request of `who`, of `limit` in a minute; any number if that is 0. Raises `TooMany`."""
    wait_s = spend(who, limit) if limit else 0.0
    if wait_s:
        error = TooMany("", wait_s)
        raise TooMany(
            f"More than {limit} requests within a minute: try again in {error.retry_s} s, and more slowly.",
            wait_s,
        )
