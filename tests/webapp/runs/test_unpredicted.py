"""A stored run without a prediction says why, and nobody predicts a run that is not wanted any more."""

from __future__ import annotations

from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from engine.domain.errors import PlanError
from engine.domain.plan import Plan
from engine.domain.report import RunReport
from engine.domain.scenario import Scenario, SlowDevice
from engine.domain.spec import RunSpec
from engine.domain.stored import read_spec
from engine.runs.predict import predict
from engine.strategies.registry import strategy
from engine.worlds.simulated import kernel
from tests.support.web import Browser, request_body
from webapp.jobs import lease, workers
from webapp.runs import predictions, recording, services, tasks
from webapp.runs.models import Run
from webapp.runs.requests import RunRequest, spec_of

pytestmark = pytest.mark.django_db(transaction=True)
ME = workers.Identity("emulate@here", "elsewhere", 1, 1)


def stored() -> Run:
    request = RunRequest.parse(request_body(), "test")
    return services.store(request, spec_of(request), None, None)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (SoftTimeLimitExceeded(), "it takes more than 600 s to compute"),
        (MemoryError(), "it needs more than 3 GiB of memory to compute"),
        (PlanError("no device has room."), "no device has room."),
    ],
)
def test_a_prediction_that_meets_a_limit_says_so_on_the_page_of_its_run(
    alice: Browser, monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str
) -> None:
    run = stored()

    def broken(*given: Any, **more: Any) -> None:
        raise error

    predict = tasks.predict
    monkeypatch.setattr(tasks, "predict", broken)
    tasks.predict_run(run.pk)
    (problem,) = alice.get(f"/runs/{run.pk}").json()["problems"]
    assert problem.startswith("There is no prediction: ") and sentence in problem
    monkeypatch.setattr(tasks, "predict", predict)
    tasks.predict_run(run.pk)
    answer = alice.get(f"/runs/{run.pk}").json()
    assert answer["prediction"]["outcome"]["kind"] == "finished" and answer["problems"] == []


def test_a_run_is_predicted_and_emulated_with_the_plan_that_was_made_when_it_was_asked_for(
    live_redis: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = RunRequest.parse(request_body(strategy="single"), "test")
    planned = services.planned(spec := spec_of(request))
    run, made = services.store(request, spec, planned, None), planned.plan

    def never(*given: Any) -> None:
        raise AssertionError("planned again")

    monkeypatch.setattr(type(strategy("single")), "plan", never)
    tasks.predict_run(run.pk)
    run.refresh_from_db()
    assert run.prediction is not None and run.prediction["plan"] == made.model_dump(mode="json")
    given: list[Any] = []

    def emulated(spec: RunSpec, watch: Any, commands: Any, plan: Plan | None, boards: Any) -> RunReport:
        given.append(plan)
        return predict(spec, plan=plan)

    monkeypatch.setattr(tasks, "emulate", emulated)
    Run.objects.filter(pk=run.pk).update(status="planning", worker=str(ME))
    tasks.emulate_run(Run.objects.get(pk=run.pk), ME)
    assert given == [made] and Run.objects.get(pk=run.pk).status == "finished"


@pytest.mark.parametrize("how", ["cancelled", "deleted"])
def test_the_prediction_of_a_run_that_nobody_wants_any_more_stops(how: str) -> None:
    run, now_s = stored(), [0.0]
    unwanted = predictions.Unwanted(run.pk, lambda: now_s[-1])
    assert not unwanted()
    if how == "deleted":
        Run.objects.all().delete()
    else:
        Run.objects.update(status="cancelled")
    assert not unwanted()  # it does not look again at once
    now_s.append(predictions.LOOK_S)
    assert unwanted()


def test_a_prediction_that_was_stopped_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    run = stored()
    monkeypatch.setattr(kernel, "ACTIONS_BETWEEN_STOP_CHECKS", 1)
    monkeypatch.setattr(predictions, "Unwanted", lambda run_id: lambda: True)
    tasks.predict_run(run.pk)
    run.refresh_from_db()
    assert run.prediction is None and run.unpredicted == ""


def test_what_was_predicted_before_the_start_stays_when_people_change_the_cluster(
    live_redis: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stored()
    tasks.predict_run(run.pk)
    run.refresh_from_db()
    before = run.prediction
    assert before is not None
    slowed = SlowDevice(at_s=0.0, device="desk", factor=50)
    spec = read_spec(run.spec, "spec").needed()
    report = predict(spec.model_copy(update={"scenario": Scenario(changes=(slowed,))}))
    assert report.latency_s > 2 * before["latency_s"]
    Run.objects.filter(pk=run.pk).update(status="running", worker=str(ME))
    asked: list[int] = []
    monkeypatch.setattr(recording, "want_prediction", asked.append)
    owner = lease.owner_of(Run.objects.get(pk=run.pk))
    with recording.publisher_of(owner) as publisher:
        recording.keep(owner, publisher, report)
    assert asked == []
    tasks.predict_run(run.pk)  # whoever asks for it once more
    run.refresh_from_db()
    assert run.prediction == before
