"""The service of a trial: servers, three workers, people; and every fault as a method, with what heals it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from django.contrib.auth.models import User
from django.db import connection

from bench.trials import short_times
from bench.trials.schedule import WORKERS, Step
from bench.trials.servers import Database, Disk, Redis, wait_for
from bench.trials.worker_process import Post, work
from engine.domain.plan import Plan
from engine.domain.report import RunReport
from engine.experiments.execution.version import code_version
from engine.runs.made_plan import made_plan
from webapp.base.errors import Conflict, Unavailable
from webapp.base.redis import REDIS_ERRORS
from webapp.jobs import announcement, storage
from webapp.jobs.intake import wake
from webapp.runs import closing, predictions, services
from webapp.runs.models import Run
from webapp.runs.requests import RunRequest

EXTRA_MESSAGES = 3
processes = multiprocessing.get_context("forkserver")


class Workers:
    """The three workers of a trial. Each process starts from one that has imported everything (a fork
    server).
    """

    def __init__(self, directory: Path, redis: Redis, quick: bool = True):
        self.quick = quick
        self.redis_url = redis.server.url_of("emulate")
        processes.set_forkserver_preload(["bench.trials.django_ready", "bench.trials.worker_process"])
        self.directory = directory
        self.running: list[multiprocessing.process.BaseProcess | None] = [None] * WORKERS
        self.forget_names()

    def start(self, number: int) -> None:
        if self.is_alive(number):
            return
        place = self.directory / f"worker{number}"
        place.mkdir(exist_ok=True)
        post = Post(number, self.names[number], place, self.redis_url, self.quick)
        process = processes.Process(target=work, args=(post,), name=f"worker {number}")
        process.start()
        self.running[number] = process

    def is_alive(self, number: int) -> bool:
        process = self.running[number]
        return process is not None and process.is_alive()

    def signal(self, number: int, what: signal.Signals) -> None:
        process = self.running[number]
        if process is not None and process.pid is not None and process.is_alive():
            with suppress(ProcessLookupError):  # who started it has not heard of its end yet
                os.kill(process.pid, what)

    def pids(self) -> set[int]:
        return {process.pid for process in self.running if process is not None and process.pid is not None}

    def forget_names(self) -> None:
        """Let workers that start from now on have names of their own again."""
        self.names = [f"emulate@host{number}" for number in range(WORKERS)]

    def heal(self) -> None:
        """All of them run. Raises Redis' errors."""
        for number in range(WORKERS):
            self.signal(number, signal.SIGCONT)
        wait_for(self._all_announced, "a worker")

    def _all_announced(self) -> bool:
        for number in range(WORKERS):
            self.start(number)
        return self.pids() <= {one.pid for one in announcement.announced("emulate")}

    def stop(self) -> None:
        for number, process in enumerate(self.running):
            self.signal(number, signal.SIGCONT)
            self.signal(number, signal.SIGTERM)
            if process is not None:
                process.join(10.0)
                process.kill()


class Service:
    """What people and faults do. `created` has the runs that people got."""

    def __init__(self, redis: Redis, database: Database, disk: Disk, workers: Workers, owner: User):
        self.redis, self.database, self.disk, self.workers, self.owner = redis, database, disk, workers, owner
        self.body: RunRequest | None = None
        self.created: list[int] = []
        self.cancelled_before_start: list[int] = []

    def prepare(self, body: RunRequest, plan: Plan, report: RunReport, directory: Path) -> None:
        """Say what runs will be: each is `body` with another seed and planned as `plan`; its emulation
        reports `report`.
        """
        self.body = body
        (directory / "report.json").write_text(report.model_dump_json())
        patch.object(
            predictions,
            "plan",
            lambda spec, person: predictions.Planned(made_plan(spec, plan, code_version())),
        ).start()

    # People -----------------------------------------------------------------------------------------
    def create(self, seed: int) -> int | None:
        """A new run, if the service takes it now: its number."""
        assert self.body is not None, "prepare comes first"
        try:
            run = services.create(self.body.model_copy(update={"seed": seed}), self.owner)
        except (Unavailable, *storage.ERRORS):
            connection.close()
            return None
        self.created.append(run.pk)
        return run.pk

    def cancel(self, number: int) -> None:
        if number >= len(self.created):
            return
        try:
            run = services.find(self.created[number])
            services.cancel(run, "somebody")
            run.refresh_from_db()
            if run.status == "cancelled" and run.started_at is None:
                self.cancelled_before_start.append(run.pk)
        except Conflict:
            return
        except storage.ERRORS:
            connection.close()

    def look(self) -> dict[int, tuple[str, str]]:
        """Look at status and error of every run, as a page asks for them; it also settles abandoned runs."""
        try:
            with suppress(*REDIS_ERRORS):
                closing.settle_abandoned()
            return {
                pk: (status, error) for pk, status, error in Run.objects.values_list("pk", "status", "error")
            }
        except storage.ERRORS:
            connection.close()
            return {}

    # Faults -----------------------------------------------------------------------------------------
    def begin(self, step: Step) -> None:
        workers, target = self.workers, step.target
        acts: dict[str, Callable[[], None]] = {
            "kill": lambda: workers.signal(target, signal.SIGKILL),
            "stop": lambda: workers.signal(target, signal.SIGTERM),
            "pause": lambda: workers.signal(target, signal.SIGSTOP),
            "rename": lambda: self._rename(target),
            "full disk": self.disk.fill,
            "redis": self.redis.kill,
            "database": self.database.disturb,
            "clock": lambda: short_times.jump_to(step.lasts_s),
            "duplicate": self._more_messages,
            "cancel": lambda: self.cancel(target),
        }
        acts[step.fault]()

    def end(self, step: Step) -> None:
        workers, target = self.workers, step.target
        acts: dict[str, Callable[[], None]] = {
            "kill": lambda: workers.start(target),
            "stop": lambda: workers.start(target),
            "pause": lambda: workers.signal(target, signal.SIGCONT),
            "rename": lambda: workers.start(target),
            "full disk": self._free_disk,
            "redis": self._start_redis,
            "database": self.database.mend,
            "clock": lambda: short_times.jump_to(0.0),
        }
        acts.get(step.fault, lambda: None)()

    def heal(self) -> None:
        """End whatever is still broken."""
        self.disk.free()
        self._start_redis()
        self.database.mend()
        short_times.jump_to(0.0)
        self.workers.heal()

    def _free_disk(self) -> None:
        self.disk.free()
        self.database.retry()

    def _rename(self, number: int) -> None:
        self.workers.names[number] = self.workers.names[(number + 1) % WORKERS]
        self.workers.signal(number, signal.SIGTERM)

    def _start_redis(self) -> None:
        if self.redis.process is None:
            self.redis.start()

    def _more_messages(self) -> None:
        with suppress(*REDIS_ERRORS):
            for _ in range(EXTRA_MESSAGES):
                wake("emulate.next", "emulate")


def until_over(service: Service, patience_s: float) -> bool:
    """Wait until every run has ended and its events are archived; False if that takes longer."""
    until_s = time.monotonic() + patience_s
    while time.monotonic() < until_s:
        service.look()
        if not Run.objects.filter(archived=False).exists():
            return True
        time.sleep(0.05)
    return False
