"""Whatever people and workers do in whichever order, every point comes to an end."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.experiments import RATES, STRATEGIES, fields
from tests.support.waiting_points import DEAD, ME, fail, keep, reaped, result, stored
from tests.support.web import Browser
from webapp.base.errors import Conflict
from webapp.experiments import executions, points, services
from webapp.experiments.models import Cell, Experiment
from webapp.experiments.points import all_points
from webapp.jobs.lease import owner_of
from webapp.runs import attempts

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nobody_hears")]


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
    all_points().all().delete()
    experiment = stored(anna, factors=[STRATEGIES])
    for step in steps:
        experiment.refresh_from_db()
        one_step(experiment, step)
        assert invariants_hold()
    experiment.refresh_from_db()
    executions.start(experiment)
    for point in all_points().filter(status="planning"):
        attempts.give_back(owner_of(point), "its worker ended.")
    executions.retry(experiment, stale=False)
    while taken := points.take(ME, 10):
        for point in taken:
            keep(point, result(point), 0.1)
    execution = services.last_execution(experiment)
    assert execution is not None
    predicted = execution.cells.filter(world="predicted").values_list("run__status", flat=True)
    assert list(predicted) == 2 * ["finished"]


def one_step(experiment: Experiment, step: str) -> None:
    """Steps that do not fit the present state refuse, and change nothing."""
    running = all_points().filter(status="planning", world="predicted").first()
    try:
        match step:
            case "start":
                executions.start(experiment)
            case "emulate":
                executions.carry_out(experiment, None)
            case "edit":
                rates = RATES | {"values": [1e6 * (experiment.version + 1)]}
                value = services.parse(fields(factors=[STRATEGIES, rates]), None)
                services.edit(experiment, value, None, experiment.version)
            case "take":
                points.take(ME, 1)
            case "take by the dead":
                points.take(DEAD, 1)
            case "keep" if running:
                keep(running, result(running), 0.1)
            case "fail" if running:
                fail(running, "why")
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
    for point in all_points():
        held = point.worker != "" and point.lease_until is not None
        assert held == (point.status == "planning") or point.is_over
        assert (point.result is not None) == (point.status == "finished")
        assert bool(point.error) == (point.status == "failed")
    cells = Cell.objects.filter(problem="")
    return not cells.filter(run=None).exists()


def test_the_pages_see_a_failed_point_as_such(anna: User, alice: Browser) -> None:
    experiment = stored(anna, factors=[STRATEGIES])
    executions.start(experiment)
    (taken,) = points.take(ME, 1)
    fail(taken, "It broke.")
    answer = alice.get(f"/experiments/{experiment.pk}/rows").json()
    assert [(row["state"], row["reason"]) for row in answer["rows"]] == [
        ("failed", "It broke."),
        ("waiting", ""),
    ]
    assert answer["state"] == "running"
    assert answer["progress"]["predicted"]["failed"] == 1
