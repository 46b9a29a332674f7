"""A stored run without a prediction says why, and nobody predicts a run that is not wanted any more."""

from __future__ import annotations

from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from engine.domain.errors import PlanError
from engine.domain.report import RunReport
from engine.domain.scenario import Scenario, SlowDevice
from engine.domain.spec import RunSpec
from engine.domain.stored import read_report, read_spec, to_document
from engine.runs.made_plan import MadePlan
from engine.runs.predict import predict, prepare
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
    run, made = services.store(request, spec, planned, None), planned.made

    def never(*given: Any) -> None:
        raise AssertionError("planned again")

    monkeypatch.setattr(type(strategy("single")), "plan", never)
    tasks.predict_run(run.pk)
    run.refresh_from_db()
    assert run.prediction is not None and made.plan
    assert run.prediction["plan"] == made.plan.model_dump(mode="json")
    given: list[Any] = []

    def emulated(spec: RunSpec, watch: Any, commands: Any, made: MadePlan | None, boards: Any) -> RunReport:
        given.append(made)
        return predict(spec, made=made)

    monkeypatch.setattr(tasks, "emulate", emulated)
    Run.objects.filter(pk=run.pk).update(status="planning", worker=str(ME))
    tasks.emulate_run(Run.objects.get(pk=run.pk), ME)
    assert given == [made] and Run.objects.get(pk=run.pk).status == "finished"


def a_planned_run(**chosen: str) -> tuple[Run, RunSpec]:
    request = RunRequest.parse(request_body(**chosen), "test")
    return services.store(request, spec := spec_of(request), services.planned(spec), None), spec


def test_a_run_is_refused_whose_plan_was_made_of_another(alice: Browser) -> None:
    run, spec = a_planned_run()
    other = spec.model_copy(update={"workload": spec.workload.model_copy(update={"prompt_tokens": 9})})
    Run.objects.filter(pk=run.pk).update(spec=to_document(other))
    tasks.predict_run(run.pk)
    (problem,) = alice.get(f"/runs/{run.pk}").json()["problems"]
    assert "the plan that was kept with the run is not the one that was made of it" in problem


def test_a_plan_that_was_changed_after_it_was_made_is_refused() -> None:
    run, spec = a_planned_run()
    plan = {**run.plan, "version": 1}
    Run.objects.filter(pk=run.pk).update(plan=plan)
    with pytest.raises(PlanError, match="Ask for the run again"):
        predict(spec, made=services.plan_of(Run.objects.get(pk=run.pk)))


def test_a_plan_of_other_code_is_made_anew_and_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    run, spec = a_planned_run()
    monkeypatch.setattr(services, "code_version", lambda: "of-tomorrow")
    tasks.predict_run(run.pk)
    run.refresh_from_db()
    report = read_report(run.prediction, "the prediction").needed()
    assert report.plan == prepare(spec).plan
    (note,) = [note for note in report.fidelity.notes if "anew" in note]
    assert "version of-tomorrow of the code" in note and run.plan["code"] in note


def test_the_page_of_a_run_shows_the_plan_that_its_report_is_about(alice: Browser) -> None:
    run, spec = a_planned_run()
    kept, _ = a_planned_run(strategy="single")
    Run.objects.filter(pk=run.pk).update(plan=kept.plan, report=to_document(predict(spec)), status="finished")
    assert alice.get(f"/runs/{run.pk}").json()["plan"]["strategy"] == spec.strategy


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
