"""Data of the form for a run: which strategies can run which models, and changes from traces and files."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

import topologies
from engine.domain.scenario import Scenario
from engine.strategies.registry import STRATEGIES
from tests.support.web import Browser, request_body
from topologies.traces import TRACES
from webapp.base import budgets
from webapp.runs.requests import RunRequest, spec_of

pytestmark = pytest.mark.django_db(transaction=True)

OURS = "at_s,prompt_tokens,new_tokens\n"


def upload(browser: Browser, name: str, data: bytes, path: str = "/scenarios", **form: str):
    return browser.client.post(
        f"/api{path}",
        {"file": SimpleUploadedFile(name, data), **form},
        headers={"X-CSRFToken": browser.client.cookies["csrftoken"].value},
    )


def test_every_strategy_says_whether_it_can_run_a_model_on_a_cluster(alice: Browser) -> None:
    cluster = topologies.load("lab-3")
    body = {"cluster": cluster.model_dump(mode="json"), "model": "tiny-vit"}
    answer = alice.post("/supports", body).json()
    assert set(answer) == {row.name for row in STRATEGIES}
    assert answer["single"] is None
    assert "4 attention heads, which 3 workers cannot share equally" in answer["deepspeed"]


def test_of_a_model_in_whole_numbers_only_methods_that_multiply_them_are_able(alice: Browser) -> None:
    cluster = topologies.load("lab-3").model_dump(mode="json")
    body = {"cluster": cluster, "model": "tiny-llama", "weight_bits": 8, "activation_bits": 8}
    answer = alice.post("/supports", body).json()
    able = {name for name, reason in answer.items() if reason is None}
    assert able == {row.name for row in STRATEGIES if row.computes_int8} == {"single", "mcu"}
    assert "multiplies no whole numbers: choose single or mcu" in answer["voltage"]
    assert alice.post("/supports", body | {"activation_bits": None}).json()["voltage"] is None


def test_a_model_that_whole_numbers_do_not_compute_is_refused_at_its_activations(alice: Browser) -> None:
    cluster = topologies.load("lab-3").model_dump(mode="json")
    body = {"cluster": cluster, "model": "llama-3.3-70b", "weight_bits": 8, "activation_bits": 8}
    refused = alice.post("/supports", body).json()
    assert [field["path"] for field in refused["fields"]] == ["activation_bits"]
    assert "the model has dtype bfloat16, expected a text model in float32" in refused["detail"]


def test_whom_a_question_is_about_must_be_known(alice: Browser) -> None:
    cluster = topologies.load("lab-3").model_dump(mode="json")
    response = alice.post("/supports", {"cluster": cluster, "model": "gpt-9"})
    assert response.status_code == 422 and "There is no model gpt-9" in response.json()["detail"]
    assert alice.post("/supports", {"model": "tiny-gpt2"}).status_code == 422


def test_every_example_trace_is_a_scenario_of_one_link(victor: Browser) -> None:
    rows = victor.get("/traces").json()
    assert {row["name"] for row in rows} == set(TRACES) and all(row["about"] for row in rows)
    for row in rows:
        scenario = Scenario.parse(victor.get(f"/traces/{row['name']}").json(), row["name"])
        assert len(scenario.changes) > 10
        assert {change.kind for change in scenario.changes} == {"set_rate"}
    assert "choose one of walk" in victor.get("/traces/storm").json()["detail"]


def test_a_file_of_changes_is_read_whatever_its_kind(alice: Browser) -> None:
    trace = b"at_s,link,bit_per_s\n1,a--b,2000000\n0.5,a--b,1000000\n"
    toml = b'[[change]]\nat_s = 2\nkind = "drop_device"\ndevice = "b"\n'
    csv = upload(alice, "mine.csv", trace).json()["changes"]
    assert [change["at_s"] for change in csv] == [0.5, 1.0]
    assert upload(alice, "mine.toml", toml).json()["changes"][0]["kind"] == "drop_device"


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("mine.csv", b"time,rate\n1,2\n", "in no format of rates"),
        ("mine.toml", b"[[change", "no valid TOML"),
        ("mine.toml", b"\xff\xfe", "is not UTF-8 text"),
        ("mine.csv", b"a" * 8_000_001, "is larger than 8 MB"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused_in_words(alice: Browser, name, data, sentence) -> None:
    response = upload(alice, name, data)
    assert response.status_code == 422 and sentence in response.json()["detail"]


def test_a_request_has_the_failover_mode() -> None:
    asked = RunRequest.parse(request_body(failover="stop", silence_s=0.5), "request")
    spec = spec_of(asked)
    assert (spec.failover, spec.silence_s) == ("stop", 0.5)


def test_recorded_rates_get_the_link_that_the_form_names(alice: Browser) -> None:
    made = upload(alice, "bus.up", b"500\n1000\n1000\n", link="a--b", options="until_s=2").json()["changes"]
    assert [(change["at_s"], change["bit_per_s"]) for change in made] == [
        (0.0, 24e3),
        (0.5, 48e3),
        (1.0, 24e3),
        (1.5, 48e3),
    ]
    assert {change["link"] for change in made} == {"a--b"}
    own = upload(alice, "mine.csv", b"at_s,link,bit_per_s\n1,c--d,2e6\n", link="a--b").json()["changes"]
    assert own[0]["link"] == "c--d"


def test_recorded_requests_become_a_trace_with_what_was_done_to_them(alice: Browser) -> None:
    burst = b"Timestamp,Request tokens,Response tokens\n5,20,3\n6,9,0\n9,8,4\n"
    found = upload(alice, "burst.csv", burst, "/requests", options="most_prompt_tokens=16").json()
    sizes = [(row["at_s"], row["prompt_tokens"], row["new_tokens"]) for row in found["requests"]]
    assert sizes == [(0.0, 16, 3), (4.0, 8, 4)]
    assert found["notes"] == [
        "1 of 3 requests had no tokens: left out.",
        "1 of 2 requests were longer: cut to the asked length.",
    ]
    refused = upload(alice, "burst.csv", burst, "/requests", options="speed=2")
    assert refused.status_code == 422 and "the option 'speed=2'" in refused.json()["detail"]


def test_a_trace_of_more_requests_than_a_run_has_is_refused_when_it_is_read_with_what_to_do(
    alice: Browser, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    line = "123456.123456789,12345,1234\n"
    (longest,) = upload(alice, "x.csv", f"{OURS}{line}".encode(), "/requests").json()["requests"]
    assert (
        len(json.dumps(longest)) * budgets.MAX_TRACED_REQUESTS < 0.95 * settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    )

    monkeypatch.setattr(budgets, "MAX_TRACED_REQUESTS", 3)
    refused = upload(alice, "day.csv", f"{OURS}{4 * line}".encode(), "/requests")
    assert refused.status_code == 422
    assert refused.json()["detail"] == (
        "day.csv: has 4 requests, and a run here has at most 3: take a part of them, as with requests=3 or "
        "until_s, or run it on the command line."
    )
    taken = upload(alice, "day.csv", f"{OURS}{4 * line}".encode(), "/requests", options="requests=3").json()
    assert len(taken["requests"]) == 3
    workload = {"pattern": "trace", "trace": [longest] * 4}
    asked = alice.post("/runs", request_body(workload=workload))
    assert asked.status_code == 422 and "workload.trace: has 4 requests" in asked.json()["detail"]
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 500
    longer = alice.post("/runs", request_body(workload=workload))
    assert longer.status_code == 413 and "a shorter part of a recorded trace" in longer.json()["detail"]


def test_a_file_of_prompts_is_refused_before_anybody_tokenises_it(alice: Browser) -> None:
    bad = upload(alice, "p.jsonl", b'{"prompt": "a"}\n{"text": "b"}\n', "/prompts", model="tiny-gpt2")
    assert bad.status_code == 422 and "p.jsonl, line 2" in bad.json()["detail"]
    unknown = upload(alice, "p.jsonl", b'{"prompt": "a"}', "/prompts", model="gpt-9")
    assert unknown.status_code == 422 and "There is no model gpt-9" in unknown.json()["detail"]
    large = upload(alice, "p.jsonl", b'{"prompt": "a"}' * 100_000, "/prompts", model="tiny-gpt2")
    assert large.status_code == 422 and "is larger than 1 MB" in large.json()["detail"]
