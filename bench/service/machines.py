"""`python -m bench.service.machines`, which `./loom bench machines` runs in namespaces of its own: a server
and two workers on machines of their own, with PostgreSQL and Redis that both ask for a password.

A machine is a network namespace with a folder of its own, at the switch that the server is at. The processes
are those of docs/guides/operations.md; the runs are real ones.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.tables.rows import Table
from bench.trials.isolated import found_by, hand_over, parser_of
from bench.trials.lan import SERVER, Cable, build_switch
from bench.trials.servers import Disk, Postgresql, Redis, wait_for
from webapp.ops.places import ROOT
from webapp.ops.redis_server import free_port
from webapp.ops.services import Service, web, worker

WORKERS = 2
RUNS = 4
DILATION = 40.0
"""The dilation of runs, as two at once share the cores of one real machine."""
SAME = 0.01
"""How much latencies of the same run on two workers may differ."""
PASSWORD = "between-machines"
DISK_BYTES = 128_000_000


def measure_machines() -> Table:
    """Measure a service of several machines, as root. Raises `RunError` if something was wrong."""
    title = "A server and two workers in network namespaces, PostgreSQL and Redis with passwords"
    rows = found_by(__name__).rows_unless("With two machines something went wrong")
    return Table(title, ("what", "result"), rows)


class Machine:
    """A worker's: `number` from 0. Its processes reach the server, and nothing else but the other's."""

    def __init__(self, number: int, directory: Path):
        self.name = f"worker{number}"
        self.directory = directory / self.name
        self.directory.mkdir()
        Cable(self.name, 10 + number)

    def start(self, service: Service, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        here = {
            "EDGELOOM_STATE_DIR": str(self.directory / "emulator"),
            "LOOM_STATE_DIR": str(self.directory),
        }
        line = ("ip", "netns", "exec", self.name, sys.executable, *service.arguments)
        # Machines have names of their own; these would share one.
        words = [word.replace("@%h", f"@{self.name}") for word in line]
        return start(words, self.directory / "log", environment | here)


def start(line: list[str], log: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            line, cwd=ROOT, env=os.environ | environment, stdout=output, stderr=output, start_new_session=True
        )


def play(directory: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Play all of it: rows of what happened, and what was wrong."""
    directory.chmod(0o755)
    build_switch()
    machines = [Machine(number, directory) for number in range(WORKERS)]
    redis = Redis(directory, "0.0.0.0")
    (directory / "postgresql").mkdir()
    disk = Disk(directory / "disk", DISK_BYTES)
    database = Postgresql(directory / "postgresql", disk.directory, PASSWORD)
    redis.start()
    database.start()
    port = free_port()
    here = shared(redis, "web", database, "127.0.0.1") | {"LOOM_STATE_DIR": str(directory / "server")}
    os.environ.update(here | {"DJANGO_SETTINGS_MODULE": "webapp.settings", "REDIS_URL": redis.server.url})
    prepare = (sys.executable, "-m", "webapp.ops.prepare")
    subprocess.run(prepare, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    processes = [
        start(
            [sys.executable, *service.arguments],
            directory / f"{service.name}.log",
            here | shared(redis, service.kind, database, "127.0.0.1"),
        )
        for service in (web(port=port), worker("plan"))
    ]
    processes += [
        one.start(worker("emulate"), shared(redis, "emulate", database, SERVER)) for one in machines
    ]
    try:
        return observe(f"http://127.0.0.1:{port}", redis, database)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(20)
        redis.kill()
        database.stop()


def shared(redis: Redis, kind: str, database: Postgresql, address: str) -> dict[str, str]:
    """What a process is given that is Redis' user `kind`, and reaches the server at `address`."""
    return {
        "REDIS_URL": redis.server.url_of(kind).replace("127.0.0.1", address),
        "DATABASE_URL": database.url.replace("127.0.0.1", address),
        "OMP_NUM_THREADS": "1",
    }


def observe(url: str, redis: Redis, database: Postgresql) -> tuple[list[tuple[str, str]], list[str]]:
    importlib.import_module("bench.trials.django_ready")
    from bench.service.clients import Api
    from bench.service.load_rows import token_of
    from bench.trials.requests import request_of_all
    from webapp.jobs import announcement
    from webapp.runs.models import Run

    api = Api(url, token_of("operator", 0))
    wait_for(lambda: len(announcement.announced("emulate")) == WORKERS, "the second worker")
    wait_for(lambda: bool(announcement.announced("plan")), "the planning worker")
    wait_for(lambda: answers(api), "the web server")
    body = request_of_all().model_dump(mode="json", exclude_defaults=True) | {"dilation": DILATION}
    started = [api.send("POST", "/api/runs", body)["id"] for _ in range(RUNS)]
    wait_for(lambda: not Run.objects.filter(pk__in=started, archived=False).exists(), "the end of all runs")
    runs = list(Run.objects.filter(pk__in=started).order_by("pk"))
    opened = open_without_password(redis, database)
    problems = list(opened)
    problems += [f"run {run.pk} is {run.status}: {run.error}" for run in runs if run.status != "finished"]
    problems += [f"run {run.pk} is not valid: {why(run)}" for run in runs if not (run.valid and run.correct)]
    by_worker = {run.worker: run for run in runs}
    if len(by_worker) < WORKERS:
        problems.append(f"all runs were on one worker: {', '.join(by_worker)}")
    latencies_s = [run.latency_s for run in runs if run.latency_s]
    spread = max(latencies_s) / min(latencies_s) - 1 if latencies_s else 1.0
    if spread > SAME:
        problems.append(f"the latencies of one run differ by {spread:.1%}: {latencies_s}")
    rows = [
        ("workers, in namespaces of their own", str(len(by_worker))),
        ("runs of the same request, at a dilation of 40", str(len(runs))),
        (
            "of these valid, with the reference's tokens",
            str(sum(bool(run.valid) for run in runs)),
        ),
        ("largest difference of their latencies", f"{spread:.2%}"),
        ("servers that answer without a password", str(len(opened))),
    ]
    return rows, problems


def answers(api: Any) -> bool:
    try:
        return bool(api.send("GET", "/api/health"))
    except OSError:
        return False


def why(run: Any) -> str:
    fidelity = (run.report or {}).get("fidelity") or {}
    return " ".join(fidelity.get("why", ())) or run.error


def open_without_password(redis: Redis, database: Postgresql) -> list[str]:
    """Names of the servers that let somebody in who has no password."""
    import psycopg
    from redis import Redis as Client
    from redis.exceptions import AuthenticationError

    found = []
    try:
        psycopg.connect(database.url.replace(f":{PASSWORD}", ""), connect_timeout=5).close()
        found.append("PostgreSQL answers without a password")
    except psycopg.OperationalError:
        pass
    try:
        Client(port=redis.server.port).ping()
        found.append("Redis answers without a password")
    except AuthenticationError:
        pass
    return found


def main() -> int:
    args = parser_of(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="edgeloom-machines-", ignore_cleanup_errors=True) as directory:
        try:
            rows, problems = play(Path(directory))
        finally:
            subprocess.run(("umount", "--lazy", f"{directory}/disk"), check=False)
    return hand_over(rows, problems, args.result)


if __name__ == "__main__":
    sys.exit(main())
