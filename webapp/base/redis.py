"""Clients of Redis, its lists and counters, and what counts as Redis being away: silence, and a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import redis
import redis.asyncio
from django.conf import settings
from kombu.exceptions import OperationalError
from redis.exceptions import ConnectionError as RedisGone
from redis.exceptions import ResponseError as RedisRefuses
from redis.exceptions import TimeoutError as RedisSlow

from engine.domain.command_name import COMMAND
from webapp.base.errors import Unavailable

REDIS_ERRORS = (RedisGone, RedisSlow, RedisRefuses, OperationalError)
"""What the client libraries raise when Redis does not answer, or says no: its memory or its disk is full, it
is a replica, a script keeps it busy, it lets this user do less. Whoever catches them does without Redis, or
tries again.
"""

PROBE_KEY = "storage:probe"
PROBE_KEPT_S = 60

CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 10.0
"""Seconds to wait for an answer, longer than any blocking read."""


def client() -> redis.Redis:
    """A client for any thread; it connects when it is used."""
    return _client(settings.REDIS_URL)


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url,
        decode_responses=True,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        socket_timeout=ANSWER_TIMEOUT_S,
    )


def async_client() -> redis.asyncio.Redis:
    """A client of its own for one event loop's task; the caller closes it."""
    return redis.asyncio.Redis.from_url(
        settings.REDIS_URL,
        decode_responses=True,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        socket_timeout=ANSWER_TIMEOUT_S,
    )


def push(key: str, text: str, keep_s: int) -> None:
    """Append to the list `key`, which then expires after `keep_s`."""
    with client().pipeline() as pipe:
        pipe.rpush(key, text)
        pipe.expire(key, keep_s)
        pipe.execute()


def pop(key: str, timeout_s: int) -> str | None:
    """Take the first of the list `key`; None if there is none within `timeout_s`."""
    answer: Any = client().blpop([key], timeout=timeout_s)
    return None if answer is None else str(answer[1])


def length(key: str) -> int:
    """How many the list `key` has."""
    found: Any = client().llen(key)
    return int(found)


def count_up(key: str, keep_s: int) -> int:
    """The next number of the counter `key`, from 1 on; it expires after `keep_s`."""
    with client().pipeline() as pipe:
        pipe.incr(key)
        pipe.expire(key, keep_s)
        return int(pipe.execute()[0])


def check_writable() -> None:
    """Check that Redis takes a write, which a PING does not tell. Raises Redis' errors."""
    client().set(PROBE_KEY, "", ex=PROBE_KEPT_S)


def why_away(error: BaseException) -> str:
    """What is wrong with Redis, after "Redis ": of one of `REDIS_ERRORS`, which the broker's may wrap."""
    refusal = next((one for one in (error, error.__cause__) if isinstance(one, RedisRefuses)), None)
    said = str(refusal).rpartition(" of pipeline caused error: ")[2]  # the command stands before it
    first_sentence = said.partition(". ")[0].strip().rstrip(".")
    return "does not answer" if refusal is None else f"refuses: {first_sentence[:200]}"


@contextmanager
def redis_needed() -> Iterator[None]:
    """Run the block; raises `Unavailable` if Redis does not answer it or refuses."""
    try:
        yield
    except REDIS_ERRORS as error:
        place = settings.REDIS_URL.rpartition("@")[2].removeprefix("redis://")
        why = why_away(error)
        remedy = (
            f"start it with {COMMAND} up, or check REDIS_URL"
            if why == "does not answer"
            else "look at its memory, its disk and its log"
        )
        raise Unavailable(
            f"Redis at {place} {why}. Nothing can be started or changed until it does: {remedy}; stored runs "
            "stay readable."
        ) from error
