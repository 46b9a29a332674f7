"""`python -m bench.soak.campaign`, which `./loom soak` runs in namespaces of its own: a real service, people,
and somebody who ends its processes.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from bench.service.idle import Usage, family, usage
from bench.service.load import environment, progress, start
from bench.trials.isolated import Found, carry_out, found_by, parser_of
from bench.trials.servers import Redis, wait_for
from webapp.ops.places import ROOT
from webapp.ops.redis_server import free_port
from webapp.ops.services import Service, web, worker

DISTURBED_EVERY_S = (15.0, 45.0)
AWAY_S = (0.0, 3.0)
SIGNALS = (signal.SIGKILL, signal.SIGTERM)
ENDS_WITHIN_S = 30.0
SETTLED_WITHIN_S = 300.0
LOOK_EVERY_S = 1.0


def soaked(seed: int, minutes: float, people: int) -> Found:
    """Let people use a service for some minutes, as root. Raises `OpsError` if it broke off."""
    return found_by(__name__, "--seed", str(seed), "--minutes", str(minutes), "--people", str(people))


class Staff:
    """The processes of the service, each of which can be ended and started again, and its Redis."""

    def __init__(self, redis: Redis, services: list[Service], directory: Path):
        self.redis, self.directory = redis, directory
        self.services = {service.name: service for service in services}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.names = (*self.services, "redis")

    def start(self, name: str) -> None:
        if name == "redis":
            self.redis.start()
        else:
            self.running[name] = start(self.services[name], self.redis, self.directory)

    def end(self, name: str, how: signal.Signals) -> None:
        """Returns when it has ended. A worker that is told to end stops its run first."""
        if name == "redis":
            self.redis.kill()
            return
        process = self.running.pop(name)
        process.send_signal(how)
        try:
            process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def usages(self) -> list[Usage]:
        """Usage of the service's processes and of those that planning workers have forked, not of
        emulations.
        """
        found = []
        for name, process in self.running.items():
            members = [process.pid] if name == "worker-emulate" else list(family(process.pid))
            for pid in members:
                try:
                    found.append(usage(pid)._replace(name=f"{name}, {pid}"))
                except (ProcessLookupError, FileNotFoundError):
                    continue
        return found

    def end_all(self) -> None:
        for name in list(self.running):
            self.end(name, signal.SIGTERM)


def soak(seed: int, minutes: float, people: int, directory: Path) -> Found:
    subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
    directory.chmod(0o755)
    redis = Redis(directory)
    os.environ.update(environment(directory, redis.server.url))
    os.environ |= {
        "EDGELOOM_STATE_DIR": str(directory / "emulator"),
        "XDG_CACHE_HOME": str(directory / "cache"),
    }
    del os.environ["LOOM_TRIAL_DIRECTORY"]
    redis.start()
    importlib.import_module("bench.trials.django_ready")  # settings are read now
    prepare = (sys.executable, "-m", "webapp.ops.prepare")
    subprocess.run(prepare, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    port = free_port()
    queues = ("plan", "points", "emulate")
    staff = Staff(redis, [web(port=port), *map(worker, queues)], directory)
    for name in staff.services:
        staff.start(name)
    try:
        return Soak(staff, seed, people, f"http://127.0.0.1:{port}").play(60 * minutes)
    finally:
        staff.end_all()
        redis.kill()


def interfaces() -> set[str]:
    """Of the machine's networks that this process sees."""
    return {path.name for path in Path("/sys/class/net").iterdir()}


class Soak:
    """The people and what is known of their runs. Made once settings are read."""

    def __init__(self, staff: Staff, seed: int, people: int, url: str):
        from bench.service.clients import Api
        from bench.service.load_rows import are_ready, token_of
        from bench.soak.people import Person

        wait_for(lambda: are_ready({"plan", "points", "emulate"}), "a worker")
        self.staff, self.random = staff, Random(seed)
        self.stopping = threading.Event()
        secrets = [token_of("operator", number) for number in range(people)]
        self.people = [
            Person(Api(url, secret), seed, number, self.stopping) for number, secret in enumerate(secrets)
        ]
        self.disturbances: list[Any] = []
        self.outcomes: Counter[str] = Counter()
        self.seen: set[int] = set()
        self.problems: list[str] = []
        self.most_bytes = 0
        self.interfaces = interfaces()

    def play(self, lasts_s: float) -> Found:
        began_s = time.monotonic()
        for person in self.people:
            person.start()
        next_s = began_s + self.random.uniform(*DISTURBED_EVERY_S)
        while time.monotonic() - began_s < lasts_s:
            if time.monotonic() >= next_s:
                self.disturb()
                next_s = time.monotonic() + self.random.uniform(*DISTURBED_EVERY_S)
            self.look()
            time.sleep(LOOK_EVERY_S)
        self.stopping.set()
        for person in self.people:
            person.join()
        progress("nobody asks for more")
        self.settle()
        self.problems += self.left_behind()
        return self.found(time.monotonic() - began_s)

    def disturb(self) -> None:
        from bench.soak.verdict import Disturbance

        name, how = self.random.choice(self.staff.names), self.random.choice(SIGNALS)
        progress(f"{name} gets {how.name}")
        began = datetime.now(UTC)
        self.staff.end(name, how)
        time.sleep(self.random.uniform(*AWAY_S))
        self.staff.start(name)
        self.disturbances.append(Disturbance(name, began, datetime.now(UTC)))

    def look(self) -> None:
        """Judge the runs that are over, and delete some of them; look at memory."""
        from django.db import connection

        from bench.soak.verdict import problems, too_large
        from webapp.events import archive
        from webapp.runs import services
        from webapp.runs.models import Run

        for run in Run.objects.filter(archived=True).exclude(pk__in=self.seen):
            self.seen.add(run.pk)
            self.outcomes[run.status] += 1
            self.note(*problems(run, list(archive.history(run.pk, 0)), self.disturbances))
            if self.random.random() < 0.3 and not run.cells.exists():
                services.delete(run)
        connection.close()
        usages = self.staff.usages()
        self.most_bytes = max([self.most_bytes, *(one.resident_bytes for one in usages)])
        self.note(*too_large(usages))

    def note(self, *problems: str) -> None:
        for problem in problems:
            progress(problem)
        self.problems += problems

    def settle(self) -> None:
        """Wait until every run has ended, every point that a worker has is computed, and no message is left.

        Experiments start no more points. The machine may be busy: it only has to go on.
        """
        from webapp.base.redis import client
        from webapp.experiments.models import Execution
        from webapp.experiments.points import all_points
        from webapp.jobs.models import ACTIVE
        from webapp.runs.models import Run

        Execution.objects.update(state="paused")
        begun = all_points().filter(listed=False, status__in=ACTIVE)
        open_runs = Run.objects.filter(archived=False)
        seen, until_s = -1, 0.0
        while open_runs.exists() or begun.exists() or client().llen("emulate"):
            self.look()
            if len(self.seen) > seen:
                seen, until_s = len(self.seen), time.monotonic() + SETTLED_WITHIN_S
            if time.monotonic() > until_s:
                break
            time.sleep(LOOK_EVERY_S)
        self.note(*(f"run {run.pk} has not ended: {run.status}" for run in open_runs))
        self.note(*(f"the point {point} is still running" for point in begun))

    def left_behind(self) -> Iterator[str]:
        """What is left once all is deleted and the service has ended."""
        from bench.soak.verdict import defects
        from bench.trials.trial import FOREVER, pids
        from bench.trials.verdict import leftovers
        from webapp.base.redis import client
        from webapp.runs import services
        from webapp.runs.models import Run

        for person in self.people:
            yield from (*person.broken, *defects(person.api.requests))
        for run in Run.objects.all():
            services.delete(run)
        self.staff.end_all()
        redis = self.staff.redis.process
        strangers = [(pid, words) for pid, words in pids().items() if redis is None or pid != redis.pid]
        keys = [str(key) for key in client().scan_iter(count=1000) if client().ttl(key) == FOREVER]
        yield from leftovers(keys, strangers, self.staff.directory)
        yield from (f"there is the interface {name}" for name in sorted(interfaces() - self.interfaces))

    def found(self, wall_s: float) -> Found:
        did = sum((person.did for person in self.people), Counter[str]())
        ended = Counter(one.name for one in self.disturbances)
        requests = sum(len(person.api.requests) for person in self.people)
        rows = (
            ("wall time", f"{wall_s / 60:.0f} min"),
            ("people", str(len(self.people))),
            *((f"runs {state}", str(count)) for state, count in sorted(self.outcomes.items())),
            *((name, str(count)) for name, count in sorted(did.items())),
            ("requests", str(requests)),
            ("processes ended", ", ".join(f"{count} {name}" for name, count in sorted(ended.items()))),
            ("largest process", f"{self.most_bytes / 1e6:.0f} MB"),
            ("problems", str(len(self.problems))),
        )
        return Found(rows, tuple(self.problems))


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--people", type=int, required=True)
    args = parser.parse_args()
    return carry_out(partial(soak, args.seed, args.minutes, args.people), "soak", args.result)


if __name__ == "__main__":
    sys.exit(main())
