"""What is to do follows from the database: nothing is computed twice, and nothing is lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.domain.errors import PlanError
from engine.domain.report import Fidelity
from engine.domain.stored import to_document
from engine.experiments.results.rows import Result, failure
from engine.runs.predict import predict
from tests.support.experiments import BASE, RATES, STRATEGIES, fields
from tests.support.web import Browser
from webapp.errors import Conflict
from webapp.experiments import computations, emulations, executions, services, versions
from webapp.experiments.models import Cell, Computation, Execution, Experiment
from webapp.experiments.progress import Pace
from webapp.jobs import answers, lease, suspicion, workers
from webapp.runs.models import Run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nobody_hears")]
ME = workers.this_worker("points@here")
OTHER = workers.Identity("points@elsewhere", "elsewhere", 1, 1)
DEAD = workers.Identity("points@here", workers.home(), 2**22 + 1, 1)
"""No process has this id: it is above the kernel's largest."""


@pytest.fixture
def anna(db: None) -> User:
    return User.objects.create_user("anna")


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


# Starting -----------------------------------------------------------------------------------------
def test_every_point_waits_for_a_prediction_once_the_experiment_is_started(anna: User) -> None:
    experiment = stored(anna)
    executions.start(experiment)
    assert states(experiment) == 4 * ["waiting"]
    executions.start(experiment)
    assert Execution.objects.count() == 1 and Computation.objects.count() == 4


def test_two_experiments_that_share_points_share_their_computations(anna: User) -> None:
    executions.start(stored(anna))
    bea = User.objects.create_user("bea")
    wider = stored(bea, factors=[STRATEGIES, RATES | {"values": [1e7, 1e8, 1e9]}])
    executions.start(wider)
    assert Computation.objects.count() == 6 and Cell.objects.count() == 10
    for computation in computations.take(ME, 10):
        computations.keep(computation, result(computation), 0.1)
    assert states(wider).count("done") >= 4


def test_an_edit_leaves_what_was_started_as_it_was_frozen(anna: User) -> None:
    experiment = stored(anna)
    first = executions.start(experiment)
    value = services.parse(fields(factors=[STRATEGIES, RATES | {"values": [1e6]}]), None)
    experiment = services.edit(experiment, value, None, version=1)
    assert experiment.version == 2 and first.cells.count() == 4
    second = executions.start(experiment)
    assert second.pk != first.pk and second.cells.count() == 2
    assert len(computations.take(ME, 10)) + len(computations.take(ME, 10)) == 6
    with pytest.raises(Conflict, match="you edited version 1, stored is 2"):
        services.edit(experiment, value, None, version=1)


def test_a_point_that_cannot_be_run_has_a_sentence_and_the_others_go_on(anna: User) -> None:
    models = {"name": "model", "path": "model", "values": ["tiny-gpt2", "no-such-model"]}
    experiment = stored(anna, base={**fields()["base"], "strategy": "single"}, factors=[models])
    executions.start(experiment)
    assert states(experiment) == ["waiting", "problem"]
    problem = Cell.objects.get(computation=None).problem
    assert "no-such-model" in problem and problem.endswith(".")


# Taking and ending --------------------------------------------------------------------------------
def test_a_computation_is_taken_once(anna: User) -> None:
    executions.start(stored(anna))
    first, second = computations.take(ME, 3), computations.take(OTHER, 3)
    assert (len(first), len(second)) == (3, 1)
    assert not {one.pk for one in first} & {one.pk for one in second}
    assert computations.take_one(first[0].pk, OTHER) is None


def test_experiments_take_turns(anna: User) -> None:
    executions.start(stored(anna))
    executions.start(stored(anna, base=fields()["base"] | {"workload": {"prompt_tokens": 4}}))
    owners = [
        Cell.objects.get(computation=computations.take(ME, 1)[0]).execution.experiment_id for _ in range(4)
    ]
    assert owners[0] == owners[2] != owners[1] == owners[3]


def test_a_preview_goes_first_since_somebody_looks_at_it(anna: User) -> None:
    executions.start(stored(anna))
    rates = RATES | {"values": [5e6]}
    preview = executions.preview(services.parse(fields(factors=[STRATEGIES, rates]), None), anna)
    for _ in range(2):
        assert Cell.objects.get(computation=computations.take(ME, 1)[0]).execution == preview
    assert Cell.objects.get(computation=computations.take(ME, 1)[0]).execution != preview


def test_what_nobody_wants_any_more_is_forgotten_after_an_hour(anna: User) -> None:
    for rate in (5e6, 6e6):
        factors = [STRATEGIES, RATES | {"values": [rate]}]
        executions.preview(services.parse(fields(factors=factors), None), anna)
    assert Computation.objects.count() == 4
    computations.forget()
    assert Computation.objects.count() == 4
    computations.forget(timezone.now() + timedelta(hours=2))
    assert Computation.objects.count() == 2 and not Computation.objects.filter(cells=None).exists()


def late(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The database's clock goes on."""
    monkeypatch.setattr(lease, "now", lambda: Now() + timedelta(seconds=seconds))


def reaped() -> int:
    """How many points are given back because their worker is gone, without the grace of `Suspicion`."""
    here = workers.home()
    gone = {one.pk: one for one in (*suspicion.dead(Computation, here), *suspicion.late(Computation))}
    return sum(computations.settle(one) for one in gone.values())


def test_a_worker_that_was_paused_keeps_nothing_even_if_the_point_is_its_own_again(
    anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions.start(stored(anna))
    (before,) = computations.take(ME, 1)
    late(monkeypatch, Computation.LEASE_S + 1)
    assert reaped() == 1
    again = computations.take_one(before.pk, ME)
    assert again is not None
    assert not computations.keep(before, result(before), 0.1)
    assert not computations.fail(before, "too late")
    computations.release(before)
    again.refresh_from_db()
    assert (again.state, again.worker, again.attempts) == ("running", str(ME), 2)
    assert computations.keep(again, result(again), 0.1)


def test_only_its_holder_ends_a_computation_and_only_once(anna: User) -> None:
    executions.start(stored(anna))
    (taken,) = computations.take(ME, 1)
    assert computations.keep(taken, result(taken), 0.1)
    assert not computations.fail(taken, "too late")
    taken.refresh_from_db()
    assert (taken.state, taken.result["metrics"]) == ("done", {"latency_s": 1.0})


def test_a_run_without_a_plan_is_a_result_with_its_reason(anna: User) -> None:
    executions.start(stored(anna))
    (taken,) = computations.take(ME, 1)
    computations.keep(taken, failure(PlanError("It does not fit."), taken.digest, "predicted"), 0.1)
    taken.refresh_from_db()
    assert (taken.state, taken.result["outcome"], taken.result["sentence"]) == (
        "done",
        "no_plan",
        "It does not fit.",
    )


@pytest.mark.parametrize(
    ("holder", "later_s", "lost"),
    [(ME, 0, 0), (OTHER, 0, 0), (DEAD, 0, 1), (OTHER, 1000, 1), (ME, 1000, 1)],
)
def test_what_a_dead_worker_held_waits_again(
    anna: User, monkeypatch: pytest.MonkeyPatch, holder: workers.Identity, later_s: int, lost: int
) -> None:
    """A worker elsewhere is dead once its lease is over; one of this host once its process is gone."""
    executions.start(stored(anna))
    (taken,) = computations.take(holder, 1)
    late(monkeypatch, later_s)
    assert reaped() == lost
    taken.refresh_from_db()
    assert taken.state == ("waiting" if lost else "running")
    assert reaped() == 0


def test_a_point_that_kills_its_workers_is_given_up_after_the_third(anna: User) -> None:
    experiment = stored(anna)
    executions.start(experiment)
    Cell.objects.exclude(index=0).delete()
    for attempt in range(3):
        assert [one.attempts for one in computations.take(DEAD, 1)] == [attempt + 1]
        reaped()
    assert computations.take(DEAD, 1) == [] and states(experiment) == ["failed"]
    sentence = Computation.objects.get(state="failed").sentence
    assert sentence == "Given up after 3 attempts: its worker died in the middle of it."
    assert executions.retry(experiment, stale=False) == 1
    assert [one.attempts for one in computations.take(ME, 1)] == [1]


def test_what_was_taken_but_not_begun_is_released_as_if_it_had_not_been_taken(anna: User) -> None:
    executions.start(stored(anna))
    (taken,) = computations.take(ME, 1)
    computations.release(taken)
    taken.refresh_from_db()
    assert (taken.state, taken.attempts, taken.lease_until) == ("waiting", 0, None)


# Pausing, cancelling, upgrading -------------------------------------------------------------------
def test_a_paused_experiment_starts_no_point_until_it_is_resumed(anna: User) -> None:
    experiment = stored(anna)
    executions.start(experiment)
    (taken,) = computations.take(ME, 1)
    executions.pause(experiment)
    assert computations.take(ME, 10) == []
    assert computations.keep(taken, result(taken), 0.1), "what a worker has goes on"
    executions.resume(experiment)
    assert len(computations.take(ME, 10)) == 3
    with pytest.raises(Conflict, match="is not paused"):
        executions.resume(experiment)


def test_a_cancelled_experiment_leaves_the_points_that_another_wants(anna: User) -> None:
    first, second = stored(anna), stored(anna, factors=[STRATEGIES, RATES | {"values": [1e7]}])
    executions.start(first)
    executions.start(second)
    executions.cancel(first, "anna")
    assert len(computations.take(ME, 10)) == 2 and computations.take(ME, 10) == []
    with pytest.raises(Conflict, match="is not under way"):
        executions.cancel(first, "anna")


def test_an_upgrade_computes_anew_what_waits_and_marks_what_is_done(anna: User, monkeypatch) -> None:
    experiment = stored(anna)
    execution = executions.start(experiment)
    (taken,) = computations.take(ME, 1)
    computations.keep(taken, result(taken), 0.1)
    monkeypatch.setattr(versions, "version_of", lambda world: "newer")
    assert computations.adopt() == 3 and computations.adopt() == 0
    assert sorted(execution.cells.values_list("computation__code_version", flat=True))[-3:] == 3 * ["newer"]
    assert executions.retry(experiment, stale=True) == 1
    assert states(experiment) == 4 * ["waiting"]
    assert {one.code_version for one in computations.take(ME, 10)} == {"newer"}


def test_an_emulation_of_older_code_is_used_and_a_prediction_is_not(anna: User, monkeypatch) -> None:
    experiment = stored(anna)
    executions.start(experiment)
    executions.emulate(experiment, None)
    for computation in Computation.objects.all():
        taken = computations.take_one(computation.pk, ME)
        assert taken is not None and computations.keep(taken, result(computation), 1.0)
    monkeypatch.setattr(versions, "version_of", lambda world: "newer")
    again = stored(anna)
    executions.start(again)
    executions.emulate(again, None)
    cells = Cell.objects.filter(execution__experiment=again).values_list("world", "computation__state")
    assert set(cells) == {("predicted", "waiting"), ("emulated", "done")}


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


# Any order ----------------------------------------------------------------------------------------
STEPS = st.lists(
    st.sampled_from(
        [
            "start",
            "edit",
            "take",
            "take by the dead",
            "keep",
            "fail",
            "reap",
            "pause",
            "resume",
            "cancel",
            "retry",
            "emulate",
        ]
    ),
    max_size=12,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_after_any_steps_resuming_and_working_ends_every_point(anna: User, steps: list[str]) -> None:
    Experiment.objects.all().delete()
    Computation.objects.all().delete()
    experiment = stored(anna, factors=[STRATEGIES])
    for step in steps:
        experiment.refresh_from_db()
        one_step(experiment, step)
        assert invariants_hold()
    experiment.refresh_from_db()
    executions.start(experiment)
    for computation in Computation.objects.filter(state="running"):
        computations.give_back(computation, "its worker ended.")
    executions.retry(experiment, stale=False)
    while taken := computations.take(ME, 10):
        for computation in taken:
            computations.keep(computation, result(computation), 0.1)
    execution = services.last_execution(experiment)
    assert execution is not None
    predicted = execution.cells.filter(world="predicted").values_list("computation__state", flat=True)
    assert list(predicted) == 2 * ["done"]


def one_step(experiment: Experiment, step: str) -> None:
    """Steps that do not fit the present state refuse, and change nothing."""
    running = Computation.objects.filter(state="running", world="predicted").first()
    try:
        match step:
            case "start":
                executions.start(experiment)
            case "emulate":
                executions.emulate(experiment, None)
            case "edit":
                rates = RATES | {"values": [1e6 * (experiment.version + 1)]}
                value = services.parse(fields(factors=[STRATEGIES, rates]), None)
                services.edit(experiment, value, None, experiment.version)
            case "take":
                computations.take(ME, 1)
            case "take by the dead":
                computations.take(DEAD, 1)
            case "keep" if running:
                computations.keep(running, result(running), 0.1)
            case "fail" if running:
                computations.fail(running, "why")
            case "reap":
                reaped()
            case "pause":
                executions.pause(experiment)
            case "resume":
                executions.resume(experiment)
            case "cancel":
                executions.cancel(experiment, "anna")
            case "retry":
                executions.retry(experiment, stale=False)
    except Conflict:
        pass


def invariants_hold() -> bool:
    for computation in Computation.objects.all():
        held = computation.worker != "" and computation.lease_until is not None
        assert held == (computation.state == "running") or computation.state in ("done", "failed")
        assert (computation.result is not None) == (computation.state == "done")
        assert bool(computation.sentence) == (computation.state == "failed")
    cells = Cell.objects.filter(problem="")
    return not cells.filter(computation=None).exists()


def test_the_pages_see_a_failed_point_as_such(anna: User, alice: Browser) -> None:
    experiment = stored(anna, factors=[STRATEGIES])
    executions.start(experiment)
    (taken,) = computations.take(ME, 1)
    computations.fail(taken, "It broke.")
    answer = alice.get(f"/experiments/{experiment.pk}/rows").json()
    assert [(row["state"], row["reason"]) for row in answer["rows"]] == [
        ("failed", "It broke."),
        ("waiting", ""),
    ]
    assert answer["state"] == "running"
    assert answer["progress"]["predicted"]["failed"] == 1


# Time left ----------------------------------------------------------------------------------------
def test_an_emulation_that_is_not_valid_waits_to_be_repeated_twice_and_then_says_so(
    anna: User, alice: Browser
) -> None:
    experiment = stored(anna, factors=[RATES | {"values": [1e7]}], base={**BASE, "strategy": "single"})
    executions.emulate(experiment, None)
    asked = []
    for dilation in (1.75, 3.5, 7.0):
        (point,) = computations.next_waiting(("emulated",), 1)
        run = emulations.start(point, ME)
        assert run is not None
        asked.append(run.spec["dilation"])
        fidelity = Fidelity(valid=False, enough_dilation=2 * dilation)
        report = predict(computations.spec_of(Computation.objects.get(pk=point)))
        ended = report.model_copy(update={"fidelity": fidelity, "dilation": dilation})
        Run.objects.filter(pk=run.pk).update(status="finished", report=to_document(ended))
        assert emulations.collect() == 1
        (row,) = [
            row
            for row in alice.get(f"/experiments/{experiment.pk}/rows").json()["rows"]
            if row["world"] == "emulated"
        ]
        numbers = alice.get(f"/experiments/{experiment.pk}").json()["progress"]["emulated"]
        if dilation < 7:
            assert (row["state"], row["reason"]) == (
                "waiting",
                f"Not valid: to be repeated at dilation {2 * dilation:g}.",
            )
    assert asked == ["auto", 3.5, 7.0] and computations.next_waiting(("emulated",), 1) == []
    assert row["state"] == "done" and (numbers["done"], numbers["invalid"]) == (1, 1)
    assert row["reason"] == (
        "Not valid at dilation 7 after 2 repeats: it is left out of means. Its run recommends 14."
    )


def test_the_time_of_an_emulation_is_reckoned_with_the_dilation_of_the_most_similar_point() -> None:
    def cell(strategy: str, rate: float, dilation: float | None = None) -> Cell:
        computation = Computation(world="emulated", dilation=dilation)
        return Cell(coordinates={"strategy": strategy, "rate": rate}, computation=computation)

    cells = [cell("gpipe", 1e6, 2.0), cell("megatron", 1e6, 50.0), cell("megatron", 1e7), cell("single", 1e7)]
    here = Pace(dilation=4.0, overhead_s=8.0)
    assert here.of(cells[2], cells).wall_s(3.0) == 8.0 + 50.0 * 3.0
    assert here.of(cells[2], cells[2:]).dilation == 4.0
    assert here.of(cell("gpipe", 1e7), cells).dilation == 2.0
