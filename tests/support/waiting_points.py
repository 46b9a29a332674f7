"""Experiments that wait in the database, and workers of their points."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now

from engine.experiments.results.rows import Result
from tests.support.experiments import fields
from webapp.experiments import computations, services
from webapp.experiments.models import Computation, Experiment
from webapp.jobs import lease, suspicion, workers

ME = workers.this_worker("points@here")
OTHER = workers.Identity("points@elsewhere", "elsewhere", 1, 1)
DEAD = workers.Identity("points@here", workers.home(), 2**22 + 1, 1)
"""No process has this id: it is above the kernel's largest."""


def stored(owner: User, **changes: Any) -> Experiment:
    return services.create(services.parse(fields(**changes), None), None, owner)


def result(computation: Computation) -> Result:
    return Result(
        digest=computation.digest, world="predicted", outcome="finished", metrics={"latency_s": 1.0}
    )


def states(experiment: Experiment) -> list[str]:
    execution = services.last_execution(experiment)
    assert execution is not None
    cells = execution.cells.select_related("computation")
    return [cell.computation.state if cell.computation else "problem" for cell in cells]


def late(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The database's clock goes on."""
    monkeypatch.setattr(lease, "now", lambda: Now() + timedelta(seconds=seconds))


def reaped() -> int:
    """How many points are given back because their worker is gone, without the grace of `Suspicion`."""
    here = workers.home()
    gone = {one.pk: one for one in (*suspicion.dead(Computation, here), *suspicion.late(Computation))}
    return sum(computations.settle(one) for one in gone.values())
