"""What a real planning worker answers. All tests of this file share one, which the last of them stops."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from django.contrib.auth.models import User

from engine.advice.assess import assess, assess_with_interval
from engine.advice.values import Assessment, Why
from engine.advice.why import explain
from engine.domain.arrivals import arrivals_s
from engine.domain.workload import TracedRequest, Workload
from engine.models.catalogue import resolve
from engine.models.inputs.text import encode_prompt
from engine.runs.uncertainty import with_uncertainty
from engine.strategies.registry import STRATEGIES
from tests.support import experiments
from tests.support.web import Browser, Worker, recorded, request_body, wait_until
from tests.webapp.advice.test_advice import body
from tests.webapp.clusters.test_scenarios import upload
from tests.webapp.jobs.test_planning import question
from webapp.advice import asking
from webapp.advice.requests import AdviceRequest, base_of
from webapp.celery import ASKED_AGAIN_S, of_other_queues
from webapp.celery import app as celery
from webapp.experiments import executions
from webapp.jobs import answers
from webapp.jobs.workers import QUEUES
from webapp.runs.models import Run
from webapp.runs.requests import RunRequest, spec_of

pytestmark = [
    pytest.mark.redis,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("live_redis"),
]


# Predictions --------------------------------------------------------------------------------------
def test_a_prediction_comes_back_from_a_planning_worker(plan_worker: Worker, alice: Browser) -> None:
    answer = alice.post("/predict", request_body())
    assert answer.status_code == 200, answer.content
    _, report = recorded()
    versions = {"versions": answer.json()["report"]["versions"]}
    expected = with_uncertainty(report).model_dump(mode="json") | versions
    assert answer.json()["report"] == expected
    assert answer.json()["plan"] == expected["plan"]
    assert alice.get("/health").json()["worker_plan"] is True

    refused = alice.post("/predict", request_body(workload={"prompt_tokens": 100_000}))
    assert refused.status_code == 422
    assert refused.json()["fields"]

    devices = [{**device, "memory_bytes": 1000} for device in request_body()["cluster"]["devices"]]
    small = alice.post("/predict", request_body(cluster=request_body()["cluster"] | {"devices": devices}))
    assert small.status_code == 409 or small.json()["report"]["outcome"]["kind"] == "out_of_memory"


def test_prompts_of_a_file_become_requests_with_the_tokens_of_the_model(
    plan_worker: Worker, alice: Browser
) -> None:
    lines = b'{"prompt": "Hello", "at_s": 2}\n{"prompt": "Hi", "at_s": 1, "new_tokens": 3}\n'
    asked = {"model": "demo-lm", "new_tokens": "5", "options": "requests=2"}
    answer = upload(alice, "p.jsonl", lines, "/prompts", **asked)
    assert answer.status_code == 200, answer.content
    model, weights = resolve("demo-lm")
    found = [TracedRequest.model_validate(row) for row in answer.json()["requests"]]
    assert [(row.at_s, row.new_tokens, row.tokens) for row in found] == [
        (1.0, 3, encode_prompt(model, weights, "Hi")),
        (2.0, 5, encode_prompt(model, weights, "Hello")),
    ]
    drawn = upload(alice, "p.jsonl", b'{"prompt": "Hi"}', "/prompts", rate_per_s="2", seed="7", **asked)
    poisson = Workload(pattern="poisson", rate_per_s=2, requests=1, prompt_tokens=1, new_tokens=1)
    assert drawn.json()["requests"][0]["at_s"] == arrivals_s(poisson, 7)[0]


def test_a_message_that_names_a_task_of_another_queue_is_refused(plan_worker: Worker, alice: Browser) -> None:
    """Who can write into one queue of Redis could else have an emulation begun by a planning worker."""
    for name in ("emulate.next", "points.next", "celery.backend_cleanup"):
        celery.send_task(name, queue="plan")
    assert alice.post("/predict", request_body()).status_code == 200  # messages come in their order
    log = plan_worker.log.read_text()
    for name in ("emulate.next", "points.next", "celery.backend_cleanup"):
        assert f"unregistered task of type '{name}'" in log


def test_every_task_has_its_queue_and_no_other() -> None:
    tasks = set(celery.tasks)
    known = {queue: tasks - set(of_other_queues(tasks, {queue})) for queue in QUEUES}
    assert known["emulate"] == {"emulate.next"} and known["points"] == {"points.next"}
    assert set().union(*known.values()) == {name for name in tasks if not name.startswith("celery.")}


def test_an_idle_worker_asks_redis_for_messages_every_three_seconds() -> None:
    with celery.connection_for_read() as connection:
        assert connection.transport.brpop_timeout == ASKED_AGAIN_S == 3


def test_a_queued_run_gets_its_prediction_before_it_starts(plan_worker: Worker, alice: Browser) -> None:
    run_id = alice.post("/runs", request_body()).json()["id"]
    wait_until(lambda: Run.objects.get(pk=run_id).prediction, "the prediction")
    run = alice.get(f"/runs/{run_id}").json()
    assert run["status"] == "queued"
    assert run["prediction"]["latency_s"] == pytest.approx(recorded()[1].latency_s)
    assert run["prediction"]["world"] == "predicted"


# Advice -------------------------------------------------------------------------------------------
def test_a_viewer_gets_every_strategy_ranked_and_what_one_change_would_do(
    plan_worker: Worker, victor: Browser
) -> None:
    answer = victor.post("/advice", body())
    assert answer.status_code == 200, answer.content
    rows = answer.json()["rows"]
    assert {row["strategy"] for row in rows} == {each.name for each in STRATEGIES}
    times = [row["total_s"] for row in rows if row["total_s"] is not None]
    assert times == sorted(times)
    assert (answer.json()["simulated_tokens"], answer.json()["new_tokens"]) == (3, 3)
    assert answer.json()["finished"] is True
    base = base_of(AdviceRequest.parse(body(), "request"))
    for row in rows:
        expected = assess_with_interval(base.model_copy(update={"strategy": row["strategy"]}))
        assert Assessment.parse(row, "row") == expected.model_copy(update={"like": row["like"]})
    named = {row["strategy"] for row in rows if not row["like"]}
    assert {row["like"] for row in rows} - {""} <= named, "the same plan is told once"

    changes = victor.post("/advice/changes", body(rows=rows))
    assert changes.status_code == 200, changes.content
    gains = [change["gain"] for change in changes.json()]
    assert gains == sorted(gains, reverse=True) and changes.json()[0]["sentence"]


def test_advice_is_ranked_by_what_is_asked_for(plan_worker: Worker, victor: Browser) -> None:
    answer = victor.post("/advice", body(by="peak_memory_bytes"))
    assert answer.status_code == 200, answer.content
    rows = answer.json()["rows"]
    sizes = [row["peak_memory_bytes"] for row in rows if row["peak_memory_bytes"] is not None]
    assert sizes == sorted(sizes) and len(sizes) > 10


def test_the_reasons_of_a_plan_are_those_of_the_engine(plan_worker: Worker, victor: Browser) -> None:
    run = body(strategy="gpipe", params={"by": "even"})
    answer = victor.post("/advice/why", run)
    assert answer.status_code == 200, answer.content
    expected = explain(spec_of(RunRequest.parse(run, "run")), lambda specs: [assess(one) for one in specs])
    assert Why.parse(answer.json(), "why") == expected
    assert [one.device for one in expected.devices] == ["desk", "shelf", "window"]
    refused = victor.post("/advice/why", body(strategy="gpipe", params={"by": "colour"}))
    assert refused.status_code == 422 and "by" in refused.content.decode()


@pytest.mark.parametrize(("question", "begin"), [("buy", "What is there gives at most "), ("link", "None: ")])
def test_a_question_is_answered_though_advice_is_asked_for_meanwhile(
    plan_worker: Worker, victor: Browser, monkeypatch: pytest.MonkeyPatch, question: str, begin: str
) -> None:
    whole = answers.answers

    def overtaken(calls: list[tuple[str, list[Any]]], ends_s: float) -> list[dict[str, Any]]:
        """The page asks for other advice just before the answer is computed."""
        asking._ticket(User.objects.get().pk)
        return whole(calls, ends_s)

    monkeypatch.setattr(answers, "answers", overtaken)
    asked = body(question=question, workload={"prompt_tokens": 2, "new_tokens": 2}, tokens_per_s=4000.0)
    answer = victor.post("/advice/question", asked)
    while answer.status_code == 503 and "busy" in answer.json()["detail"]:  # a loaded machine
        answer = victor.post("/advice/question", asked)
    assert answer.status_code == 200, answer.content
    assert answer.json()["sentence"].startswith(begin)


def test_rows_that_name_what_the_cluster_lacks_are_refused(plan_worker: Worker, victor: Browser) -> None:
    limit = {"resource": "link", "name": "moon--sun", "share_frac": 0.5}
    row = {"strategy": "single", "lossless": True, "reason": "r", "total_s": 1.0, "limit": limit}
    answer = victor.post("/advice/changes", body(rows=[row]))
    assert answer.status_code == 422 and "no link moon--sun" in answer.json()["detail"]


# Plans --------------------------------------------------------------------------------------------
def test_a_worker_plans_a_run_says_whether_a_model_fits_and_expands_experiments(
    plan_worker: Worker, no_strategy_plans: None, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = alice.post("/runs", request_body())
    assert started.status_code == 201, started.content
    assert Run.objects.get().plan["layout"]["kind"]
    fits = alice.post("/clusters/validate", question()).json()["fits"]
    assert len(fits["devices"]) == 8
    refused = alice.post("/runs", request_body(model="llama-2-13b"))
    assert refused.status_code == 409  # the planner's own reason comes back
    assert [field["path"] for field in refused.json()["fields"]] == ["strategy"]
    monkeypatch.setattr(executions, "expand", lambda *given: pytest.fail("expanded in the web process"))
    designed = {"experiment": experiments.fields(factors=[experiments.STRATEGIES])}
    checked = alice.post("/experiments/check", designed).json()
    assert (checked["num_points"], checked["problems"]) == (2, [])
    assert alice.post("/experiments/preview", designed).json()["num_points"] == 2
    stored = alice.post("/experiments", designed).json()["id"]
    assert alice.post(f"/experiments/{stored}/predict").status_code == 202
    wrong = designed["experiment"] | {"base": designed["experiment"]["base"] | {"cluster": "nowhere"}}
    (problem,) = alice.post("/experiments/check", {"experiment": wrong}).json()["problems"]
    assert "There is no cluster nowhere" in problem["message"] or problem["path"] == "base.cluster"


def test_a_worker_that_joined_by_one_command_ends_on_a_signal_and_removes_its_heartbeat(
    plan_worker: Worker, alice: Browser, live_redis: redis.Redis
) -> None:
    """The last test of this file, as no other has a worker after it."""
    assert alice.get("/health").json()["worker_plan"] is True
    assert live_redis.keys("worker:plan:*") != []
    assert plan_worker.stop() == 0, plan_worker.log.read_text()
    assert live_redis.keys("worker:plan:*") == []
    assert alice.get("/health").json()["worker_plan"] is False
