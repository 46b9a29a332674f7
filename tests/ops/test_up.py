"""`./loom up` for real: Redis, web server, both workers; and afterwards nothing of them is left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ops.conftest import processes_with, wait_until
from webapp.ops.places import ROOT
from webapp.ops.redis_server import free_port

pytestmark = [pytest.mark.root, pytest.mark.redis]


class Up:
    """One `./loom up` with a state directory and a port of its own."""

    def __init__(self, state_dir: Path):
        self.state_dir = state_dir
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {**os.environ, "LOOM_STATE_DIR": str(state_dir), "OMP_NUM_THREADS": "1"}
        for name in ("REDIS_URL", "DATABASE_URL"):
            self.environment.pop(name, None)
        self.output = state_dir.parent / f"{state_dir.name}.output"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                self.command(), env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        wait_until(lambda: self.process.poll() is not None or "is ready" in self.text(), "EdgeLoom")
        assert self.process.poll() is None, self.text()

    def command(self) -> list[str]:
        return [sys.executable, str(ROOT / "loom"), "up", "--port", str(self.port)]

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def text(self) -> str:
        return self.output.read_text()

    def running(self) -> dict[int, str]:
        return processes_with(f"LOOM_STATE_DIR={self.state_dir}")

    def pid_of(self, part: str) -> int:
        """The first process, the parent, whose arguments contain `part`."""
        return min(pid for pid, arguments in self.running().items() if part in arguments)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    started = Up(tmp_path / "state")
    started.start()
    yield started
    if started.process.poll() is None:
        started.stop()
    for pid in started.running():
        os.kill(pid, signal.SIGKILL)


def log_in(url: str, password: str) -> int:
    """The status that the API answers to a log-in as admin."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    opener.open(f"{url}/login").close()
    jar = next(h.cookiejar for h in opener.handlers if isinstance(h, urllib.request.HTTPCookieProcessor))
    token = next(cookie.value for cookie in jar if cookie.name == "csrftoken")
    body = json.dumps({"username": "admin", "password": password}).encode()
    headers = {"Content-Type": "application/json", "X-CSRFToken": token, "Origin": url}
    try:
        with opener.open(urllib.request.Request(f"{url}/api/login", body, headers)) as answer:
            return answer.status
    except urllib.error.HTTPError as refusal:
        return refusal.code


def test_everything_starts_and_ctrl_c_leaves_nothing_behind(up: Up) -> None:
    arguments = " ".join(up.running().values())
    for part in ("redis-server", "uvicorn", "-Q plan", "-Q emulate"):
        assert part in arguments
    password = re.search(r"password (\S+)", up.text()).group(1)
    assert log_in(up.url, password) == 200
    assert log_in(up.url, password + "x") != 200

    second = subprocess.run(up.command(), env=up.environment, capture_output=True, text=True)
    assert second.returncode == 2
    assert re.fullmatch(
        rf"loom up: EdgeLoom already runs here \(process {up.process.pid}, {up.url}\): .*\n", second.stderr
    )

    assert up.stop() == 0
    assert up.running() == {}

    up.start()
    assert "password" not in up.text(), "the password is shown only once"
    assert "Demo cluster" not in up.text()
    assert " …" not in up.text(), "nothing was set up again"
    assert up.stop(signal.SIGTERM) == 0
    assert up.running() == {}


def test_a_worker_that_is_killed_comes_back(up: Up) -> None:
    first = up.pid_of("-Q plan")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: "worker-plan was ended by SIGKILL; it starts again" in up.text(), "the message")
    log = up.state_dir / "logs" / "worker-plan.log"
    wait_until(lambda: log.read_text().count(" ready.") == 2, "the second start")
    assert up.pid_of("-Q plan") != first


def test_children_do_not_outlive_a_supervisor_that_is_killed(up: Up) -> None:
    assert up.stop(signal.SIGKILL) == -signal.SIGKILL
    wait_until(lambda: up.running() == {}, "the end of all children")


def test_a_port_that_is_in_use_is_named_before_anything_starts(tmp_path: Path, up: Up) -> None:
    other = Up(tmp_path / "other")
    other.port = up.port
    done = subprocess.run(other.command(), env=other.environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"Port {up.port} is in use by another program" in done.stderr
    assert other.running() == {}
