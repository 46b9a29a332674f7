"""The private Redis: only for those who know its password, and nothing on disk."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from webapp.ops import redis_server
from webapp.ops.redis_server import RedisServer, free_port, is_free, private_redis
from webapp.ops.services import QUEUES

pytestmark = pytest.mark.redis


def test_a_stranger_on_this_machine_is_refused(server: RedisServer) -> None:
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=server.port, retry=Retry(NoBackoff(), 0)).ping()
    assert redis.Redis.from_url(server.url).ping()


def test_another_server_on_the_port_does_not_count_as_ours(server: RedisServer) -> None:
    assert server.answers()
    assert not server._replace(password="another").answers()


@pytest.mark.parametrize("queue", QUEUES)
def test_a_worker_can_write_its_own_queue_and_no_other(server: RedisServer, queue: str) -> None:
    worker = redis.Redis.from_url(server.url_of(queue))
    for step in ("", "\x06\x163", "\x06\x169"):  # Celery has a list for each priority
        assert worker.lpush(f"{queue}{step}", "task") == 1
        for other in set(QUEUES) - {queue}:
            with pytest.raises(redis.exceptions.NoPermissionError):
                worker.lpush(f"{other}{step}", "task")
            with pytest.raises(redis.exceptions.ResponseError, match="permission"):
                worker.eval("return redis.call('LPUSH', KEYS[1], 'task')", 1, f"{other}{step}")
    for other in set(QUEUES) - {queue}:
        with pytest.raises(redis.exceptions.NoPermissionError):
            worker.hset(f"unacked:{other}", "tag", "a message that its worker would put back")
        with pytest.raises(redis.exceptions.NoPermissionError):
            worker.sadd(f"_kombu.binding.{other}", "a queue that would get its tasks")


@pytest.mark.parametrize("kind", ("web", *QUEUES))
def test_no_process_may_change_the_server_or_empty_it(server: RedisServer, kind: str) -> None:
    client = redis.Redis.from_url(server.url_of(kind))
    for command in (("CONFIG", "SET", "save", "1 1"), ("FLUSHALL",), ("ACL", "LIST"), ("SHUTDOWN", "NOSAVE")):
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.execute_command(*command)


def test_the_web_process_writes_every_queue(server: RedisServer) -> None:
    client = redis.Redis.from_url(server.url_of("web"))
    assert [client.lpush(queue, "task") for queue in QUEUES] == [1] * len(QUEUES)


def test_it_listens_on_loopback_only_and_keeps_nothing(server: RedisServer, tmp_path: Path) -> None:
    client = redis.Redis.from_url(server.url, decode_responses=True)
    assert client.config_get("bind") == {"bind": "127.0.0.1"}
    assert client.config_get("save") == {"save": ""}
    assert redis.Redis(unix_socket_path=str(server.socket_path), password=server.password).ping()


def test_its_configuration_is_for_its_owner_only(tmp_path: Path) -> None:
    _, configuration = private_redis(tmp_path)
    assert configuration.stat().st_mode & 0o077 == 0


def test_a_taken_port_is_left_to_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert not is_free(port)
        monkeypatch.setattr(redis_server, "REDIS_PORT", port)
        assert private_redis(tmp_path)[0].port != port
    assert is_free(free_port())
