"""`python -m bench.service.load`, which `./loom bench load` runs in namespaces of its own: a busy service.

The server's processes are the real ones with the embedded defaults (SQLite, one web process, two planning
processes), and two emulating workers as in a trial. 200 people watch one live run while ten start five runs
each; 10,000 other runs are stored.
"""

from __future__ import annotations

import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.tables.rows import Table
from bench.trials.isolated import found_by, hand_over, parser_of
from bench.trials.servers import Redis, wait_for
from bench.trials.session import LIVE_SEED, set_pace
from webapp.ops.places import ROOT
from webapp.ops.redis_server import free_port
from webapp.ops.services import Service, web, worker

VIEWERS, PEOPLE, RUNS_EACH, STORED = 200, 10, 5, 10_000
LIVE_S, LIVE_LINES, LIVE_MORE = 20.0, 450, 8
"""A line every 44 ms with nine other events: 220 events and 50 kB in a second."""
RUN_S = 0.5
LIST_TIMES = 10
LISTS = (
    "/api/runs?limit=50",
    "/api/runs?limit=50&offset=9900",
    "/api/runs?limit=50&status=finished",
    "/api/runs?limit=50&search=number%2077",
    "/api/runs?limit=50&tag=every-hundredth",
    "/api/clusters",
    "/api/experiments",
)


class Load(NamedTuple):
    """Seconds of requests, and of events on their way once all viewers are there; `problems` says what was
    lost.
    """

    requests_s: dict[str, list[float]]
    lists_s: dict[str, list[float]]
    lags_s: list[float]
    problems: list[str]


def measure_service() -> Table:
    """Measure the service under load, as root. Raises `RunError` if something was lost."""
    title = (
        "200 people watch one live run, ten start five runs each and look at lists; 10,000 runs are stored"
    )
    rows = found_by(__name__).rows_unless("Under load something went wrong")
    return Table(title, ("what", "times", "median", "95 %"), rows)


def measure(directory: Path, viewers: int, stored: int) -> Load:
    subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
    redis = Redis(directory)
    redis.start()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    os.environ.update(environment(directory, redis.server.url))
    importlib.import_module("bench.trials.django_ready")
    from bench.service import load_rows

    progress("the database")

    subprocess.run(
        (sys.executable, "-m", "webapp.ops.prepare"), cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )
    from bench.trials.service import Workers

    emulating = Workers(directory, redis, quick=False)
    children = [start(one, redis, directory) for one in (web(port=port), worker("plan"))]
    try:
        emulating.start(0)
        emulating.start(1)
        wait_for(lambda: load_rows.are_ready({"plan", "emulate"}), "a worker")
        progress("stored runs")
        return measured(load_rows.Rows(directory, stored, PEOPLE), url, directory, viewers)
    finally:
        emulating.stop()
        for child in children:
            child.terminate()
            child.wait()
        redis.kill()


def measured(rows: Any, url: str, directory: Path, viewers: int) -> Load:
    from bench.service.clients import LOOK_EVERY_S, Api, Person, watch_all

    set_pace(directory, "pace", RUN_S)
    set_pace(directory, "live_pace", LIVE_S, LIVE_LINES, LIVE_MORE)
    reader = Api(url, rows.viewer)
    wait_for(lambda: rows.answers(reader), "the web server")
    progress("lists")
    lists_s = {path: timed(reader, path) for path in LISTS}
    progress("people and viewers")
    live = Api(url, rows.operators[0]).send("POST", "/api/runs", rows.body | {"seed": LIVE_SEED})["id"]
    stopping = threading.Event()
    everybody = [
        Person(
            Api(url, token),
            rows.body,
            range(1 + RUNS_EACH * n, 1 + RUNS_EACH * (n + 1)),
            stopping,
            n * LOOK_EVERY_S / PEOPLE,
        )
        for n, token in enumerate(rows.operators)
    ]
    for person in everybody:
        person.start()
    seen = watch_all(url, live, rows.viewer, viewers)
    started = [run_id for person in everybody for run_id in person.started]
    progress("the last runs")
    wait_for(lambda: rows.are_over([live, *started]), "the end of all runs")
    stopping.set()
    problems = rows.problems(started, PEOPLE * RUNS_EACH)
    whole = list(range(LIVE_LINES))
    problems += [f"a viewer saw {len(one.lines)} lines and {one.end}" for one in seen if one.lines != whole]
    requests = [one for person in everybody for one in person.api.requests]
    problems += [f"{one.path} was answered with {one.status}" for one in requests if one.status >= 400]
    all_there_s = max(one.connected_s for one in seen)
    lags_s = [lag_s for one in seen for said_s, lag_s in one.lags_s if said_s >= all_there_s]
    return Load(by_path(requests), lists_s, lags_s, problems)


def progress(what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")


def timed(api: Any, path: str) -> list[float]:
    before = len(api.requests)
    for _ in range(LIST_TIMES):
        api.send("GET", path)
    return [one.took_s for one in api.requests[before:]]


def by_path(requests: Sequence[Any]) -> dict[str, list[float]]:
    """Times by path, with numbers of runs left out."""
    found: dict[str, list[float]] = {}
    for one in requests:
        name = "/".join("N" if part.isdigit() else part for part in one.path.split("/"))
        found.setdefault(name, []).append(one.took_s)
    return found


def environment(directory: Path, redis_url: str) -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "REDIS_URL": redis_url,
        "LOOM_STATE_DIR": str(directory / "state"),
        "LOOM_TRIAL_DIRECTORY": str(directory),
        "OMP_NUM_THREADS": "1",
    }


def start(service: Service, redis: Redis, directory: Path) -> subprocess.Popen[bytes]:
    """A process of the service with the rights that it has in Redis under `./loom up`."""
    own = {**os.environ, "REDIS_URL": redis.server.url_of(service.kind)}
    with (directory / f"{service.name}.log").open("ab") as log:
        line = (sys.executable, *service.arguments)
        return subprocess.Popen(line, cwd=ROOT, env=own, stdout=log, stderr=log)


def rows_of(load: Load) -> list[tuple[str, str, str, str]]:
    """What was measured, how often, its median and its 95 % quantile."""
    every = [took_s for times_s in load.requests_s.values() for took_s in times_s]
    measured = {
        f"event to {VIEWERS} viewers": load.lags_s,
        "every request meanwhile": every,
        **load.requests_s,
        **{f"GET {path}, nobody else there": times_s for path, times_s in load.lists_s.items()},
    }
    return [(name, str(len(times_s)), *quantiles(times_s)) for name, times_s in measured.items()]


def quantiles(times_s: list[float]) -> tuple[str, str]:
    cuts = statistics.quantiles(times_s, n=20)
    return f"{1000 * statistics.median(times_s):.0f} ms", f"{1000 * cuts[18]:.0f} ms"


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--viewers", type=int, default=VIEWERS)
    parser.add_argument("--stored", type=int, default=STORED)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edgeloom-load-") as directory:
        load = measure(Path(directory), args.viewers, args.stored)
    return hand_over(rows_of(load), load.problems, args.result)


if __name__ == "__main__":
    sys.exit(main())
