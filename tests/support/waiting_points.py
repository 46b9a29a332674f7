"""Experiments that wait in the database, and workers of their points."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now

from engine.domain.stored import to_document
from engine.experiments.results.rows import Result
from tests.support.experiments import fields
from webapp.experiments import points, services
from webapp.experiments.models import Experiment
from webapp.jobs import lease, suspicion, workers
from webapp.runs import attempts, closing
from webapp.runs.models import Run

ME = workers.this_worker("points@here")
OTHER = workers.Identity("points@elsewhere", "elsewhere", 1, 1)
DEAD = workers.Identity("points@here", workers.home(), 2**22 + 1, 1)
"""No process has this id: it is above the kernel's largest."""


def stored(owner: User, **changes: Any) -> Experiment:
    return services.create(services.parse(fields(**changes), None), None, owner)


def result(point: Run) -> Result:
    return Result(digest=point.digest, world="predicted", outcome="finished", metrics={"latency_s": 1.0})


def keep(point: Run, given: Result, wall_s: float) -> bool:
    return attempts.let_go(lease.owner_of(point), "finished", result=to_document(given), wall_s=wall_s)


def fail(point: Run, why: str) -> bool:
    return attempts.let_go(lease.owner_of(point), "failed", error=why)


def state(point: Run) -> str:
    """The state of a point as experiments show it, and as the database has it now."""
    point.refresh_from_db()
    return points.state_of(point.status, point.result is not None)


def states(experiment: Experiment) -> list[str]:
    execution = services.last_execution(experiment)
    assert execution is not None
    return [state(cell.run) if cell.run else "problem" for cell in execution.cells.select_related("run")]


def late(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The database's clock goes on."""
    monkeypatch.setattr(lease, "now", lambda: Now() + timedelta(seconds=seconds))


def reaped() -> int:
    """How many points are given back because their worker is gone, without the grace of `Suspicion`."""
    here = workers.home()
    gone = {one.pk: one for one in (*suspicion.dead(Run, here), *suspicion.late(Run))}
    return sum(closing.settle(one) for one in gone.values())
