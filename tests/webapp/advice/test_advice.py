"""The advisor and the showcases over HTTP, with a real planning worker and a real Redis."""

from __future__ import annotations

from typing import Any

import pytest
import redis

import topologies
from engine.advice.assess import assess
from engine.advice.values import Assessment
from engine.domain.spec import RunSpec
from engine.strategies.registry import with_strategy
from tests.support.web import Browser
from topologies.showcases import showcase, showcases
from webapp.advice import asking, tasks
from webapp.advice.requests import AdviceRequest, base_of
from webapp.clusters.model_library import portable
from webapp.jobs import answers
from webapp.runs.requests import RunRequest, request_of, spec_of

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]


def body(**more: Any) -> dict[str, Any]:
    cluster = topologies.load("lab-3").model_dump(mode="json")
    work = {"prompt_tokens": 8, "new_tokens": 3}
    return {"cluster": cluster, "model": "tiny-gpt2", "workload": work, **more}


def base_document() -> dict[str, Any]:
    return base_of(AdviceRequest.parse(body(), "request")).model_dump(mode="json")


def test_a_task_whose_person_has_asked_again_stops(live_redis: redis.Redis, db: None) -> None:
    live_redis.set("advice:7", 3)
    answer = tasks.assess_some.answer(base_document(), ["single"], "advice:7", 2)
    assert answer == {"superseded": True}
    answer = tasks.assess_some.answer(base_document(), ["single"], "advice:7", 3)
    assert [row["strategy"] for row in answer["rows"]] == ["single"]


def test_advice_is_on_the_weights_in_the_bits_that_are_asked_for(db: None) -> None:
    assert base_of(AdviceRequest.parse(body(weight_bits=4), "request")).model.weight_bits == 4.0
    assert base_of(AdviceRequest.parse(body(), "request")).model.weight_bits == 0.0
    whole = base_of(AdviceRequest.parse(body(weight_bits=8, activation_bits=8), "request"))
    assert whole.model.activation_bits == 8
    assert "multiplies no whole numbers" in assess(with_strategy(whole, "voltage")).reason
    assert assess(with_strategy(whole, "single")).total_s


def test_an_assessment_is_not_computed_twice(
    live_redis: redis.Redis, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_redis.set("advice:7", 1)
    document = base_document()
    first = tasks.assess_some.answer(document, ["single", "gpipe"], "advice:7", 1)

    def assess_with_interval(spec: RunSpec) -> Any:
        pytest.fail("computed again")

    monkeypatch.setattr(tasks, "assess_with_interval", assess_with_interval)
    answer = tasks.assess_some.answer(document, ["single", "gpipe"], "advice:7", 1)
    assert answer == first


def test_an_answer_for_whose_remedy_no_time_is_left_is_given_without(
    live_redis: redis.Redis, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_redis.set("advice:7", 1)
    document = base_document()
    rows = tasks.assess_some.answer(document, ["single", "gpipe"], "advice:7", 1)["rows"]
    monkeypatch.setattr(tasks, "LIMIT_S", -1)
    found = tasks.answer_first.answer(document, rows, "total_s", "advice:7", 1)["answer"]
    assert found["yes"] is False and "links" not in found["sentence"]


@pytest.mark.parametrize(
    ("question", "begin"),
    [("buy", "Buy nothing"), ("largest", "The largest model"), ("link", "None: "), ("cost", "A token of")],
)
def test_a_question_is_answered_in_a_sentence_or_not_yet(
    live_redis: redis.Redis, db: None, monkeypatch: pytest.MonkeyPatch, question: str, begin: str
) -> None:
    live_redis.set("question:7", 1)
    document = base_document()
    rows = tasks.assess_some.answer(document, ["single"], "question:7", 1)["rows"]
    monkeypatch.setattr(tasks.catalogue, "names", lambda: ("tiny-gpt2",))
    asked = {"question": question, "by": "total_s", "tokens_per_s": 1.0, "prices": {}}
    found = tasks.ask_question.answer(document, asked, rows, "question:7", 1)["reply"]
    assert found["sentence"].startswith(begin)
    if question in ("buy", "largest"):
        monkeypatch.setattr(tasks, "LIMIT_S", -1)
        assert tasks.ask_question.answer(document, asked, rows, "question:7", 1) == {"reply": None}


def test_changes_are_told_when_all_were_tried_and_else_none(
    live_redis: redis.Redis, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine had tried none, and the page said that none makes a difference."""
    live_redis.set("advice:7", 1)
    document = base_document()
    rows = tasks.assess_some.answer(document, ["single", "gpipe"], "advice:7", 1)["rows"]
    found = tasks.try_changes.answer(document, rows, "total_s", "advice:7", 1)["changes"]
    assert any("twice as fast" in change["sentence"] for change in found)
    monkeypatch.setattr(tasks, "LIMIT_S", -1)
    assert tasks.try_changes.answer(document, rows, "total_s", "advice:7", 1) == {"changes": None}


def test_strategies_for_which_no_time_is_left_say_so(
    live_redis: redis.Redis, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_redis.set("advice:7", 1)
    monkeypatch.setattr(tasks, "LIMIT_S", -1)
    found = tasks.assess_some.answer(base_document(), ["single"], "advice:7", 1)
    (row,) = found["rows"]
    assert row["total_s"] is None and row["reason"].startswith("Not predicted: the methods before it took")
    assert not found["finished"]


def test_there_is_no_verdict_while_some_strategies_are_not_predicted(
    live_redis: redis.Redis, victor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row that was missing was the one device that has room."""
    live_redis.set("advice:7", 1)
    (row,) = tasks.assess_some.answer(base_document(), ["voltage"], "advice:7", 1)["rows"]
    rows = (Assessment.parse(row, "row"), tasks._no_time(base_of(AdviceRequest.parse(body(), "request"))))
    monkeypatch.setattr(asking, "assessed", lambda *_: (rows, False))
    monkeypatch.setattr(asking, "answered", lambda *_: pytest.fail("a verdict from some of the rows"))
    answer = victor.post("/advice", body(answer=True)).json()
    assert (answer["answer"], answer["finished"], len(answer["rows"])) == (None, False, 2)


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


def test_advice_that_another_request_overtook_says_when_to_ask_again(
    live_redis: redis.Redis, victor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "require_workers", lambda: None)
    monkeypatch.setattr(answers, "answers", lambda calls, ends_s: [{"superseded": True} for _ in calls])
    answer = victor.post("/advice", body())
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    assert "other advice meanwhile" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "more", "answer"),
    [
        ("question", {"question": "link"}, {"rows": [], "finished": False}),
        ("question", {"question": "buy"}, {"reply": None}),
        ("changes", {"rows": []}, {"changes": None}),
    ],
)
def test_a_question_that_takes_longer_says_when_to_ask_again(
    live_redis: redis.Redis,
    victor: Browser,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    more: dict[str, Any],
    answer: dict[str, Any],
) -> None:
    monkeypatch.setattr(answers, "require_workers", lambda: None)
    monkeypatch.setattr(answers, "answers", lambda calls, ends_s: [answer for _ in calls])
    refused = victor.post(f"/advice/{path}", body(**more))
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")


def by_digest(spec: RunSpec) -> RunSpec:
    """As the server names weights."""
    return spec.model_copy(update={"weights": portable(spec.weights)})


def test_showcases_are_listed_with_requests_that_mean_their_runs(victor: Browser) -> None:
    listed = victor.get("/showcases").json()
    assert [each["name"] for each in listed] == [each.name for each in showcases()]
    for each in listed:
        found = showcase(each["name"])
        own = spec_of(RunRequest.parse(each["request"], "request"))
        assert own.model_copy(update={"name": ""}) == by_digest(found.spec)
        for other, expected in zip(each["others"], found.others, strict=True):
            again = spec_of(RunRequest.parse(other["request"], "request"))
            assert again.model_copy(update={"name": ""}) == by_digest(expected.spec)


def test_a_request_made_of_a_run_means_that_run(db: None) -> None:
    """None of its fields has its default."""
    run = {"strategy": "voltage", "params": {"decode": "recompute"}, "compute_model": "flops", "seed": 3}
    run |= {"name": "one", "dilation": 7.0, "silence_s": 5.0, "failover": "stop", "weights": "random"}
    run |= {"weight_bits": 8, "activation_bits": 8, "draft_model": "tiny-gpt2", "likely_acceptance": 0.5}
    run |= {"board_links": "given"}
    run |= {"scenario": {"changes": [{"kind": "drop_device", "at_s": 1.0, "device": "shelf"}]}}
    asked = RunRequest.parse(body(**run), "request")
    fields = set(RunRequest.model_fields) - {"cluster_id", "notes", "tags"}
    assert asked.model_fields_set >= fields
    assert request_of(spec_of(asked), "one") == asked


def test_advice_needs_a_login(db: None) -> None:
    assert Browser().get("/showcases").status_code == 401


# Turns ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("layers", "together"), [(1, 2), (400, 1)])
def test_the_parts_of_a_large_question_leave_a_planning_process_to_others(
    live_redis: redis.Redis, db: None, monkeypatch: pytest.MonkeyPatch, layers: int, together: int
) -> None:
    """lab-3 has three devices: 1,200 layers on devices in a pass are large."""
    put: list[tuple[int, list[str]]] = []

    def answers_of(calls: list[Any], ends_s: float) -> list[dict[str, Any]]:
        places = [key for key in map(str, live_redis.scan_iter("planning:*")) if "large" in key]
        put.append((len(calls), sorted(places)))
        return [{"rows": [], "finished": True} for _ in calls]

    monkeypatch.setattr(asking.answers, "require_workers", lambda: None)
    monkeypatch.setattr(asking.answers, "answers", answers_of)
    base = base_of(AdviceRequest.parse(body(), "request"))
    spec = base.model_copy(update={"model": base.model.model_copy(update={"num_layers": layers})})
    asking.assessed(spec, "latency", person=7)
    places = ["planning:7:large", "planning:large:0"] if together == 1 else []
    assert put == [(together, places)] * (asking.PARTS // together)
    assert not list(live_redis.scan_iter("planning:7:*"))
