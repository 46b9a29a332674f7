"""What is to do follows from the database: nothing is computed twice, and nothing is lost."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from engine.domain.report import Fidelity
from engine.runs.predict import predict
from tests.support.experiments import BASE, RATES, STRATEGIES, fields
from tests.support.waiting_points import ME, keep, result, states, stored
from tests.support.web import Browser
from webapp.base.errors import Conflict
from webapp.experiments import emulations, executions, points, services, versions
from webapp.experiments.models import Cell, Execution
from webapp.experiments.points import all_points
from webapp.experiments.progress import Pace
from webapp.jobs import answers, release
from webapp.jobs.lease import owner_of
from webapp.runs import closing
from webapp.runs import services as runs
from webapp.runs.models import Run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nobody_hears")]


# Starting ----------------------------------------------------------------------------------------
def test_every_point_waits_for_a_prediction_once_the_experiment_is_started(anna: User) -> None:
    experiment = stored(anna)
    executions.start(experiment)
    assert states(experiment) == 4 * ["waiting"]
    executions.start(experiment)
    assert Execution.objects.count() == 1 and all_points().count() == 4


def test_what_two_experiments_share_is_computed_once(anna: User) -> None:
    executions.start(stored(anna))
    bea = User.objects.create_user("bea")
    wider = stored(bea, factors=[STRATEGIES, RATES | {"values": [1e7, 1e8, 1e9]}])
    executions.start(wider)
    assert all_points().count() == 6 and Cell.objects.count() == 10
    for point in points.take(ME, 10):
        keep(point, result(point), 0.1)
    assert states(wider).count("done") >= 4


def test_an_edit_leaves_what_was_started_as_it_was_frozen(anna: User) -> None:
    experiment = stored(anna)
    first = executions.start(experiment)
    value = services.parse(fields(factors=[STRATEGIES, RATES | {"values": [1e6]}]), None)
    experiment = services.edit(experiment, value, None, version=1)
    assert experiment.version == 2 and first.cells.count() == 4
    second = executions.start(experiment)
    assert second.pk != first.pk and second.cells.count() == 2
    assert len(points.take(ME, 10)) + len(points.take(ME, 10)) == 6
    with pytest.raises(Conflict, match="you edited version 1, stored is 2"):
        services.edit(experiment, value, None, version=1)


def test_a_point_that_cannot_be_run_has_a_sentence_and_the_others_go_on(anna: User) -> None:
    models = {"name": "model", "path": "model", "values": ["tiny-gpt2", "no-such-model"]}
    experiment = stored(anna, base={**fields()["base"], "strategy": "single"}, factors=[models])
    executions.start(experiment)
    assert states(experiment) == ["waiting", "problem"]
    problem = Cell.objects.get(run=None).problem
    assert "no-such-model" in problem and problem.endswith(".")


# Pausing, cancelling, upgrading ------------------------------------------------------------------
def test_a_paused_experiment_starts_no_point_until_it_is_resumed(anna: User) -> None:
    experiment = stored(anna)
    executions.start(experiment)
    (taken,) = points.take(ME, 1)
    executions.pause(experiment)
    assert points.take(ME, 10) == []
    assert not points.waiting(points.PREDICTED).exists(), "or workers would look again and again"
    assert keep(taken, result(taken), 0.1), "what a worker has goes on"
    executions.resume(experiment)
    assert len(points.take(ME, 10)) == 3
    with pytest.raises(Conflict, match="is not paused"):
        executions.resume(experiment)


def test_a_cancelled_experiment_leaves_the_points_that_another_wants(anna: User) -> None:
    first, second = stored(anna), stored(anna, factors=[STRATEGIES, RATES | {"values": [1e7]}])
    executions.start(first)
    executions.start(second)
    executions.cancel(first, "anna")
    assert len(points.take(ME, 10)) == 2 and points.take(ME, 10) == []
    with pytest.raises(Conflict, match="is not under way"):
        executions.cancel(first, "anna")


def test_an_upgrade_computes_anew_what_waits_and_marks_what_is_done(anna: User, monkeypatch) -> None:
    experiment = stored(anna)
    execution = executions.start(experiment)
    (taken,) = points.take(ME, 1)
    keep(taken, result(taken), 0.1)
    monkeypatch.setattr(versions, "version_of", lambda world: "newer")
    assert points.adopt() == 3 and points.adopt() == 0
    assert sorted(execution.cells.values_list("run__code_version", flat=True))[-3:] == 3 * ["newer"]
    assert executions.retry(experiment, stale=True) == 1
    assert states(experiment) == 4 * ["waiting"]
    assert {one.code_version for one in points.take(ME, 10)} == {"newer"}


def test_an_emulation_of_older_code_is_used_and_a_prediction_is_not(anna: User, monkeypatch) -> None:
    experiment = stored(anna)
    executions.start(experiment)
    executions.carry_out(experiment, None)
    for point in all_points():
        taken = points.take_one(point.pk, ME)
        assert taken is not None and keep(taken, result(point), 1.0)
    monkeypatch.setattr(versions, "version_of", lambda world: "newer")
    again = stored(anna)
    executions.start(again)
    executions.carry_out(again, None)
    cells = Cell.objects.filter(execution__experiment=again).values_list("world", "run__status")
    assert set(cells) == {("predicted", "waiting"), ("emulated", "finished")}


def test_one_person_has_five_experiments_under_way_at_most(anna: User) -> None:
    begun = [stored(anna, name=f"number-{number}") for number in range(5)]
    for experiment in begun:
        executions.start(experiment)
    sixth = stored(anna, name="sixth")
    with pytest.raises(Conflict, match="5 experiments under way, and the limit is 5: pause or cancel one"):
        executions.start(sixth)
    executions.start(stored(User.objects.create_user("bea")))
    executions.pause(begun[0])
    executions.start(sixth)
    with pytest.raises(Conflict, match="5 experiments under way"):
        executions.resume(begun[0])


def test_a_preview_replaces_the_one_before_and_is_the_same_for_the_same_experiment(
    anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = services.parse(fields(), None)
    with monkeypatch.context() as patch:  # a later design was faster, and has replaced this one
        patch.setattr(answers, "ask", lambda *given, large: {"execution": 10**6})
        with pytest.raises(Conflict, match="was changed meanwhile"):
            executions.preview(value, anna)
    first = executions.preview(value, anna)
    assert executions.preview(value, anna).pk == first.pk
    other = executions.preview(services.parse(fields(factors=[STRATEGIES]), None), anna)
    assert [one.pk for one in Execution.objects.all()] == [other.pk]
    assert executions.preview(value, User.objects.create_user("bea")).pk != first.pk


# Time left ---------------------------------------------------------------------------------------
def test_an_emulation_that_is_not_valid_says_so(anna: User, alice: Browser) -> None:
    experiment = stored(anna, factors=[RATES | {"values": [1e7]}], base={**BASE, "strategy": "single"})
    executions.carry_out(experiment, None)
    (point,) = points.next_waiting(("emulated",), 1)
    run = emulations.start(point, ME)
    assert run is not None and run.name == "rate 10 Mbit/s" and run.spec["dilation"] == "auto"
    (listed,) = (row for row in alice.get("/runs").json() if row["id"] == run.pk)
    assert listed["experiment"] == {"id": experiment.pk, "title": str(experiment)}
    fidelity = Fidelity(valid=False, enough_dilation=14.0)
    report = predict(points.spec_of(all_points().get(pk=point)))
    ended = report.model_copy(update={"world": "emulated", "fidelity": fidelity, "dilation": 7.0})
    closing.finish(owner_of(run), ended)
    assert points.next_waiting(("emulated",), 1) == []
    (row,) = [
        row
        for row in alice.get(f"/experiments/{experiment.pk}/rows").json()["rows"]
        if row["world"] == "emulated"
    ]
    numbers = alice.get(f"/experiments/{experiment.pk}").json()["progress"]["emulated"]
    assert row["state"] == "done" and (numbers["done"], numbers["invalid"]) == (1, 1)
    assert row["reason"] == "Not valid at dilation 7: it is left out of means. Its run recommends 14."


def test_a_point_becomes_a_run_only_for_a_worker_that_works_and_while_no_run_waits(
    anna: User, monkeypatch
) -> None:
    """So the run that somebody asks for never waits for the rest of an experiment."""
    executions.carry_out(stored(anna), None)
    waits = True
    monkeypatch.setattr(emulations.waiting, "fleet", list)
    monkeypatch.setattr(emulations.waiting, "is_anything_possible", lambda fleet: waits)
    monkeypatch.setattr(emulations.runs, "queue", lambda run_id: None)
    assert emulations.feed(ME) is None and Run.objects.count() == 0
    waits = False
    release.drain(ME.place, "anna")
    assert emulations.feed(ME) is None and Run.objects.count() == 0
    release.undrain(ME.place)
    made = emulations.feed(ME)
    assert made is not None and made.owner == anna
    runs.delete(made)
    assert all_points().get(status="failed").error.startswith("Its run was deleted")


def test_the_time_of_an_emulation_is_reckoned_with_the_dilation_of_the_most_similar_point() -> None:
    def cell(strategy: str, rate: float, dilation: float | None = None) -> Cell:
        return Cell(coordinates={"strategy": strategy, "rate": rate}, run=Run(dilation=dilation))

    cells = [cell("gpipe", 1e6, 2.0), cell("megatron", 1e6, 50.0), cell("megatron", 1e7), cell("single", 1e7)]
    here = Pace(dilation=4.0, overhead_s=8.0)
    assert here.of(cells[2], cells).wall_s(3.0) == 8.0 + 50.0 * 3.0
    assert here.of(cells[2], cells[2:]).dilation == 4.0
    assert here.of(cell("gpipe", 1e7), cells).dilation == 2.0
