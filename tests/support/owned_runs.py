"""Runs with an owner: the clock of the database set by hand, what their events say, and logs of owners."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db.models import Value

from engine.domain.events import EVENTS, Logged
from engine.domain.report import Outcome
from tests.support.web import request_body, run_spec
from webapp.events import archive
from webapp.events.event_log import STEP, EventLog
from webapp.jobs import lease, workers
from webapp.runs import services, waiting
from webapp.runs.models import Run

WORKERS = tuple(workers.Identity(f"emulate@{name}", "elsewhere", 1, 1) for name in "abc")
DONE = Outcome(kind="failed", sentence="It ran and failed.")


class Clock:
    """The database's, in its place."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> Any:
        return Value(self.time)

    def go_on(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def new_run() -> Run:
    spec = run_spec().model_dump(mode="json")
    run = Run.objects.create(request=request_body(), spec=spec, cluster_name="lab-3", strategy="voltage")
    services.announce(run)
    return run


def texts(run_id: int) -> list[str]:
    """What the run's events say, in order: texts of the log, states of the run."""
    batches = list(archive.history(run_id, 0))
    for before, after in pairwise(batch.number for batch in batches):
        assert after == before + 1 or (after > before and after % STEP == 1), "an owner's numbers have no gap"
    events = [event for batch in batches for event in EVENTS.validate_json(batch.events)]
    return [event.text if isinstance(event, Logged) else event.state for event in events]


def claimed_log() -> EventLog:
    run = waiting.claim(new_run().pk, WORKERS[0])
    assert run is not None
    return EventLog(lease.owner_of(run))


def speak(log: EventLog, *words: str) -> None:
    log.add([Logged(level="info", text=word) for word in words])
    log.send()
