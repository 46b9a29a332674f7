"""`./loom bench first-run`: from a clone of this checkout's last commit to the first token of the demo run.

The clone has a HOME with nothing but how pip and npm reach their servers, and nothing is installed in it.
Nothing is needed but what `./loom up` needs, so an ordinary user can measure it; root measures an ordinary
user's clones in turn with its own. A run is asked for through the API, as the start page does.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, NamedTuple

from bench.tables.rows import Table
from webapp.ops.places import ROOT, OpsError, echo
from webapp.ops.redis_server import free_port

POLL_S = 0.02
PATIENCE_S = 1800.0
READY = "EdgeLoom is ready"
DONE = re.compile(r"^(?P<part>.+): done in \d+ s\.$")
ORDINARY = "nobody"
"""The user who stands for any without rights: every Linux has it."""

SETTINGS = (".config/pip/pip.conf", ".npmrc")
KEPT = re.compile(r"(?i)PATH|LANG|LC_.*|TMPDIR|PIP_.*|npm_config_.*|UV_.*|SSL_.*|\w+_proxy")
"""The environment variables that a clone keeps."""


class Phase(NamedTuple):
    """A phase of the first start; `asked_s` is what is promised on two quiet cores, without the time of the
    network.
    """

    what: str
    took_s: float
    asked_s: float | None = None


class Visitor:
    """A client of the API with a cookie jar, as a script would be."""

    def __init__(self, url: str):
        self.url = url
        self.cookies = CookieJar()
        self.opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(self.cookies)
        )
        self.opener.open(f"{url}/login").close()

    def ask(self, path: str, body: Any = None) -> tuple[int, Any]:
        """Ask the API, and return status and answer: a POST when there is a body."""
        token = next(cookie.value for cookie in self.cookies if cookie.name == "csrftoken")
        headers = {"Content-Type": "application/json", "X-CSRFToken": token or "", "Origin": self.url}
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = self.opener.open(urllib.request.Request(f"{self.url}/api{path}", data, headers))
        except urllib.error.HTTPError as refusal:
            return refusal.code, None
        with answer:
            return answer.status, json.loads(answer.read() or b"null")

    def log_in(self, password: str) -> int:
        return self.ask("/login", {"username": "admin", "password": password})[0]


class Start:
    """One `./loom up` in the clone; `said` has its lines, each with the seconds since its start."""

    def __init__(self, clone: Path, home: Path, user: str | None):
        self.began_s = time.monotonic()
        self.said: list[tuple[float, str]] = []
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [str(clone / "loom"), "up", "--without-model", "--port", str(self.port)],
            cwd=clone,
            env={**_kept(), "HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            user=user,
            group=None if user is None else pwd.getpwnam(user).pw_gid,
            extra_groups=None if user is None else (),
        )

    def wait_until_ready(self) -> float:
        """Seconds until it has printed its address and the start page answers. Raises `OpsError`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append((time.monotonic() - self.began_s, line.rstrip()))
            echo(f"    {line.rstrip()}")
            if line.startswith(READY):
                urllib.request.build_opener(urllib.request.ProxyHandler({})).open(self.url).close()
                return time.monotonic() - self.began_s
        raise OpsError(f"./loom up ended with status {self.process.wait()} before it was ready.")

    def password(self) -> str:
        return next(found[1] for _, line in self.said if (found := re.search(r"password (\S+)", line)))

    def parts(self) -> list[Phase]:
        """When each part of the set-up was done, since the start."""
        return [
            Phase(f"… {found['part']} done at", at_s)
            for at_s, line in self.said
            if (found := DONE.match(line))
        ]

    def stop(self) -> float:
        """Stop it as by Ctrl-C; returns the seconds until all has ended."""
        began_s = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=PATIENCE_S)
        return time.monotonic() - began_s


def measure_first_run(repeats: int) -> Table:
    """Time the first start of a fresh checkout, as each user, `repeats` times. Raises `OpsError` if a start
    failed.
    """
    users = {"root": None, "an ordinary user": ORDINARY} if os.geteuid() == 0 else {"an ordinary user": None}
    phases: dict[str, dict[str, list[Phase]]] = {}
    for repeat in range(repeats):
        for name, user in users.items():
            echo(f"  {repeat + 1} of {repeats}, as {name}")
            for phase in measure(user):
                phases.setdefault(phase.what, {}).setdefault(name, []).append(phase)
    columns = [column for name in users for column in (f"{name}: median", "slowest")]
    rows = tuple(_row(what, [by_user[name] for name in users]) for what, by_user in phases.items())
    title = f"From clone to first token with a new HOME, {repeats} times, download included"
    return Table(title, ("what", *columns, "asked"), rows)


def _row(what: str, by_user: Sequence[Sequence[Phase]]) -> tuple[str, ...]:
    cells = []
    for phases in by_user:
        took_s = [phase.took_s for phase in phases]
        cells += [f"{statistics.median(took_s):.1f} s", f"{max(took_s):.1f} s"]
    asked_s = by_user[0][-1].asked_s
    return what, *cells, "" if asked_s is None else f"{asked_s:.0f} s"


def measure(user: str | None) -> tuple[Phase, ...]:
    """Time a first run as `user`, None for this one. Raises `OpsError` if something fails on the way."""
    with tempfile.TemporaryDirectory(prefix="edgeloom-first-run-") as directory:
        clone, home = Path(directory) / "edgeloom", Path(directory) / "home"
        _make_home(home)
        began_s = time.monotonic()
        subprocess.run(("git", "clone", "--quiet", "--no-local", str(ROOT), str(clone)), check=True)
        cloned = Phase("git clone", time.monotonic() - began_s)
        if user is not None:
            _give(Path(directory), user)
        with _started(clone, home, user) as first:
            ready_s = first.wait_until_ready()
            visitor = Visitor(first.url)
            if visitor.log_in(first.password()) != 200:
                raise OpsError("The administrator cannot log in with the password that was printed.")
            token = _first_token(visitor)
            total_s = time.monotonic() - began_s
            warm = _first_token(visitor)
            stopped_s = first.stop()
        with _started(clone, home, user) as second:
            again_s = second.wait_until_ready()
            second.stop()
    return (
        cloned,
        *first.parts(),
        Phase("./loom up until it answers at its address", ready_s),
        *token,
        Phase("from clone to first token", total_s, 120.0),
        Phase("address to first token", token[-1].took_s, 15.0),
        *(phase._replace(what=f"next run: {phase.what}") for phase in warm[:-1]),
        Phase("next run: click to first token", warm[-1].took_s, 3.0),
        Phase("Ctrl-C until all has ended", stopped_s),
        Phase("second ./loom up until it answers", again_s, 3.0),
    )


def _make_home(home: Path) -> None:
    """A new user's, with this user's settings of pip and npm."""
    home.mkdir()
    for name in SETTINGS:
        if (settings := Path.home() / name).exists():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(settings, home / name)


def _give(directory: Path, user: str) -> None:
    """Let all of it be that user's."""
    known = pwd.getpwnam(user)
    for path in (directory, *directory.rglob("*")):
        os.chown(path, known.pw_uid, known.pw_gid, follow_symlinks=False)


@contextmanager
def _started(clone: Path, home: Path, user: str | None) -> Iterator[Start]:
    start = Start(clone, home, user)
    try:
        yield start
    finally:
        if start.process.poll() is None:
            start.stop()


def _kept() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}


def _first_token(visitor: Visitor) -> list[Phase]:
    """The start page's run: seconds from the request until each of its states, and until its first token.

    The run is then stopped. Raises `OpsError` if it is refused or ends without a token.
    """
    _, showcases = visitor.ask("/showcases")
    demo = next(each["request"] for each in showcases if each["place"] == "demo")
    began_s = time.monotonic()
    status, run = visitor.ask("/runs", demo)
    while status == 503 and time.monotonic() - began_s < PATIENCE_S:  # its workers are still starting
        time.sleep(POLL_S)
        status, run = visitor.ask("/runs", demo)
    if status != 201:
        raise OpsError(f"The server answered the demo run with {status}.")
    phases = [Phase("click until the run is accepted", time.monotonic() - began_s)]
    cursor = "0"
    while time.monotonic() - began_s < PATIENCE_S:
        _, page = visitor.ask(f"/runs/{run['id']}/events?since={cursor}")
        cursor, now_s = page["cursor"], time.monotonic() - began_s
        for event in page["events"]:
            if event["type"] == "state":
                phases.append(Phase(f"click until {event['state']}", now_s))
                if event["state"] in ("failed", "cancelled", "finished"):
                    raise OpsError(f"The demo run ended without a token: {event}.")
            if event["type"] == "mark" and event["name"] == "token_emitted":
                _stop_run(visitor, run["id"])
                return [*phases, Phase("click to first token", now_s)]
        time.sleep(POLL_S)
    raise OpsError(f"The demo run had no token after {PATIENCE_S:.0f} s.")


def _stop_run(visitor: Visitor, run: int) -> None:
    visitor.ask(f"/runs/{run}/cancel", {})
    began_s = time.monotonic()
    while visitor.ask(f"/runs/{run}")[1]["status"] not in ("cancelled", "failed", "finished"):
        if time.monotonic() - began_s > PATIENCE_S:
            raise OpsError(f"Run {run} does not stop.")
        time.sleep(POLL_S)
