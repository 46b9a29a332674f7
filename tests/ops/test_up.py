"""`./loom up` for real: Redis, web server, both workers; and afterwards nothing of them is left."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.service.first_run import Visitor
from emulator.host.leftovers import Process, children, is_alive
from tests.ops.conftest import processes_with, wait_until
from tests.support.outside import install
from webapp.ops.places import ROOT, OpsError
from webapp.ops.redis_server import free_port
from webapp.ops.up import has_one_user, not_used, only_one

pytestmark = [pytest.mark.root, pytest.mark.redis]


class Up:
    """One `./loom up` with a state directory and a port of its own."""

    def __init__(self, state_dir: Path, port: int | None = None):
        self.state_dir = state_dir
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {**os.environ, "LOOM_STATE_DIR": str(state_dir), "OMP_NUM_THREADS": "1"}
        for name in ("REDIS_URL", "DATABASE_URL"):
            self.environment.pop(name, None)
        self.output = state_dir.parent / f"{state_dir.name}.output"
        self.process: subprocess.Popen[bytes] | None = None
        self.password = ""
        """The administrator's, which only the first start shows."""

    def start(self) -> None:
        """From then on the logs are those of this start."""
        for log in (self.state_dir / "logs").glob("*.log"):
            log.unlink()
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                self.command(),
                env=self.environment,
                umask=0o022,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        wait_until(lambda: self.process.poll() is not None or "is ready" in self.text(), "EdgeLoom")
        assert self.process.poll() is None, self.text()
        self.password = self.password or password_in(self.text())

    def command(self) -> list[str]:
        return [sys.executable, str(ROOT / "loom"), "up", "--without-model", "--port", str(self.port)]

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=600)

    def end(self) -> None:
        """Whatever has become of it, nothing of it is left."""
        if self.process is not None and self.process.poll() is None:
            self.stop()
        for pid in self.running():
            os.kill(pid, signal.SIGKILL)

    def text(self) -> str:
        return self.output.read_text()

    def running(self) -> dict[int, str]:
        return processes_with(f"LOOM_STATE_DIR={self.state_dir}")

    def pid_of(self, part: str) -> int:
        """The process whose arguments contain `part`, and whose parent's do not."""
        found = [pid for pid, arguments in self.running().items() if part in arguments]
        below_others = {child.pid for pid in found for child in below(pid)}
        (parent,) = set(found) - below_others
        return parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One for all tests of this file: setting up and starting takes seconds of all cores."""
    made = Up(tmp_path_factory.mktemp("up") / "state")
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
def up(installed: Up) -> Up:
    """It runs, whatever the test before has done to it."""
    if installed.process is None or installed.process.poll() is not None:
        installed.start()
    return installed


def below(pid: int) -> list[Process]:
    """All processes that this one started, and those that they started."""
    found = children(pid)
    return found + [deeper for child in found for deeper in below(child.pid)]


def password_in(text: str) -> str:
    found = re.search(r"password (\S+)", text)
    assert found, text
    return found.group(1)


def interfaces() -> str:
    """The network interfaces and named namespaces of this machine."""
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
    spaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return links + spaces


def test_everything_starts_and_ctrl_c_in_the_middle_of_a_run_leaves_nothing_behind_and_keeps_it(
    up: Up,
) -> None:
    before = interfaces()
    arguments = " ".join(up.running().values())
    for part in ("redis-server", "webapp.asgi", "-Q plan", "-Q emulate"):
        assert part in arguments
    visitor = Visitor(up.url)
    assert visitor.log_in(up.password) == 200
    assert Visitor(up.url).log_in(up.password + "x") == 401
    made = [path for path in (up.state_dir, *up.state_dir.rglob("*")) if not path.is_symlink()]
    assert "edgeloom.sqlite3" in {path.name for path in made}
    assert [str(path) for path in made if path.stat().st_mode & 0o077] == [], "all is private"

    second = subprocess.run(up.command(), env=up.environment, capture_output=True, text=True)
    assert second.returncode == 2
    assert re.fullmatch(
        rf"loom up: EdgeLoom already runs here \(process {up.process.pid}, {up.url}\): .*\n", second.stderr
    )

    path, emulation = being_emulated(up, visitor)
    assert up.stop() == 0
    assert up.running() == {}
    assert not any(is_alive(known) for known in emulation)
    assert interfaces() == before

    up.start()
    assert "password" not in up.text(), "the password is shown only once"
    assert "Demo cluster" not in up.text()
    assert "Set-up" not in up.text(), "nothing was set up again"
    visitor = Visitor(up.url)
    visitor.log_in(up.password)
    assert visitor.ask(path)[1]["status"] == "cancelled"


def being_emulated(up: Up, visitor: Visitor) -> tuple[str, list[Process]]:
    """The path of a run in the middle of its emulation, and that emulation's processes."""
    _, clusters = visitor.ask("/clusters")
    request = {
        "cluster_id": next(cluster["id"] for cluster in clusters if cluster["name"] == "lab-3"),
        "model": "tiny-gpt2",
        "strategy": "gpipe",
        "dilation": 1000,
        "workload": {"prompt_tokens": 8, "new_tokens": 50},
    }
    path = f"/runs/{accepted(visitor, request)['id']}"
    wait_until(lambda: visitor.ask(path)[1]["status"] in ("running", "failed", "finished"), "the run")
    assert visitor.ask(path)[1]["status"] == "running"
    emulation = below(up.pid_of("-Q emulate"))  # its environment does not say whose it is
    assert len(emulation) > 3
    return path, emulation


def accepted(visitor: Visitor, request: dict[str, Any]) -> dict[str, Any]:
    """The run that the server has accepted: until a worker plans, it asks its visitors to try again."""
    answers = []

    def is_answered() -> bool:
        answers.append(visitor.ask("/runs", request))
        return answers[-1][0] != 503

    wait_until(is_answered, "a worker that plans")
    status, run = answers[-1]
    assert status == 201, run
    return run


def test_a_worker_that_is_killed_comes_back(up: Up) -> None:
    log = up.state_dir / "logs" / "worker-plan.log"
    wait_until(lambda: " ready." in log.read_text(), "the first start")
    first = up.pid_of("-Q plan")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: "worker-plan was ended by SIGKILL; it starts again" in up.text(), "the message")
    wait_until(lambda: log.read_text().count(" ready.") == 2, "the second start")
    assert up.pid_of("-Q plan") != first


def test_children_do_not_outlive_a_supervisor_that_is_killed(up: Up) -> None:
    assert up.stop(signal.SIGKILL) == -signal.SIGKILL
    wait_until(lambda: up.running() == {}, lambda: f"the end of {up.running()}")


def test_a_lock_that_is_a_directory_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "up.lock").mkdir()
    with (
        pytest.raises(OpsError, match=r"up\.lock cannot be locked: Is a directory\. .*: remove it"),
        only_one(tmp_path, ""),
    ):
        pass


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


@pytest.mark.parametrize(
    ("url", "one"),
    [
        ("redis://127.0.0.1:6379/0", True),
        ("redis://:secret@lab:6379/0", True),
        ("redis://default:secret@lab:6379/0", True),
        ("rediss://plan:secret@lab:6379/0", False),
    ],
)
def test_an_address_of_redis_says_whether_all_processes_would_be_one_user(url: str, one: bool) -> None:
    assert has_one_user(url) is one


def test_what_is_installed_and_not_named_is_told_with_the_line_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LOOM_METHODS", "halves")
    monkeypatch.delenv("LOOM_DATA", raising=False)
    for package, entry, group in (
        ("a", "halves = a:Halves", "methods"),
        ("b", "thirds = b:Thirds", "methods"),
        ("c", "my-lab = c", "data"),
    ):
        install(tmp_path, entry, package, f"edgeloom.{group}")
    method, pack = not_used()
    assert method.startswith("Installed and not used: the method thirds. To use what is installed: ")
    assert "LOOM_METHODS=halves,thirds " in method and "LOOM_DATA=my-lab " in pack
    assert pack.startswith("Installed and not used: the pack of data my-lab. ")
