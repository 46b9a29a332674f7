"""A board and a server, each a process as a person starts them: joining, a restart of the server, the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from emulator.calibration import known
from tests.emulator.node.test_joining import FOUND
from tests.support.web import ROOT, wait_until
from webapp.ops import services
from webapp.ops.redis_server import free_port

pytestmark = pytest.mark.long(
    "emulator/node", "webapp/clusters", "webapp/http", "engine/domain/node_messages.py"
)
A_TOKEN = """
from django.contrib.auth.models import User
from webapp.accounts import tokens
print(tokens.make(User.objects.get(username="admin"), "test", "admin")[1])
"""


class Site(NamedTuple):
    """The API of a server, for a program of the administrator."""

    url: str
    token: str

    def answers(self) -> bool:
        try:
            return self.ask("GET", "/nodes") is not None
        except OSError:
            return False

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(f"{self.url}/api{path}", data, headers, method=method)) as answer:
            return json.load(answer)

    def board(self) -> dict[str, Any]:
        (row,) = self.ask("GET", "/nodes")
        return row


@contextmanager
def server(site: Site, environment: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("ab") as output:
        command = [sys.executable, *services.web(port=urlsplit(site.url).port).arguments]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        wait_until(site.answers, "the server")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def test_a_board_joins_is_there_again_after_a_restart_and_leaves(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    known.keep(FOUND, {})
    state = {
        "LOOM_STATE_DIR": str(tmp_path / "server"),
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }  # boards need none
    environment = os.environ | state

    def done(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=PIPE, text=True).stdout

    done("-m", "webapp.ops.prepare")
    secret = done("manage.py", "shell", "--no-imports", "-c", A_TOKEN).strip()
    site = Site(f"http://127.0.0.1:{free_port()}", secret)
    log, said = tmp_path / "server.log", tmp_path / "node.log"
    with server(site, environment, log):
        token = site.ask("POST", "/nodes", {"name": "desk-pi"})["token"]
        command = [sys.executable, str(ROOT / "loom"), "node", "--join", site.url, "--token", token]
        with said.open("wb") as output:
            node = subprocess.Popen(command, stdout=output, stderr=output)
        wait_until(lambda: site.board()["device"], "the board's row")
        row = site.board()
        assert row["connected"] and row["hello"]["processor"] == FOUND.profile.host
        presets = site.ask("GET", "/catalogue")["presets"]
        assert [one["flop_per_s"] for one in presets if one["name"] == "desk-pi"] == [1e11]
    with server(site, environment, log):
        wait_until(lambda: "Joined again" in said.read_text(), "the board to call again")
        assert site.board()["connected"]
        node.send_signal(signal.SIGTERM)
        assert node.wait() == 0
        wait_until(lambda: not site.board()["connected"], "the server to notice")
    assert said.read_text().endswith("This node has left.\n")
    assert token not in log.read_text() and "Traceback" not in log.read_text() + said.read_text()
