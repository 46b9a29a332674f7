"""Planning happens in workers, within limits, and nobody's questions keep others waiting."""

from __future__ import annotations

import base64
import json
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from celery.exceptions import SoftTimeLimitExceeded

from engine.domain.errors import HostError, PlanError
from tests.support.web import Browser, RedisServer, request_body, run_spec, wait_until
from tests.webapp.base.test_budgets import line, refusal
from webapp.advice import tasks as _advice_tasks  # noqa: F401  (makes the tasks known)
from webapp.base import budgets
from webapp.base.errors import TooMany, Unavailable
from webapp.celery import LATER
from webapp.celery import app as celery
from webapp.jobs import answers
from webapp.jobs.announcement import Announcement, announce, withdraw
from webapp.jobs.intake import WANTED, queue_wanted_predictions
from webapp.runs import services
from webapp.runs.models import Run

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]


def question(devices: int = 8) -> dict[str, Any]:
    return {"spec": line(devices), "model": "gpt2", "strategy": "voltage"}


DRAINED = Announcement(
    worker="plan@old/x/1/1",
    place="plan@old/x",
    node="plan@old",
    pid=1,
    queue="plan",
    refused="it was drained by eve",
)


# Where planning happens -----------------------------------------------------------------------------
def test_without_a_planning_worker_no_run_is_kept(
    planning_as_it_is: None, live_redis: redis.Redis, no_strategy_plans: None, alice: Browser
) -> None:
    response = alice.post("/runs", request_body())
    assert "No planning worker is running" in refusal(response, 503)
    assert int(response["Retry-After"]) > 0
    assert not Run.objects.exists()


def test_a_question_waits_for_a_worker_that_is_about_to_start(
    planning_as_it_is: None, live_redis: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first looks find none; the one that then appears is heard, and refuses."""
    looks: list[list[Announcement]] = [[], [], [DRAINED]]
    monkeypatch.setattr(answers, "WORKER_STARTS_S", 60)
    monkeypatch.setattr(answers, "announced", lambda queue: looks.pop(0))
    with pytest.raises(Unavailable, match="plan@old: it was drained by eve"):
        answers.require_workers()
    assert looks == []


def test_planning_workers_that_are_all_refused_are_named_at_once(
    planning_as_it_is: None, live_redis: redis.Redis
) -> None:
    announce(DRAINED)
    with pytest.raises(Unavailable, match="plan@old: it was drained by eve"):
        answers.ask("plan.predict", [], person=1)
    withdraw(DRAINED)


def test_without_a_planning_worker_a_drawing_is_still_checked(
    planning_as_it_is: None, live_redis: redis.Redis, victor: Browser
) -> None:
    answer = victor.post("/clusters/validate", question()).json()
    assert answer["problems"] == []
    assert answer["fits"]["fits"] is None
    assert "No planning worker is running" in answer["fits"]["sentence"]
    wrong = question() | {"spec": {**line(2), "source": "nobody"}}
    assert victor.post("/clusters/validate", wrong).json()["problems"]


# Turns ----------------------------------------------------------------------------------------------
@pytest.fixture
def somebody_plans(live_redis: redis.Redis) -> Iterator[redis.Redis]:
    """A worker that is announced and takes its time: the test answers in its place."""
    announce(
        Announcement(worker="plan@test/x/1/1", place="plan@test/x", node="plan@test", pid=1, queue="plan")
    )
    live_redis.expire("worker:plan:plan@test/x/1/1", 600)
    for pattern in ("plan", f"plan\x06\x16{LATER}", "planning:*", WANTED):
        for key in live_redis.scan_iter(match=pattern):
            live_redis.delete(key)
    yield live_redis
    live_redis.delete("worker:plan:plan@test/x/1/1")


def answer_one(store: redis.Redis) -> None:
    """Take the first task of the queue and answer it."""
    message = json.loads(str(store.lpop("plan")))
    arguments = json.loads(base64.b64decode(message["body"]))[0]
    answers.reply(message["properties"]["reply_to"], {"echo": arguments[0]})


def test_a_question_comes_before_predictions_that_nobody_waits_for(somebody_plans: redis.Redis) -> None:
    for run_id in (1, 2):
        services.enqueue(run_id)
    queue_wanted_predictions()
    celery.send_task("plan.predict", [{}], queue="plan", reply_to="reply")
    with celery.connection() as broker:
        queue = broker.SimpleQueue("plan")
        taken = [queue.get(timeout=600).headers["task"] for _ in range(3)]
    assert taken == ["plan.predict", "plan.predict_run", "plan.predict_run"]


def test_other_workers_write_no_task_into_the_queue_of_planning_workers_but_a_number_beside_it(
    somebody_plans: redis.Redis,
) -> None:
    services.enqueue(7)
    assert not somebody_plans.exists("plan", f"plan\x06\x16{LATER}")
    assert somebody_plans.lrange(WANTED, 0, -1) == ["7"]
    queue_wanted_predictions()
    assert somebody_plans.llen(f"plan\x06\x16{LATER}") == 1 and not somebody_plans.exists(WANTED)


def test_a_person_has_two_questions_under_way_and_others_do_not_wait_for_the_rest(
    somebody_plans: redis.Redis,
) -> None:
    with ThreadPoolExecutor(9) as pool:
        many = [pool.submit(answers.ask, "plan.test", [f"ada {index}"], 1) for index in range(8)]
        wait_until(lambda: somebody_plans.llen("plan") == 2, "two questions of ada")
        other = pool.submit(answers.ask, "plan.test", ["bob"], 2)
        wait_until(lambda: somebody_plans.llen("plan") == 3, "bob's question beside two of ada's")
        for _ in range(3):
            answer_one(somebody_plans)
        assert other.result(120) == {"echo": "bob"}
        for _ in range(6):
            wait_until(lambda: somebody_plans.llen("plan"), "ada's next question")
            answer_one(somebody_plans)
        assert sorted(each.result(120)["echo"] for each in many) == [f"ada {index}" for index in range(8)]
    assert not list(somebody_plans.scan_iter(match="planning:*"))


def test_large_questions_leave_a_planning_process_to_the_small_ones_of_everybody(
    somebody_plans: redis.Redis,
) -> None:
    """Two processes plan: three people ask for a thousand devices each, then two ask for four."""
    key = "worker:plan:plan@test/x/1/1"
    worker = Announcement.model_validate_json(str(somebody_plans.get(key)))
    somebody_plans.set(key, worker.model_copy(update={"slots": 2}).model_dump_json(), ex=600)
    with ThreadPoolExecutor(9) as pool:
        large = [pool.submit(answers.ask, "plan.test", ["large"], person, True) for person in (1, 1, 2, 3)]
        wait_until(lambda: somebody_plans.exists("planning:large:0", "planning:1:large") == 2, "their turns")
        small = [pool.submit(answers.ask, "plan.test", ["small"], person) for person in (1, 4)]
        wait_until(lambda: somebody_plans.llen("plan") == 3, "both small questions")
        while not all(one.done() for one in (*large, *small)):
            waiting = [one for one in somebody_plans.lrange("plan", 0, -1) if "large" in argument_of(one)]
            assert len(waiting) <= 1
            if somebody_plans.llen("plan"):
                answer_one(somebody_plans)
        assert [one.result()["echo"] for one in (*large, *small)] == ["large"] * 4 + ["small"] * 2


def argument_of(message: Any) -> str:
    return str(json.loads(base64.b64decode(json.loads(str(message))["body"]))[0][0])


@pytest.mark.parametrize(
    ("overrides", "large"),
    [
        ({}, False),
        ({"cluster": line(33)}, True),
        ({"workload": {"prompt_tokens": 8, "new_tokens": 10_000}}, True),
        ({"model": "demo-lm", "workload": {"prompt": "The with statement", "new_tokens": 4}}, False),
    ],
)
def test_the_size_of_a_question_is_that_of_its_cluster_and_of_what_it_plays(
    overrides: dict[str, Any], large: bool
) -> None:
    spec = run_spec(**overrides)
    assert budgets.is_large_run(spec) == large
    added = spec.model_copy(update={"model": spec.model.model_copy(update={"name": "mine"})})
    assert budgets.is_large_run(added) == (large or spec.workload.prompt is not None)


def test_whose_turn_does_not_come_is_told_so(somebody_plans: redis.Redis, monkeypatch) -> None:
    for index in range(answers.AT_ONCE):
        somebody_plans.set(f"planning:1:{index}", "another", ex=60)
    monkeypatch.setattr(answers, "ANSWER_TIMEOUT_S", 0.1)
    monkeypatch.setattr(answers, "BLOCK_S", 1)
    with pytest.raises(TooMany, match="2 of your questions are being computed"):
        answers.ask("plan.test", [], 1)
    with pytest.raises(Unavailable, match="busy") as refused:
        answers.ask("plan.test", [], 2)
    assert refused.value.retry_s, "the page asks again by itself"


def test_who_comes_after_an_expired_place_keeps_it(live_redis: redis.Redis) -> None:
    with answers.turn(9, time.monotonic() + 60):
        assert live_redis.get("planning:9:0")
        live_redis.set("planning:9:0", "another question, after this place had expired", ex=60)
    assert live_redis.get("planning:9:0") == "another question, after this place had expired"
    live_redis.delete("planning:9:0")


def test_a_refusal_for_too_many_says_when_to_try_again(
    planning_as_it_is: None, somebody_plans: redis.Redis, monkeypatch, alice: Browser
) -> None:
    person = alice.client.session["_auth_user_id"]
    for index in range(answers.AT_ONCE):
        somebody_plans.set(f"planning:{person}:{index}", "another", ex=60)
    monkeypatch.setattr(answers, "ANSWER_TIMEOUT_S", 0.2)
    response = alice.post("/predict", request_body())
    assert "try again" in refusal(response, 429)
    assert response["Retry-After"] == "5"


# Limits of a task -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        (SoftTimeLimitExceeded(), "This takes more than 30 s: ask for fewer requests, tokens or devices."),
        (MemoryError(), "This needs more than 3 GiB: ask for fewer requests, tokens or devices."),
        (PlanError("It does not fit."), "It does not fit."),
    ],
)
def test_a_question_that_meets_a_limit_is_answered_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, sentence: str
) -> None:
    def compute() -> dict[str, Any]:
        raise raised

    task = celery.tasks["plan.plan_run"]
    monkeypatch.setattr(task, "run", compute)
    with pytest.raises((HostError, PlanError), match=sentence):
        answers.answer_of(json.loads(json.dumps(task.answer())))


def test_a_question_that_a_busy_machine_held_up_may_be_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def compute() -> dict[str, Any]:
        raise SoftTimeLimitExceeded

    task = celery.tasks["plan.plan_run"]
    monkeypatch.setattr(task, "run", compute)
    waits = iter((7.0, 7.0 + 28.0))
    monkeypatch.setattr(answers.core_wait, "waited_s", lambda pid: next(waits))
    with pytest.raises(Unavailable, match=r"is busy: this waited 28\.0 of 30 s for a core") as refused:
        answers.answer_of(json.loads(json.dumps(task.answer())))
    assert refused.value.retry_s


def test_a_question_that_breaks_its_task_is_answered_and_breaks_it(
    live_redis: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = celery.tasks["plan.plan_run"]
    monkeypatch.setattr(task, "run", lambda: {}["nothing"])
    task.push_request(reply_to="reply:here")
    try:
        with pytest.raises(KeyError):
            task()
    finally:
        task.pop_request()
    with pytest.raises(HostError, match=r"The planning worker broke: KeyError\('nothing'\)"):
        answers.answer_of(json.loads(str(live_redis.lpop("reply:here"))))


def test_every_task_of_the_planning_queue_has_a_time_limit() -> None:
    planned = [task for name, task in celery.tasks.items() if name.startswith("plan.")]
    assert len(planned) >= 6
    for task in planned:
        assert task.soft_time_limit and task.time_limit > task.soft_time_limit, task.name


def test_a_planning_process_gets_a_memory_error_instead_of_the_machines_memory(monkeypatch) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda which, pair: limits.append((which, pair[0])))
    queues = SimpleNamespace(queues=SimpleNamespace(consume_from={"plan": None}))
    monkeypatch.setattr(answers, "app", SimpleNamespace(amqp=queues))
    answers.limit_memory()
    assert limits == [(resource.RLIMIT_DATA, 3 * 2**30)]
    queues.queues.consume_from = {"emulate": None}
    answers.limit_memory()
    assert len(limits) == 1


def test_without_redis_a_question_says_so(planning_as_it_is: None, own_redis: RedisServer) -> None:
    own_redis.stop()
    with pytest.raises(Unavailable, match="does not answer"):
        answers.ask("plan.test", [], 1)
