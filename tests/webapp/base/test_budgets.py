"""No request may take the service from others, and every refusal has the API's form: one sentence."""

from __future__ import annotations

import json

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.contrib.auth.models import User

import topologies
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import HostError, SpecError
from engine.domain.scenario import Scenario
from engine.domain.workload import Workload
from tests.support.web import Browser, person, request_body, run_spec
from webapp.base import budgets
from webapp.base.bodies import checked_json
from webapp.base.budgets import steps_of
from webapp.jobs import answers
from webapp.runs import tasks
from webapp.runs.models import Run
from webapp.runs.requests import RunRequest, spec_of

ONE_DEVICE = {"name": "d", "flop_per_s": 1e9, "memory_bytes": 1e9, "memory_byte_per_s": 1e9}


def refusal(response, status: int = 422) -> str:
    """The sentence of a refusal in the API's form."""
    assert response.status_code == status, response.content
    assert response["Content-Type"].startswith("application/json")
    assert set(response.json()) == {"detail", "fields"}
    sentence: str = response.json()["detail"]
    assert sentence.endswith(".") and "Traceback" not in sentence
    return sentence


def line(count: int) -> dict[str, object]:
    devices = [{**ONE_DEVICE, "name": f"d{index}"} for index in range(count)]
    links = [{"a": f"d{index}", "b": f"d{index + 1}", "bit_per_s": 1e8} for index in range(count - 1)]
    return {"name": "line", "source": "d0", "devices": devices, "links": links}


# Sizes --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("workload", "steps"),
    [
        ({"prompt_tokens": 8, "new_tokens": 4, "requests": 100_000}, "2,400,000"),
        ({"prompt_tokens": 8, "new_tokens": 1_000_000}, "6,000,000"),
    ],
)
def test_a_run_of_too_many_steps_is_refused_before_it_is_planned(alice: Browser, workload, steps) -> None:
    """Two layers on three devices."""
    sentence = refusal(alice.post("/runs", request_body(workload=workload)))
    assert f"are {steps} steps, and the limit is 2,000,000" in sentence
    refusal(alice.post("/predict", request_body(workload=workload)))
    assert not Run.objects.exists()


def test_a_prediction_that_takes_longer_than_a_person_waits_is_refused_at_once(alice: Browser) -> None:
    """Two layers; a recorded request counts as many tokens as it gets, not as many as the longest one."""
    rows = [{"at_s": float(at_s), "prompt_tokens": 8, "new_tokens": 3} for at_s in range(50_000)]
    rows[7]["new_tokens"] = 30
    workload = {"pattern": "trace", "trace": rows}
    assert refusal(alice.post("/predict", request_body(workload=workload))) == (
        "The run is too large to be predicted while you wait: 150,027 tokens of 50,000 requests × 2 layers "
        "are 300,054 passes through a layer, and the limit is 300,000: ask for fewer requests or tokens, or "
        "predict it on the command line."
    )


def test_steps_count_requests_tokens_layers_and_devices() -> None:
    workload = {"prompt_tokens": 8, "new_tokens": 5, "requests": 7}
    spec = spec_of(RunRequest.parse(request_body(workload=workload), "test"))
    assert steps_of(spec.cluster, spec.model, spec.workload) == 7 * 5 * 2 * 3
    encoder = spec.workload.model_copy(update={"new_tokens": 0})
    assert steps_of(spec.cluster, spec.model, encoder) == 7 * 2 * 3
    rows = [{"at_s": at_s, "prompt_tokens": 8, "new_tokens": tokens} for at_s, tokens in ((0, 1), (1, 100))]
    recorded = Workload(pattern="trace", trace=rows)
    assert steps_of(spec.cluster, spec.model, recorded) == 101 * 2 * 3


def test_a_cluster_of_1001_devices_is_refused_wherever_it_comes_from(alice: Browser) -> None:
    drawing = {"spec": line(1001)}
    assert "1,001 devices, and the limit is 1,000" in refusal(alice.post("/clusters", drawing))
    assert "1,001 devices" in refusal(alice.post("/predict", request_body(cluster=line(1001))))
    problems = alice.post("/clusters/validate", drawing).json()["problems"]
    assert problems == [{"path": "spec.devices", "message": "at most 1,000"}]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            '[[device]]\nname = "d"\ncopies = 5000000\n',
            "describes 5,000,000 devices, and the limit is 1,000.",
        ),
        (2 * '[[device]]\nname = "d"\ncopies = 501\n', "describes 1,002 devices, and the limit is 1,000."),
        (
            '[[device]]\nname = "d"\ncopies = 1000\n' + 5 * '[[link]]\na = "d-*"\nb = "x"\n',
            "describes 5,000 links, and the limit is 4,000.",
        ),
        ('[[device]]\nname = "d"\ncopies = true\n', "expected a whole number of at least 1, got True."),
    ],
)
def test_copies_in_a_cluster_file_are_counted_before_they_are_made(
    alice: Browser, monkeypatch, text: str, complaint: str
) -> None:
    monkeypatch.setattr("topologies.files._copied", lambda row, number: pytest.fail("copied"))
    assert complaint in refusal(alice.post("/clusters/import", {"text": text}))


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        ({"tags": ["x" * 4_000_000]}, "tags[0]: 4,000,000 characters, and the limit is 50."),
        ({"tags": ["x"] * 21}, "tags: 21 tags, and the limit is 20."),
        ({"notes": "x" * 20_001}, "notes: 20,001 characters, and the limit is 20,000."),
    ],
)
def test_labels_that_would_burden_every_list_are_refused(alice: Browser, labels, complaint) -> None:
    assert refusal(alice.post("/runs", request_body(**labels))) == complaint
    owner = User.objects.get(username="alice")
    run = Run.objects.create(owner=owner, request={}, spec={}, cluster_name="x", model="x", strategy="x")
    assert refusal(alice.patch(f"/runs/{run.pk}", labels)) == complaint


def test_a_title_over_the_columns_length_is_refused(alice: Browser) -> None:
    drawing = {"spec": {**line(2), "title": "t" * 201}}
    assert refusal(alice.post("/clusters", drawing)) == "spec.title: 201 characters, and the limit is 200."


def test_a_prompt_is_measured_before_it_is_tokenised(alice: Browser, monkeypatch) -> None:
    monkeypatch.setattr("engine.models.inputs.prompts.requests_of", lambda spec: pytest.fail("tokenised"))
    body = request_body(workload={"prompt": "x" * 200_001, "new_tokens": 4})
    assert "workload.prompt: 200,001 characters" in refusal(alice.post("/runs", body))


def test_a_prediction_that_takes_too_long_is_ended_with_a_sentence(monkeypatch) -> None:
    def endless(spec: object) -> None:
        raise SoftTimeLimitExceeded  # what Celery raises in the worker's main thread

    monkeypatch.setattr(tasks, "predict", endless)
    monkeypatch.setattr(answers.time, "process_time", iter((7.0, 7.0 + 29.0)).__next__)
    answer = tasks.predict_now.answer(run_spec().model_dump(mode="json"))
    with pytest.raises(HostError, match="takes more than 30 s: ask for fewer requests, tokens or devices"):
        answers.answer_of(answer)
    assert tasks.predict_now.soft_time_limit == 30 < answers.ANSWER_TIMEOUT_S


# What no part behind could handle -------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b'{"a": ' + b"9" * 5000 + b"}", "The number 999999999999… has 5000 characters"),
        (b'{"a": 9223372036854775808}', "The number 922337203685… has 19 characters"),
        (b'{"a": NaN}', "The request's body has NaN"),
        (b'{"a": "\\u0000"}', "has a NUL character"),
        (b'{"a": {"\\ud800": 1}}', "has half a surrogate pair"),
        (b"[" * 41 + b"]" * 41, "nested deeper than 40 levels"),
        (b"[" * 200_000, "nested deeper than 40 levels"),
        (b"\xff", "is not UTF-8 text"),
        (b"{", "is no JSON"),
    ],
)
def test_json_that_no_part_could_handle_is_refused_in_one_sentence(alice: Browser, text, complaint) -> None:
    response = alice.client.generic(
        "POST",
        "/api/clusters/import",
        data=text,
        content_type="application/json",
        headers={"X-CSRFToken": alice.client.cookies["csrftoken"].value},
    )
    assert complaint in refusal(response, 400)


def test_whole_characters_and_large_numbers_are_read() -> None:
    document = {"a": [9223372036854775807, -9223372036854775808 + 1, 1.5e300], "ä😀": None}
    assert checked_json(json.dumps(document).encode()) == document
    assert checked_json(json.dumps(document, ensure_ascii=False).encode()) == document
    assert checked_json(b"[" * 40 + b"]" * 40)


@pytest.mark.parametrize(
    "path",
    [
        f"/runs?offset={10**30}",
        f"/runs?offset={2**63}",
        "/runs?search=%00",
        "/runs?tag=%00",
        f"/runs/{10**30}",
        f"/runs/{10**30}/events",
        f"/clusters/{10**30}",
        f"/compare?ids={10**30},2",
        f"/runs/1/events?since={10**40}",
    ],
)
def test_numbers_and_texts_in_an_address_never_break_the_server(alice: Browser, path: str) -> None:
    response = alice.client.get(f"/api{path}")
    assert response.status_code in (400, 404, 422), response.content
    refusal(response, response.status_code)


def test_a_defect_is_said_in_the_apis_form_and_not_shown(alice: Browser, monkeypatch, caplog) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("webapp.runs.api.places", broken)
    sentence = refusal(alice.get("/runs"), 500)
    assert sentence.startswith("GET /api/runs broke") and "secret" not in sentence
    assert "ZeroDivisionError: secret" in caplog.text


def test_what_django_itself_refuses_has_the_apis_form_too(alice: Browser, settings) -> None:
    settings.ALLOWED_HOSTS = ["elsewhere"]
    refusal(alice.client.get("/api/runs"), 400)
    settings.ALLOWED_HOSTS = ["*"]
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    assert "longer than 10 bytes" in refusal(alice.post("/runs", request_body()), 413)


# Wrong log-ins --------------------------------------------------------------------------------------
def test_wrong_log_ins_are_refused_after_the_fifth_and_nobody_else_is(db: None) -> None:
    person("alice", "operator")
    person("victor", "viewer")
    browser = Browser()
    answers = [browser.log_in("alice", f"guess {number}").status_code for number in range(24)]
    assert answers[:4] == 4 * [401] and set(answers[5:]) == {429}
    sentence = refusal(browser.log_in("alice"), 429)
    assert sentence == "Too many wrong log-ins as alice: try again in 60 s."
    assert Browser().log_in("victor").status_code == 200


def test_the_right_password_after_a_wrong_one_logs_in_and_forgets_it(db: None) -> None:
    person("alice", "operator")
    for _ in range(3):
        browser = Browser()
        for _ in range(3):
            assert browser.log_in("alice", "wrong").status_code == 401
        assert browser.log_in("alice").status_code == 200


def test_a_minute_later_the_right_password_logs_in_again(db: None, settings) -> None:
    from datetime import timedelta

    person("alice", "operator")
    browser = Browser()
    for _ in range(6):
        browser.log_in("alice", "wrong")
    settings.AXES_COOLOFF_TIME = timedelta(0, 0, 1)
    assert browser.log_in("alice").status_code == 200


@pytest.mark.parametrize(
    "part, name, value",
    [
        ("devices", "flop_per_s", 1e-30),
        ("links", "bit_per_s", 1e-30),
        ("links", "loss_frac", 1.0),
        ("links", "reverse_loss_frac", 1.0),
    ],
)
def test_a_drawn_number_that_would_break_the_planner_is_refused_by_name(
    part: str, name: str, value: float
) -> None:
    document = topologies.load("lab-3").model_dump(mode="json")
    document[part][0][name] = value
    with pytest.raises(SpecError, match=rf"cluster\.{part}\[0\]\."):
        budgets.check_cluster(ClusterSpec.parse(document, "cluster"), "cluster")


def test_requests_and_changes_whose_rate_would_break_the_planner_are_refused_by_name() -> None:
    with pytest.raises(SpecError, match=r"workload\.rate_per_s: 1e-30, expected at least 0\.001"):
        budgets.check_workload(Workload(prompt_tokens=4, pattern="poisson", rate_per_s=1e-30))
    changes = [{"kind": "set_rate", "at_s": 1.0, "link": "desk-hub", "bit_per_s": 1e-30}]
    with pytest.raises(SpecError, match=r"scenario\.changes\[0\]\.bit_per_s"):
        budgets.check_scenario(Scenario.parse({"changes": changes}, "scenario"))
