"""Plays one schedule after another on one service, and gathers the evidence."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

from django.contrib.auth.models import User
from django.core.management import call_command

from bench.trials import servers
from bench.trials.outcomes import TrialOutcome
from bench.trials.requests import request_of_all
from bench.trials.schedule import Schedule
from bench.trials.service import Service, Workers, until_over
from bench.trials.session import set_pace
from bench.trials.short_times import shorten_times
from bench.trials.verdict import Evidence, leftovers, problems
from bench.trials.viewer import Viewers
from engine.domain.report import RunReport
from engine.runs.predict import predict, prepare
from webapp.base.redis import client
from webapp.events import archive
from webapp.jobs.models import OVER
from webapp.runs import services
from webapp.runs.models import Run
from webapp.runs.requests import spec_of

SETTLED_WITHIN_S = 60.0
CAUGHT_UP_S = 10.0
TICK_S = 0.05
AGAIN_S = 0.5
"""A person whose run was refused asks again so much later."""
FOREVER = -1
"""What Redis answers when asked when such a key expires."""
SESSION_STARTER = "emulator.session.fork_server"
SEEDS = 1000
"""The seeds of runs: no trial has more runs, asked again or not."""


class Trials:
    def __init__(self, redis: servers.Redis, database: servers.Database, disk: servers.Disk, directory: Path):
        shorten_times()
        call_command("migrate", interactive=False, verbosity=0)
        owner = User.objects.create_superuser("somebody")
        self.directory = directory
        self.service = Service(redis, database, disk, Workers(directory, redis), owner)
        request = request_of_all()
        spec = spec_of(request)
        report: RunReport = predict(spec).model_copy(update={"world": "emulated"})
        self.service.prepare(request, prepare(spec).plan, report, directory)
        self.viewers = Viewers()
        self.ends: dict[int, set[tuple[str, str]]] = defaultdict(set)
        self.service.workers.heal()
        self.known = set(pids())

    def play(self, one: Schedule) -> TrialOutcome:
        times_s = [time.monotonic()]
        set_pace(self.directory, "pace", one.run_s)
        (self.directory / "journal").write_text("")
        self._play(one)
        times_s.append(time.monotonic())
        self.service.heal()
        times_s.append(time.monotonic())
        settled = until_over(self.service, SETTLED_WITHIN_S)
        times_s.append(time.monotonic())
        self._note_ends()
        wrong = [] if settled else [f"runs have not ended {SETTLED_WITHIN_S:.0f} s after all was healed"]
        runs = list(Run.objects.order_by("pk"))
        self._until_watched(runs)
        for run in runs:
            wrong += problems(one, self._evidence(run))
        wrong += self.viewers.broken
        wrong += self._clean(runs)
        times_s.append(time.monotonic())
        names = ("faults", "healing", "until all is over", "judging")
        took_s = [after - before for before, after in pairwise(times_s)]
        phases = ", ".join(f"{name} {one_s:.1f}" for name, one_s in zip(names, took_s, strict=True))
        return TrialOutcome(one, tuple(run.status for run in runs), tuple(wrong), sum(took_s), phases)

    def _play(self, one: Schedule) -> None:
        """Do all that the trial has at its time, in one thread: nothing here waits for long."""
        seeds = iter(range(SEEDS))
        agenda: list[tuple[float, Callable[[], None]]] = []

        def ask() -> None:
            run_id = self.service.create(next(seeds))
            if run_id is None:
                agenda.append((time.monotonic() - began_s + AGAIN_S, ask))
            else:
                self.viewers.watch(run_id)

        agenda += [(at_s, ask) for at_s in one.runs_s]
        for step in one.steps:
            agenda.append((step.at_s, partial(self.service.begin, step)))
            agenda.append((step.at_s + abs(step.lasts_s), partial(self.service.end, step)))
        began_s = time.monotonic()
        while agenda:
            agenda.sort(key=lambda item: item[0])
            while agenda and agenda[0][0] <= time.monotonic() - began_s:
                agenda.pop(0)[1]()
            self._note_ends()
            time.sleep(TICK_S)

    def _note_ends(self) -> None:
        for run_id, (status, error) in self.service.look().items():
            if status in OVER:
                self.ends[run_id].add((status, error))

    def _until_watched(self, runs: list[Run]) -> None:
        """Wait until all who watch have the ends of their runs, which they get soon after these
        are archived.
        """

        def caught_up() -> bool:
            return all(
                bool(seen) and seen[-1].number >= archive.last_stored(run_id)
                for run_id, seen in self.viewers.seen.items()
            )

        until_s = time.monotonic() + CAUGHT_UP_S
        while not caught_up() and time.monotonic() < until_s:
            time.sleep(TICK_S)

    def _evidence(self, run: Run) -> Evidence:
        batches = list(archive.history(run.pk, 0))
        lines = (self.directory / "journal").read_text().splitlines()
        words = [line.split() for line in lines]
        return Evidence(
            run=run,
            batches=batches,
            watched=self.viewers.seen.get(run.pk, batches),  # a run that nobody was told of
            ends=self.ends[run.pk],
            journal=[word for word, seed in words if int(seed) == run.spec["seed"]],
            cancelled_before_start=run.pk in self.service.cancelled_before_start,
        )

    def _clean(self, runs: list[Run]) -> list[str]:
        """Delete the runs; what is left after that."""
        self.viewers.leave()
        for run in runs:
            services.delete(run)
        self.service.created.clear()
        self.service.cancelled_before_start.clear()
        self.ends.clear()
        self.service.workers.forget_names()
        self._until_looked()
        strangers = self._strangers()
        until_s = time.monotonic() + CAUGHT_UP_S
        while strangers and time.monotonic() < until_s:  # a worker may just be starting a program
            time.sleep(TICK_S)
            strangers = self._strangers()
        keys = [str(key) for key in client().scan_iter(count=1000) if client().ttl(key) == FOREVER]
        return list(leftovers(keys, strangers, self.directory))

    def _until_looked(self) -> None:
        """The workers take what is left in their queue, and find nothing to do."""
        until_s = time.monotonic() + CAUGHT_UP_S
        while client().llen("emulate") and time.monotonic() < until_s:
            time.sleep(TICK_S)

    def _strangers(self) -> list[tuple[int, str]]:
        """Processes that are not the service's. A worker keeps the one that sessions are forked from."""
        redis, workers = self.service.redis.process, self.service.workers.pids()
        ours = self.known | workers | ({redis.pid} if redis else set())
        here, of_workers = pids(), {pid for worker in workers for pid in children(worker)}
        ours |= {pid for pid in of_workers if SESSION_STARTER in here.get(pid, "")}
        return [(pid, words) for pid, words in here.items() if pid not in ours]

    def stop(self) -> None:
        self.service.workers.stop()


def children(pid: int) -> list[int]:
    """The children of a process; none if it has ended."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for one in threads for child in (one / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def pids() -> dict[int, str]:
    """The processes in this namespace that run, with their command lines; without PostgreSQL's, and those
    that have none, which are just ending.
    """
    found = {}
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit() or int(directory.name) == os.getpid():
            continue
        try:
            words = (directory / "cmdline").read_text().replace("\0", " ").strip()
            state = (directory / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state not in "ZX" and words and "postgres" not in words:
            found[int(directory.name)] = words
    return found
