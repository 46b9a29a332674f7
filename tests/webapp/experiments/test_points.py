"""A point is taken by one worker at a time, and what that leaves waits again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from engine.domain.errors import PlanError
from engine.experiments.results.rows import failure
from tests.support.experiments import RATES, STRATEGIES, fields
from tests.support.waiting_points import (
    DEAD,
    ME,
    OTHER,
    fail,
    keep,
    late,
    reaped,
    result,
    state,
    states,
    stored,
)
from webapp.experiments import executions, points, services
from webapp.experiments.models import Cell
from webapp.experiments.points import all_points
from webapp.jobs import workers
from webapp.runs.models import Run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nobody_hears")]


def test_a_point_is_taken_once(anna: User) -> None:
    executions.start(stored(anna))
    first, second = points.take(ME, 3), points.take(OTHER, 3)
    assert (len(first), len(second)) == (3, 1)
    assert not {one.pk for one in first} & {one.pk for one in second}
    assert points.take_one(first[0].pk, OTHER) is None


def test_no_two_owners_of_a_point_have_one_number_if_another_had_it_between_the_look_and_the_taking(
    anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions.start(stored(anna))
    move = points.move

    def late(*given: Any, **changes: Any) -> int:
        monkeypatch.setattr(points, "move", move)
        (other,) = points.take(OTHER, 1)
        points.release(other)
        return move(*given, **changes)

    monkeypatch.setattr(points, "move", late)
    assert points.take(ME, 1) == []


def test_a_point_that_somebody_else_wants_at_the_same_moment_is_computed_for_both(
    anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = points.newest

    def found_none_yet(*asked: Any) -> dict[str, Run]:
        found = newest(*asked)
        monkeypatch.setattr(points, "newest", newest)
        executions.start(stored(anna))
        return found

    monkeypatch.setattr(points, "newest", found_none_yet)
    executions.start(stored(anna))
    assert all_points().count() == 4
    assert [one.cells.count() for one in all_points().all()] == [2] * 4


def test_experiments_take_turns(anna: User) -> None:
    executions.start(stored(anna))
    executions.start(stored(anna, base=fields()["base"] | {"workload": {"prompt_tokens": 4}}))
    owners = [Cell.objects.get(run=points.take(ME, 1)[0]).execution.experiment_id for _ in range(4)]
    assert owners[0] == owners[2] != owners[1] == owners[3]


def test_a_preview_goes_first_since_somebody_looks_at_it(anna: User) -> None:
    executions.start(stored(anna))
    rates = RATES | {"values": [5e6]}
    preview = executions.preview(services.parse(fields(factors=[STRATEGIES, rates]), None), anna)
    for _ in range(2):
        assert Cell.objects.get(run=points.take(ME, 1)[0]).execution == preview
    assert Cell.objects.get(run=points.take(ME, 1)[0]).execution != preview


def test_what_nobody_wants_any_more_is_forgotten_after_an_hour(anna: User) -> None:
    for rate in (5e6, 6e6):
        factors = [STRATEGIES, RATES | {"values": [rate]}]
        executions.preview(services.parse(fields(factors=factors), None), anna)
    assert all_points().count() == 4
    points.forget()
    assert all_points().count() == 4
    points.forget(timezone.now() + timedelta(hours=2))
    assert all_points().count() == 2 and not all_points().filter(cells=None).exists()


def test_a_worker_that_was_paused_keeps_nothing_even_if_the_point_is_its_own_again(
    anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions.start(stored(anna))
    (before,) = points.take(ME, 1)
    late(monkeypatch, Run.LONGEST_LEASE_S + 1)
    assert reaped() == 1
    again = points.take_one(before.pk, ME)
    assert again is not None
    assert not keep(before, result(before), 0.1)
    assert not fail(before, "too late")
    points.release(before)
    again.refresh_from_db()
    assert (again.status, again.worker, again.attempts) == ("planning", str(ME), 2)
    assert keep(again, result(again), 0.1)


def test_only_its_holder_ends_a_point_and_only_once(anna: User) -> None:
    executions.start(stored(anna))
    (taken,) = points.take(ME, 1)
    assert keep(taken, result(taken), 0.1)
    assert not fail(taken, "too late")
    taken.refresh_from_db()
    assert (taken.status, taken.result["metrics"]) == ("finished", {"latency_s": 1.0})


def test_a_run_without_a_plan_is_a_result_with_its_reason(anna: User) -> None:
    executions.start(stored(anna))
    (taken,) = points.take(ME, 1)
    keep(taken, failure(PlanError("It does not fit."), taken.digest, "predicted"), 0.1)
    taken.refresh_from_db()
    assert (state(taken), taken.result["outcome"], taken.result["sentence"]) == (
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
    (taken,) = points.take(holder, 1)
    late(monkeypatch, later_s)
    assert reaped() == lost
    assert state(taken) == ("waiting" if lost else "running")
    assert reaped() == 0


def test_a_point_that_kills_its_workers_is_given_up_after_the_third(anna: User) -> None:
    experiment = stored(anna)
    executions.start(experiment)
    Cell.objects.exclude(index=0).delete()
    for attempt in range(3):
        assert [one.attempts for one in points.take(DEAD, 1)] == [attempt + 1]
        reaped()
    assert points.take(DEAD, 1) == [] and states(experiment) == ["failed"]
    sentence = all_points().get(status="failed").error
    assert sentence == "Given up after 3 attempts: its worker died in the middle of it."
    assert executions.retry(experiment, stale=False) == 1
    assert [one.attempts for one in points.take(ME, 1)] == [1]


def test_what_was_taken_but_not_begun_is_released_as_if_it_had_not_been_taken(anna: User) -> None:
    executions.start(stored(anna))
    (taken,) = points.take(ME, 1)
    points.release(taken)
    taken.refresh_from_db()
    assert (taken.status, taken.attempts, taken.lease_until) == ("waiting", 0, None)
