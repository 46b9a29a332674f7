"""A point that is emulated is a run among those of people, once it is planned."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from engine.domain.report import Outcome
from engine.runs.predict import predict
from tests.support.experiments import BASE, RATES
from tests.support.waiting_points import ME, state, stored
from tests.support.web import Browser
from webapp.experiments import emulations, executions, points
from webapp.experiments.models import Cell
from webapp.jobs.lease import owner_of
from webapp.runs import closing, services, waiting
from webapp.runs.models import Run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nobody_hears")]
BROKE = Outcome(kind="failed", sentence="The emulator broke.")


def emulated(owner: User) -> Cell:
    """One point that is to be emulated."""
    factors = [RATES | {"values": [1e7]}]
    experiment = stored(owner, factors=factors, base={**BASE, "strategy": "single"})
    execution = executions.carry_out(experiment, None)
    return execution.cells.get(world="emulated")


def running(cell: Cell) -> Run:
    """The run that a worker has taken of the point that the cell wants now."""
    cell.refresh_from_db()
    planned = emulations.start(cell.run_id or 0, ME)
    assert planned is not None
    run = waiting.claim(planned.pk, ME)
    assert run is not None
    return run


def test_people_see_a_point_among_their_runs_once_it_is_planned(anna: User, alice: Browser) -> None:
    cell = emulated(anna)
    assert alice.get("/runs").json() == [] and alice.get(f"/runs/{cell.run_id}").status_code == 404
    run = running(cell)
    assert [row["id"] for row in alice.get("/runs").json()] == [run.pk] == [cell.run_id]
    assert alice.get(f"/runs/{run.pk}").json()["plan"] is not None


def test_a_point_whose_emulation_breaks_is_another_run_each_time_and_fails_after_the_third(
    anna: User, alice: Browser
) -> None:
    cell, runs = emulated(anna), []
    for _ in range(3):
        runs.append(running(cell))
        closing.end(owner_of(runs[-1]), BROKE)
    cell.refresh_from_db()
    assert cell.run == runs[2] and state(runs[2]) == "failed"
    assert cell.run.error == "Given up after 3 attempts: The emulator broke."
    rows = alice.get("/runs").json()
    assert [(row["id"], row["status"]) for row in rows] == [(run.pk, "failed") for run in reversed(runs)]
    assert [row["experiment"] is not None for row in rows] == [True, False, False]
    executions.retry(cell.execution.experiment, stale=False)
    cell.refresh_from_db()
    assert (state(cell.run), cell.run.attempts, cell.run.listed) == ("waiting", 0, False)


def test_what_a_run_gave_stays_in_its_experiment_when_somebody_deletes_the_run(
    anna: User, alice: Browser
) -> None:
    cell = emulated(anna)
    run = running(cell)
    report = predict(points.spec_of(run)).model_copy(update={"world": "emulated", "dilation": 7.0})
    closing.finish(owner_of(run), report)
    address = f"/experiments/{cell.execution.experiment_id}/rows"

    def row() -> dict[str, object]:
        return next(row for row in alice.get(address).json()["rows"] if row["world"] == "emulated")

    before = row()
    assert (before["state"], before["run_id"]) == ("done", run.pk) and before["metrics"]
    services.delete(Run.objects.get(pk=run.pk))
    assert row() == before | {"run_id": None}
    assert alice.get("/runs").json() == []
