"""What the tests of the web application act with: servers, workers, browsers, recorded runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from django.conf import settings as django_settings
from django.contrib.auth.models import Group, User
from django.db import connections
from django.http import HttpResponse
from django.test import Client

import topologies
from engine.domain.events import EVENTS, Event, to_json
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.runs.predict import predict
from webapp.celery import app as celery
from webapp.jobs.announcement import announced
from webapp.ops import redis_server
from webapp.ops.redis_server import free_port, redis_program
from webapp.ops.services import worker as worker_service
from webapp.runs.requests import RunRequest, spec_of

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery staple"
PATIENCE_S = 600.0


def wait_until(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """The first true value of `condition`; fails after `patience_s`. Looking takes a twentieth of a core, or
    half a second passes: what is waited for needs the cores, and may not last long.
    """
    deadline = time.monotonic() + patience_s
    while (looks_s := time.monotonic()) < deadline:
        if value := condition():
            return value
        time.sleep(min(max(0.05, 19 * (time.monotonic() - looks_s)), 0.5))
    pytest.fail(f"waited {patience_s:g} s for {what}")


class RedisServer:
    """A private server; `stop` and `start` again to see what happens without it. Workers are the users that
    they are in a real one, and tests may do everything.
    """

    def __init__(self, directory: Path):
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.directory = directory
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        configuration = self.directory / "redis.conf"
        lines = [
            f"bind 127.0.0.1\nport {self.port}",
            *_with_users(self.port).users(),
            'save ""',
            "appendonly no",
        ]
        configuration.write_text("\n".join([*lines, f"dir {self.directory}", ""]))
        self.process = subprocess.Popen([redis_program(), str(configuration)], stdout=subprocess.DEVNULL)
        wait_until(self.answers, "Redis to answer")

    def answers(self) -> bool:
        try:
            return bool(redis.Redis.from_url(self.url).ping())
        except redis.ConnectionError:
            return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def _with_users(port: int) -> redis_server.RedisServer:
    return redis_server.RedisServer(port, PASSWORD, Path())


@contextmanager
def redis_in_use(server: RedisServer) -> Iterator[RedisServer]:
    """The application talks to `server` inside."""
    before = django_settings.REDIS_URL, celery.conf.broker_url
    django_settings.REDIS_URL = celery.conf.broker_url = server.url
    celery._after_fork()  # forgets its connections
    try:
        yield server
    finally:
        django_settings.REDIS_URL, celery.conf.broker_url = before
        celery._after_fork()


class Browser:
    """Somebody's session with the API: logs in like the front end, sends the CSRF token it was given."""

    def __init__(self) -> None:
        self.client = Client(enforce_csrf_checks=True)
        self.token = ""
        self.client.get("/api/session")

    def log_in(self, username: str, password: str = PASSWORD) -> HttpResponse:
        response = self.post("/login", {"username": username, "password": password})
        if response.status_code == 200:
            self.token = response.json()["csrf_token"]
        return response

    def get(self, path: str, **query: Any) -> HttpResponse:
        return self.client.get(f"/api{path}", query)

    def post(self, path: str, body: Any = None) -> HttpResponse:
        return self.send("POST", path, {} if body is None else body)

    def put(self, path: str, body: Any) -> HttpResponse:
        return self.send("PUT", path, body)

    def patch(self, path: str, body: Any) -> HttpResponse:
        return self.send("PATCH", path, body)

    def delete(self, path: str) -> HttpResponse:
        return self.send("DELETE", path, {})

    def send(self, method: str, path: str, body: Any) -> HttpResponse:
        headers = {"X-CSRFToken": self.client.cookies["csrftoken"].value}
        return self.client.generic(
            method, f"/api{path}", data=json.dumps(body), content_type="application/json", headers=headers
        )


def person(name: str, group: str) -> User:
    user = User.objects.create_user(name, password=PASSWORD)
    user.groups.add(Group.objects.get_or_create(name=group)[0])
    return user


# Runs ---------------------------------------------------------------------------------------------
def request_body(**overrides: Any) -> dict[str, Any]:
    """A small run on lab-3: two layers, four heads, random weights."""
    cluster = topologies.load("lab-3").model_dump(mode="json")
    body = {
        "cluster": cluster,
        "model": "tiny-gpt2",
        "strategy": "voltage",
        "workload": {"prompt_tokens": 8, "new_tokens": 4},
    }
    return body | overrides


def run_spec(**overrides: Any) -> RunSpec:
    return spec_of(RunRequest.parse(request_body(**overrides), "test"))


def recorded(**overrides: Any) -> tuple[list[Event], RunReport]:
    """Events, as a reader of their JSON has them, and report of the simulated world for `request_body`."""
    events: list[Event] = []
    report = predict(run_spec(**overrides), events.append)
    return EVENTS.validate_python(to_json(events)), report


def url_of_the_test_database() -> str:
    """The database that the tests use, for other processes."""
    database = connections["default"].settings_dict
    if database["ENGINE"].endswith("sqlite3"):
        return f"sqlite:///{database['NAME']}"
    person = f"{database['USER']}:{database['PASSWORD']}".removesuffix(":")
    return f"postgres://{person}@{database['HOST']}:{database['PORT']}/{database['NAME']}"


class Worker:
    """A real worker process, started by the command line that `./loom up` uses, or by that of people."""

    def __init__(self, queue: str, state_dir: Path, *, by_hand: bool = False, **environment: str):
        self.queue = queue
        arguments = (str(ROOT / "loom"), "worker", "--queue", queue)
        self.command = (sys.executable, *(arguments if by_hand else worker_service(queue).arguments))
        self.folder = Path("/") if by_hand else ROOT
        self.environment = {
            **os.environ,
            **environment,
            "REDIS_URL": _with_users(urlsplit(django_settings.REDIS_URL).port or 0).url_of(queue),
            "LOOM_STATE_DIR": str(state_dir),
            "EDGELOOM_STATE_DIR": str(state_dir / "emulator"),
            "OMP_NUM_THREADS": "1",
            "DATABASE_URL": url_of_the_test_database(),
        }
        self.environment.pop("DJANGO_SETTINGS_MODULE", None)
        self.log = state_dir / f"{queue}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Worker:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_until(self.has_ended_or_is_announced, f"the {self.queue} worker to be ready")
        assert self.process.poll() is None, self.log.read_text()

    def has_ended_or_is_announced(self) -> bool:
        """Whether this worker is among those that Redis knows: others may be announced for a while longer."""
        assert self.process is not None
        if self.process.poll() is not None:
            return True
        return any(one.pid == self.process.pid for one in announced(self.queue))

    def stop(self, how: int = signal.SIGTERM) -> int | None:
        """The status with which it ends; None if it has ended before."""
        if self.process is None:
            return None
        self.process.send_signal(how)
        status = self.process.wait(PATIENCE_S)
        self.process = None
        return status
