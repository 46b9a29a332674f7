"""`./loom worker` joins an EdgeLoom by nothing but its REDIS_URL and DATABASE_URL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from tests.ops.conftest import wait_until
from webapp.ops.places import PYTHON, ROOT
from webapp.ops.redis_server import RedisServer

pytestmark = pytest.mark.redis


def test_a_worker_joins_by_one_command_and_ends_on_a_signal(server: RedisServer, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "REDIS_URL": server.url,
        "DATABASE_URL": f"sqlite:///{tmp_path / 'shared.sqlite3'}",
        "LOOM_STATE_DIR": str(tmp_path / "state"),
        "OMP_NUM_THREADS": "1",
    }
    subprocess.run([PYTHON, "-m", "webapp.ops.prepare"], cwd=ROOT, env=environment, check=True)
    client = redis.Redis.from_url(server.url, decode_responses=True)
    log = tmp_path / "worker.log"
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [sys.executable, ROOT / "loom", "worker", "--queue", "plan"],
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(lambda: worker.poll() is not None or client.keys("worker:plan:*"), "the worker")
        assert worker.poll() is None, log.read_text()
    finally:
        worker.terminate()
        worker.wait()
    assert worker.returncode == 0, log.read_text()
    assert client.keys("worker:plan:*") == []
