"""The private Redis: only for those who know its password, and nothing on disk."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.ops.conftest import wait_until
from webapp.ops import redis_server, up
from webapp.ops.places import ROOT
from webapp.ops.redis_server import RedisServer, free_port, is_free, private_redis
from webapp.ops.services import QUEUES
from webapp.ops.supervisor import Supervisor

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


@pytest.mark.parametrize("queue", QUEUES)
def test_a_worker_reads_all_announcements_writes_those_of_its_queue_and_keeps_no_function(
    server: RedisServer, queue: str
) -> None:
    worker = redis.Redis.from_url(server.url_of(queue))
    assert worker.set(f"worker:{queue}:me", "here")
    for other in set(QUEUES) - {queue}:
        assert worker.get(f"worker:{other}:you") is None
        with pytest.raises(redis.exceptions.NoPermissionError):
            worker.set(f"worker:{other}:you", "here")
    with pytest.raises(redis.exceptions.NoPermissionError):
        worker.function_load("#!lua name=evil\nredis.register_function('f', function() return 1 end)")


def test_a_redis_before_version_7_gets_rights_that_it_knows(tmp_path: Path) -> None:
    old = RedisServer(1, "password", tmp_path / "socket", version=6)
    assert all("%R" not in user and "function" not in user for user in old.users())
    assert all('"~worker:*"' in user for user in old.users()[1:])


def test_a_script_that_does_not_end_is_ended_and_redis_answers_again(server: RedisServer) -> None:
    worker = redis.Redis.from_url(server.url_of("plan"), retry=Retry(NoBackoff(), 0))
    ended: list[Exception] = []

    def hang() -> None:
        try:
            worker.eval("while true do end", 0)
        except redis.exceptions.ResponseError as error:
            ended.append(error)

    thread = threading.Thread(target=hang)
    thread.start()
    wait_until(lambda: not server.answers(), "the script to keep Redis busy")
    wait_until(server.answers_or_ends_script, "Redis to answer again")
    thread.join()
    assert "killed" in str(ended[0]).lower() and server.answers()


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


def test_a_port_that_is_taken_between_the_choice_and_the_start_is_left_and_another_one_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOM_STATE_DIR", str(tmp_path))
    taken: list[socket.socket] = []

    def private(directory: Path) -> tuple[RedisServer, Path]:
        server, configuration = private_redis(directory)
        if not taken:
            taken.append(socket.create_server(("127.0.0.1", server.port)))
        return server, configuration

    monkeypatch.setattr(up, "private_redis", private)
    with Supervisor() as supervisor:
        server = up.start_redis(supervisor)
        assert server.answers() and server.port != taken[0].getsockname()[1]
        assert [child.has_ended() for child in supervisor.children] == [False]
    taken[0].close()


TOGETHER = """
import sys
from webapp.ops import redis_server, up
from webapp.ops.supervisor import Supervisor
redis_server.REDIS_PORT = int(sys.argv[1])
with Supervisor() as supervisor:
    print("ready", flush=True)
    sys.stdin.readline()
    print(up.start_redis(supervisor).url, flush=True)
    sys.stdin.readline()
"""


def test_three_that_start_at_the_same_moment_have_a_redis_each(tmp_path: Path) -> None:
    port = str(free_port())
    starts = []
    for name in "abc":
        (tmp_path / name).mkdir()
        starts.append(
            subprocess.Popen(
                (sys.executable, "-c", TOGETHER, port),
                cwd=ROOT,
                env={**os.environ, "LOOM_STATE_DIR": str(tmp_path / name)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    try:
        assert [start.stdout.readline() for start in starts] == 3 * ["ready\n"]
        for start in starts:
            start.stdin.write("now\n")
            start.stdin.flush()
        urls = [start.stdout.readline().strip() for start in starts]
        assert [redis.Redis.from_url(url).ping() for url in urls] == 3 * [True]
        assert len({url.rpartition(":")[2] for url in urls}) == 3
    finally:
        for start in starts:
            start.communicate()
