"""The advisor and the showcases over HTTP, with a real planning worker and a real Redis."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis

import topologies
from engine.advice.assess import assess
from engine.advice.values import Assessment, Why
from engine.advice.why import explain
from engine.domain.spec import RunSpec
from engine.strategies.registry import STRATEGIES
from tests.support.web import Browser, Worker
from topologies.showcases import ORDER, showcase
from webapp.advice import tasks
from webapp.advice.requests import AdviceRequest, base_of
from webapp.fleet.model_library import portable
from webapp.runs.requests import RunRequest, spec_of

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]


def body(**more: Any) -> dict[str, Any]:
    cluster = topologies.load("lab-3").model_dump(mode="json")
    work = {"prompt_tokens": 8, "new_tokens": 3}
    return {"cluster": cluster, "model": "tiny-gpt2", "workload": work, **more}


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
    base = base_of(AdviceRequest.parse(body(), "request"))
    for row in rows:
        expected = assess(base.model_copy(update={"strategy": row["strategy"]}))
        assert Assessment.parse(row, "row") == expected

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


def answered(store: redis.Redis) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(str(store.lpop("reply:here")))
    return found


def base_document() -> dict[str, Any]:
    return base_of(AdviceRequest.parse(body(), "request")).model_dump(mode="json")


def test_a_task_whose_person_has_asked_again_stops(live_redis: redis.Redis, db: None) -> None:
    live_redis.set("advice:7", 3)
    tasks.assess_some(base_document(), ["single"], "advice:7", 2, "reply:here")
    assert answered(live_redis) == {"superseded": True}
    tasks.assess_some(base_document(), ["single"], "advice:7", 3, "reply:here")
    assert [row["strategy"] for row in answered(live_redis)["rows"]] == ["single"]


def test_an_assessment_is_not_computed_twice(
    live_redis: redis.Redis, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_redis.set("advice:7", 1)
    document = base_document()
    tasks.assess_some(document, ["single", "gpipe"], "advice:7", 1, "reply:here")
    first = answered(live_redis)
    monkeypatch.setattr(tasks, "assess", lambda spec: pytest.fail("computed again"))
    tasks.assess_some(document, ["single", "gpipe"], "advice:7", 1, "reply:here")
    assert answered(live_redis) == first


def test_strategies_for_which_no_time_is_left_say_so(
    live_redis: redis.Redis, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_redis.set("advice:7", 1)
    monkeypatch.setattr(tasks, "LIMIT_S", -1)
    tasks.assess_some(base_document(), ["single"], "advice:7", 1, "reply:here")
    (row,) = answered(live_redis)["rows"]
    assert row["total_s"] is None and row["reason"].startswith("Not predicted: there was no time left")


@pytest.mark.parametrize(
    ("more", "status", "part"),
    [
        ({"model": "nothing"}, 422, "There is no model nothing"),
        ({"cluster": None}, 422, "A run needs one cluster"),
        (
            {"workload": {"prompt_tokens": 8, "requests": 4000, "pattern": "bursty"}},
            422,
            "the limit is 10,000",
        ),
        ({"by": "beauty"}, 422, "by"),
        ({}, 503, "No planning worker is running"),
    ],
)
def test_what_cannot_be_advised_on_is_refused_in_a_sentence(
    live_redis: redis.Redis, victor: Browser, more: dict[str, Any], status: int, part: str
) -> None:
    answer = victor.post("/advice", body(**more))
    assert answer.status_code == status and part in answer.json()["detail"]


def test_rows_that_name_what_the_cluster_lacks_are_refused(plan_worker: Worker, victor: Browser) -> None:
    limit = {"resource": "link", "name": "moon--sun", "share_frac": 0.5}
    row = {"strategy": "single", "lossless": True, "reason": "r", "total_s": 1.0, "limit": limit}
    answer = victor.post("/advice/changes", body(rows=[row]))
    assert answer.status_code == 422 and "no link moon--sun" in answer.json()["detail"]


def by_digest(spec: RunSpec) -> RunSpec:
    """As the server names weights."""
    return spec.model_copy(update={"weights": portable(spec.weights)})


def test_showcases_are_listed_with_requests_that_mean_their_runs(victor: Browser) -> None:
    listed = victor.get("/showcases").json()
    assert [each["name"] for each in listed] == list(ORDER)
    for each in listed:
        found = showcase(each["name"])
        own = spec_of(RunRequest.parse(each["request"], "request"))
        assert own.model_copy(update={"name": ""}) == by_digest(found.spec)
        for other, expected in zip(each["others"], found.others, strict=True):
            again = spec_of(RunRequest.parse(other["request"], "request"))
            assert again.model_copy(update={"name": ""}) == by_digest(expected.spec)


def test_advice_needs_a_login(db: None) -> None:
    assert Browser().get("/showcases").status_code == 401
