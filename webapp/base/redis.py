"""Clients of Redis, its lists and counters, and the error message for the case that it does not answer."""

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
from redis.exceptions import TimeoutError as RedisSlow

from engine.domain.command_name import COMMAND
from webapp.base.errors import Unavailable

REDIS_ERRORS = (RedisGone, RedisSlow, OperationalError)
"""The exceptions that the client libraries raise when Redis does not answer."""

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


def count_up(key: str, keep_s: int) -> int:
    """The next number of the counter `key`, from 1 on; it expires after `keep_s`."""
    with client().pipeline() as pipe:
        pipe.incr(key)
        pipe.expire(key, keep_s)
        return int(pipe.execute()[0])


@contextmanager
def redis_needed() -> Iterator[None]:
    """Run the block; raises `Unavailable` if it finds no Redis."""
    try:
        yield
    except REDIS_ERRORS as error:
        place = settings.REDIS_URL.rpartition("@")[2].removeprefix("redis://")
        raise Unavailable(
            f"Redis does not answer at {place}, so nothing can be started or changed now: "
            f"start it with {COMMAND} up, or check REDIS_URL; stored runs stay readable."
        ) from error
