"""`./loom up` for real: Redis, web server, both workers; and afterwards nothing of them is left."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

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


class Visitor:
    """Somebody at the API with a cookie jar, as a script would be."""

    def __init__(self, url: str):
        self.url = url
        self.cookies = CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        self.opener.open(f"{url}/login").close()

    def ask(self, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and answer: a POST when there is a body."""
        token = next(cookie.value for cookie in self.cookies if cookie.name == "csrftoken")
        headers = {"Content-Type": "application/json", "X-CSRFToken": token, "Origin": self.url}
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = self.opener.open(urllib.request.Request(f"{self.url}/api{path}", data, headers))
        except urllib.error.HTTPError as refusal:
            return refusal.code, None
        with answer:
            return answer.status, json.loads(answer.read() or b"null")

    def log_in(self, password: str) -> int:
        return self.ask("/login", {"username": "admin", "password": password})[0]


def password_in(text: str) -> str:
    found = re.search(r"password (\S+)", text)
    assert found, text
    return found.group(1)


def interfaces() -> str:
    """The network interfaces and named namespaces of this machine."""
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
    spaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return links + spaces


def test_everything_starts_and_ctrl_c_leaves_nothing_behind(up: Up) -> None:
    arguments = " ".join(up.running().values())
    for part in ("redis-server", "uvicorn", "-Q plan", "-Q emulate"):
        assert part in arguments
    password = password_in(up.text())
    assert Visitor(up.url).log_in(password) == 200
    assert Visitor(up.url).log_in(password + "x") == 401

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


def test_ctrl_c_in_the_middle_of_a_run_ends_the_run_and_keeps_it(up: Up) -> None:
    before = interfaces()
    password = password_in(up.text())
    visitor = Visitor(up.url)
    visitor.log_in(password)
    _, clusters = visitor.ask("/clusters")
    request = {
        "cluster_id": next(cluster["id"] for cluster in clusters if cluster["name"] == "lab-3"),
        "model": "tiny-gpt2",
        "strategy": "gpipe",
        "dilation": 50,
        "workload": {"prompt_tokens": 8, "new_tokens": 50},
    }
    status, run = visitor.ask("/runs", request)
    assert status == 201
    path = f"/runs/{run['id']}"
    wait_until(lambda: visitor.ask(path)[1]["status"] in ("running", "failed", "finished"), "the run")
    assert visitor.ask(path)[1]["status"] == "running"
    assert any("emulator" in arguments for arguments in up.running().values())

    assert up.stop() == 0
    assert up.running() == {}
    assert interfaces() == before

    up.start()
    visitor = Visitor(up.url)
    visitor.log_in(password)
    assert visitor.ask(path)[1]["status"] == "cancelled"


def test_whatever_is_killed_comes_back_and_an_experiment_goes_on(up: Up) -> None:
    """First the web server, Redis (it starts empty) and every worker in the middle of predicted points, then
    the emulating worker in the middle of an emulated one.
    """
    password = password_in(up.text())
    visitor = Visitor(up.url)
    visitor.log_in(password)
    path = begin_experiment(visitor)
    wait_until(lambda: progress(visitor, path, "simulated")["done"] > 0, "the first point")
    parts = ("uvicorn", "redis-server", "-Q plan", "-Q points", "-Q emulate")
    killed = {part: up.pid_of(part) for part in parts}
    for pid in killed.values():
        os.kill(pid, signal.SIGKILL)
    done = predicted_in_database(up)
    assert done < NUM_POINTS, "nothing was killed in the middle"
    wait_until(lambda: up.text().count("was ended by SIGKILL; it starts again") >= len(parts), "the messages")

    def is_predicted() -> bool:
        with suppress(OSError):  # the web server starts
            return progress(visitor, path, "simulated")["done"] == NUM_POINTS
        return False

    wait_until(is_predicted, "the other points")
    assert all(up.pid_of(part) != pid for part, pid in killed.items())
    digest = visitor.ask(f"{path}/rows")[1]["rows"][0]["digest"]
    assert visitor.ask(f"{path}/emulate", {"digests": [digest]})[0] == 202
    wait_until(lambda: [run["status"] for run in visitor.ask("/runs")[1]["items"]] == ["running"], "the run")
    os.kill(up.pid_of("-Q emulate"), signal.SIGKILL)
    wait_until(lambda: progress(visitor, path, "emulated")["done"] == 1, "the emulation")
    assert visitor.ask("/runs")[1]["items"][0]["status"] == "finished"


NUM_POINTS = 120


def begin_experiment(visitor: Visitor) -> str:
    """Its address. Points take about 0.1 s each; an emulated one takes some seconds."""
    rates = [1e6 * (number + 1) for number in range(NUM_POINTS)]
    base = {
        "cluster": "lab-3",
        "model": "tiny-gpt2",
        "strategy": "voltage",
        "dilation": 20,
        "workload": {"prompt_tokens": 8, "new_tokens": 40},
    }
    factor = {"name": "rate", "unit": "bit/s", "path": "cluster.links[*].bit_per_s", "values": rates}
    status, made = visitor.ask(
        "/experiments", {"experiment": {"name": "rates", "base": base, "factors": [factor]}}
    )
    assert status == 201
    path = f"/experiments/{made['id']}"
    assert visitor.ask(f"{path}/predict", {})[0] == 202
    return path


def progress(visitor: Visitor, path: str, world: str) -> dict[str, Any]:
    return visitor.ask(path)[1]["progress"].get(world, {"done": 0})


def predicted_in_database(up: Up) -> int:
    with closing(sqlite3.connect(up.state_dir / "edgeloom.sqlite3")) as database:
        query = "SELECT count(*) FROM experiments_computation WHERE state = 'done'"
        return int(database.execute(query).fetchone()[0])


def test_children_do_not_outlive_a_supervisor_that_is_killed(up: Up) -> None:
    assert up.stop(signal.SIGKILL) == -signal.SIGKILL
    wait_until(lambda: up.running() == {}, "the end of all children")


def test_a_port_that_is_in_use_is_named_before_anything_starts(tmp_path: Path) -> None:
    up = Up(tmp_path / "state")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", up.port))
        listener.listen()
        done = subprocess.run(up.command(), env=up.environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"loom up: Port {up.port} is in use by another program: choose another")
    assert done.stderr.count("\n") == 1
    assert up.running() == {}
