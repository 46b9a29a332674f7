"""A Redis that says no, in the ways in which real ones do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import redis

from tests.support.web import RedisServer, wait_until


def administrator(server: RedisServer) -> redis.Redis:
    return redis.Redis.from_url(server.url, decode_responses=True)


def is_refused(server: RedisServer) -> bool:
    try:
        administrator(server).set("a-test's", "")
    except redis.ResponseError:
        return True
    return False


@contextmanager
def full(server: RedisServer) -> Iterator[None]:
    """Its memory is used up, and it may remove nothing: OOM."""
    settings = administrator(server)
    settings.config_set("maxmemory", 1)
    yield
    settings.config_set("maxmemory", 0)


@contextmanager
def replica(server: RedisServer) -> Iterator[None]:
    """It has become the replica of another one, as after a failover: READONLY."""
    settings = administrator(server)
    settings.execute_command("REPLICAOF", "127.0.0.1", "1")
    yield
    settings.execute_command("REPLICAOF", "NO", "ONE")


@contextmanager
def busy(server: RedisServer) -> Iterator[None]:
    """A script does not end: BUSY."""
    settings = administrator(server)
    settings.config_set("busy-reply-threshold", 1)
    script = threading.Thread(target=_run_for_ever, args=(server,))
    script.start()
    wait_until(lambda: is_refused(server), "Redis to be busy")
    yield
    settings.execute_command("SCRIPT", "KILL")
    script.join()


def _run_for_ever(server: RedisServer) -> None:
    with suppress(redis.ResponseError):  # it is killed
        administrator(server).eval("while true do end", 0)


@contextmanager
def unsaved(server: RedisServer) -> Iterator[None]:
    """It cannot write to its disk, here since the file's place is taken: MISCONF."""
    settings = administrator(server)
    (server.directory / "dump.rdb").mkdir()
    settings.config_set("save", "1000000 1")
    settings.bgsave()
    wait_until(lambda: is_refused(server), "a snapshot to fail")
    yield
    settings.config_set("save", "")


REFUSALS: dict[str, Callable[[RedisServer], Any]] = {
    "command not allowed when used memory > 'maxmemory'": full,
    "You can't write against a read only replica": replica,
    "BUSY Redis is busy running a script": busy,
    "MISCONF Redis is configured to save RDB snapshots": unsaved,
}
"""How the answer of each begins → what makes a server answer so inside a block."""
