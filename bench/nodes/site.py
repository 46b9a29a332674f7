"""The server that boards join: its processes as `./loom up` starts them, with a home of their own."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from bench.nodes.board import SERVERS_SHARES, Board, Group
from bench.trials.lan import SERVER
from bench.trials.servers import Redis, wait_for
from engine.domain.errors import RunError
from webapp.ops.places import ROOT
from webapp.ops.services import Service, web, worker

PORT = 8000
URL = f"http://{SERVER}:{PORT}"
ANSWER_S = 60.0
ENDS = ("finished", "failed", "cancelled")


class Site:
    """It runs from `start` to `end`, below `directory`; an operator asks."""

    def __init__(self, directory: Path):
        self.directory = directory
        home = directory / "server"
        home.mkdir()
        self.redis = Redis(directory)
        self.environment = {
            "HOME": str(home),
            "LOOM_STATE_DIR": str(home / "state"),
            "EDGELOOM_STATE_DIR": str(home / "emulator"),
            "ALLOWED_HOSTS": f"{SERVER},127.0.0.1",
            "OMP_NUM_THREADS": "1",
        }
        self.group = Group(shares=SERVERS_SHARES)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.start_redis()
        os.environ.update(
            self.environment
            | {"REDIS_URL": self.redis.server.url, "DJANGO_SETTINGS_MODULE": "webapp.settings"}
        )
        prepare = (sys.executable, "-m", "webapp.ops.prepare")
        subprocess.run(prepare, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        importlib.import_module("bench.trials.django_ready")
        from bench.service.load_rows import token_of

        self.token = token_of("operator", 0)

    def start(self) -> None:
        for service in (worker("plan"), worker("emulate")):
            self.start_one(service)
        self.start_web()

    def start_web(self) -> None:
        self.start_one(web(host=SERVER, port=PORT))
        wait_for(self.answers, "the web server")

    def start_one(self, service: Service) -> None:
        environment = os.environ | {"REDIS_URL": self.redis.server.url_of(service.kind)}
        with (self.directory / f"{service.name}.log").open("ab") as log:
            line = [sys.executable, *service.arguments]
            one = subprocess.Popen(
                line, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self.group.take(one.pid)
        self.processes[service.name] = one

    def end(self) -> None:
        for one in self.processes.values():
            one.terminate()
        for one in self.processes.values():
            one.wait(60)
        self.processes.clear()

    def end_one(self, name: str) -> None:
        one = self.processes.pop(name)
        one.terminate()
        one.wait(60)

    def start_redis(self) -> None:
        self.redis.start()
        assert self.redis.process is not None
        self.group.take(self.redis.process.pid)

    def close(self) -> None:
        self.end()
        self.redis.kill()
        self.group.remove()

    def answers(self) -> bool:
        try:
            return bool(self.ask("GET", "/api/health"))
        except OSError:
            return False

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The server's answer. Raises `RunError` with its words if it refuses."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            with urlopen(Request(f"{URL}{path}", data, headers, method=method), timeout=ANSWER_S) as answer:
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            raise RunError(f"{method} {path} is refused: {error.read().decode()[:500]}.") from error

    def keep_model(self, name: str) -> None:
        """Put a small model with weights of its own among the server's, as somebody has put it there."""
        folder = self.directory / "server" / "state" / "models" / name
        line = (sys.executable, "-m", "bench.nodes.small_model", str(folder))
        subprocess.run(line, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

    def left(self) -> list[str]:
        """What of runs is still on the server: sessions, and what was said between them and boards."""
        from webapp.base.redis import client

        sessions = Path(self.environment["EDGELOOM_STATE_DIR"]).glob("session-*")
        kept: Any = client().keys("node:up:*")
        return [f"the server has {path.name}" for path in sessions] + [f"Redis has {key!r}" for key in kept]

    # boards
    def add(self, board: Board) -> None:
        """A token for the board."""
        board.token = self.ask("POST", "/api/nodes", {"name": board.name})["token"]

    def row(self, name: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = self.ask("GET", "/api/nodes")
        return next(row for row in found if row["name"] == name)

    def has_measured(self, board: Board, since: datetime | None = None) -> bool:
        """Whether the board has joined and has said its rates, and anything after `since`: a connection whose
        cable was cut seems to be there for some seconds.
        """
        if board.process is None or board.process.poll() is not None:
            raise RunError(f"{board.name} has ended: {board.said()[-500:]}")
        row = self.row(board.name)
        is_seen = since is None or datetime.fromisoformat(row["seen_at"] or "1970-01-01T00:00Z") > since
        return bool(row["connected"] and row["device"] and is_seen)

    # runs
    def begin(self, body: dict[str, Any]) -> int:
        return int(self.ask("POST", "/api/runs", body)["id"])

    def run(self, run_id: int) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/api/runs/{run_id}")
        return found

    def until_ended(self, run_id: int, patience_s: float) -> dict[str, Any]:
        """The run once it has ended. Raises `RunError` after `patience_s`."""
        until_s = time.monotonic() + patience_s
        while (found := self.run(run_id))["status"] not in ENDS or not found.get("report"):
            if found["status"] in ENDS and found.get("error"):
                break
            if time.monotonic() > until_s:
                raise RunError(f"Run {run_id} has not ended after {patience_s:.0f} s: {found['status']}.")
            time.sleep(0.2)
        return found
