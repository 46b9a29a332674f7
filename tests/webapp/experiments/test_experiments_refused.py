"""Experiments over HTTP: who may see and change them, and what is refused, in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.experiments import BASE, FIGURE, RATES, STRATEGIES, TABLE, created, fields, refused, work
from tests.support.web import Browser, person
from webapp.experiments.models import Execution, Experiment
from webapp.experiments.points import all_points

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nobody_hears")]
RECORDED = Path(__file__).parents[1] / "runs" / "stored" / "v5" / "experiment.json"
ACTIONS = ("predict", "emulate", "pause", "resume", "cancel", "retry")


# Who may ------------------------------------------------------------------------------------------
def test_a_viewers_question_is_limited_too(alice: Browser, victor: Browser) -> None:
    address = f"/experiments/{created(alice)['id']}"
    many = {"where": ["rate > 1"] * 101}
    assert "101 conditions" in refused(victor.post(f"{address}/figure", {"figure": FIGURE | many}), 422)
    assert "101 conditions" in refused(victor.post(f"{address}/table", {"table": TABLE | many}), 422)
    base = {"cluster": one_device(1001)}
    assert "1,001 devices" in refused(victor.post("/experiments/factors", {"base": base}), 422)


@pytest.mark.parametrize("cluster", [{}, {"cluster": None}, {"cluster": 5}])
def test_factors_of_a_base_without_a_cluster_are_refused_with_what_to_give(
    alice: Browser, cluster: dict[str, Any]
) -> None:
    sentence = refused(alice.post("/experiments/factors", {"base": cluster}), 422)
    assert sentence.startswith(
        f"base.cluster is {'of type int' if cluster.get('cluster') else 'missing'}: give"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"workload": {"new_tokens": "many"}},
        {"workload": {"new_tokens": [1]}},
        {"silence_s": []},
        {"params": {"ratio": {}}},
    ],
)
def test_what_may_be_varied_is_offered_whatever_else_is_wrong_in_the_base(
    alice: Browser, wrong: dict[str, Any]
) -> None:
    """The check of the experiment names what is wrong; the form needs its factors for it to be corrected."""
    drop = {"kind": "drop_device", "device": "desk", "at_s": 1.0}
    base = {"cluster": "lab-3", "scenario": {"changes": [drop]}} | wrong
    answer = alice.post("/experiments/factors", {"base": base})
    assert answer.status_code == 200
    assert {"rate", "change_1_token"} <= {one["name"] for one in answer.json()}


def test_an_unknown_kind_of_change_is_refused_with_those_that_there_are(alice: Browser) -> None:
    base = {"cluster": "lab-3", "scenario": {"changes": [{"kind": "explode"}]}}
    sentence = refused(alice.post("/experiments/factors", {"base": base}), 422)
    assert "changes[0]: expected 'kind' to be one of 'set_rate', " in sentence and "got 'explode'" in sentence


def test_viewers_look_and_change_nothing(alice: Browser, victor: Browser) -> None:
    experiment = created(alice)
    address = f"/experiments/{experiment['id']}"
    for path in ("/experiments", address, f"{address}/rows", f"{address}/export/toml"):
        assert victor.get(path).status_code == 200
    assert victor.get(address).json()["may_change"] is False
    refused(victor.post("/experiments", {"experiment": fields()}), 403)
    refused(victor.post("/experiments/preview", {"experiment": fields()}), 403)
    refused(victor.put(address, {"name": "mine", "version": 1}), 403)
    refused(victor.delete(address), 403)
    for action in ACTIONS:
        refused(victor.post(f"{address}/{action}", {}), 403)
    assert not Execution.objects.exists()


def test_an_experiment_is_its_owners_and_an_administrator_may_help(alice: Browser) -> None:
    address = f"/experiments/{created(alice)['id']}"
    person("bob", "operator")
    ada = person("ada", "operator")
    ada.is_superuser = True
    ada.save()
    bob, admin = Browser(), Browser()
    bob.log_in("bob")
    admin.log_in("ada")
    assert "belongs to alice" in refused(bob.put(address, {"name": "mine", "version": 1}), 403)
    refused(bob.delete(address), 403)
    for action in ACTIONS:
        body = {"choose": "all"} if action == "emulate" else {}
        assert "belongs to alice" in refused(bob.post(f"{address}/{action}", body), 403)
    assert admin.post(f"{address}/predict").status_code == 202


def test_without_a_log_in_or_a_token_nothing_is_answered(alice: Browser) -> None:
    address = f"/experiments/{created(alice)['id']}"
    for path in ("/experiments", address, f"{address}/rows"):
        refused(Browser().get(path), 401)
    forged = alice.client.generic(
        "POST", f"/api{address}/predict", data="{}", content_type="application/json"
    )
    assert "CSRF" in refused(forged, 403) and not Execution.objects.exists()


# What is refused ----------------------------------------------------------------------------------
def rates(count: int) -> dict[str, Any]:
    return RATES | {"values": [1e6 + number for number in range(count)]}


def one_device(count: int) -> dict[str, Any]:
    device = {"flop_per_s": 1e9, "memory_bytes": 1e9, "memory_byte_per_s": 1e9}
    devices = [{**device, "name": f"d{index}"} for index in range(count)]
    links = [{"a": "d0", "b": f"d{index}", "bit_per_s": 1e8} for index in range(1, count)]
    return {"name": "line", "source": "d0", "devices": devices, "links": links}


MANY_TABLES = [{"name": f"t{number}", "rows": ["rate"], "metric": "latency_s"} for number in range(101)]
MANY_PATHS = {"name": "x", "paths": [f"params.p{number}" for number in range(201)], "values": [1]}


OF_NO_FACTOR = {"name": "c", "text": "It ends.", "kind": "ended", "outcome": "finished", "at": {"speed": 1}}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"factors": [rates(1001), STRATEGIES]}, "2,002 points, and the limit is 2,000"),
        ({"factors": [rates(1000)], "seeds": list(range(1000))}, "1,000,000 points, and the limit is 10,000"),
        ({"factors": [rates(700)], "worlds": ["predicted", "calculated", "emulated"]}, "2,100 points"),
        (
            {"base": BASE | {"cluster": one_device(400)}, "factors": [rates(300)]},
            "120,000 devices in all points together, and the limit is 100,000",
        ),
        (
            {"factors": [{"name": "n", "path": "cluster.copies[desk]", "values": [1_000_000]}]},
            "devices in all points together",
        ),
        ({"where": ["rate > 1"] * 101}, "101 conditions, and the limit is 100"),
        ({"where": ["rate > " + "1" * 500]}, "where[0]: 507 characters, and the limit is 500"),
        ({"assumptions": ["x"] * 2001}, "2,001 published values and assumptions, and the limit is 2,000"),
        ({"tables": MANY_TABLES}, "101 figures, tables and claims, and the limit is 100"),
        ({"factors": [MANY_PATHS]}, "201 paths that a point sets, and the limit is 200"),
        ({"factors": [{"name": "x", "path": "cluster.speed", "values": [1]}]}, "cluster.speed"),
        (
            {"factors": [RATES | {"unit": "B/s"}]},
            "its unit is B/s, and cluster.links[*].bit_per_s is in bit/s",
        ),
        (
            {"base": BASE | {"cluster": "/etc/passwd"}, "factors": [STRATEGIES]},
            "There is no cluster /etc/passwd",
        ),
        ({"base": BASE | {"model": "/etc"}, "factors": [STRATEGIES]}, "There is no model /etc"),
        ({"base": BASE | {"weights": "/etc"}, "factors": [STRATEGIES]}, "weights is '/etc'"),
        ({"where": ["__import__('os')"]}, "Call is no part of conditions"),
        ({"factors": [RATES | {"values": ["fast"]}]}, 'values[0] is "fast"'),
        ({"factors": [RATES | {"values": []}]}, "factors[0].values: expected at least 1 value, got none"),
        ({"factors": [RATES, RATES]}, "factors: rate is there twice"),
        ({"factors": [RATES, STRATEGIES], "zipped": [["rate", "rate"]]}, "in two groups or twice in one"),
        ({"published": [{"value": 1, "unit": "kg"}]}, "the unit kg does not fit a value in s"),
        ({"claims": [OF_NO_FACTOR]}, "claim c: at: there is no factor speed"),
        ({"name": "No spaces"}, "name"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_started_and_listed_when_checked(
    alice: Browser, changes: dict[str, Any], complaint: str
) -> None:
    checked = alice.post("/experiments/check", {"experiment": fields(**changes)})
    assert checked.status_code == 200, checked.content
    assert complaint in checked.json()["sentence"] and checked.json()["problems"]
    stored = alice.post("/experiments", {"experiment": fields(**changes)})
    if stored.status_code == 201:
        stored = alice.post(f"/experiments/{stored.json()['id']}/predict")
    assert complaint in refused(stored, 422)
    assert not all_points().exists()


def test_a_point_too_large_for_the_server_has_a_sentence_and_the_others_go_on(alice: Browser) -> None:
    tokens = {"name": "tokens", "path": "workload.new_tokens", "values": [2, 1_000_000]}
    address = f"/experiments/{created(alice, base=BASE | {'strategy': 'voltage'}, factors=[tokens])['id']}"
    alice.post(f"{address}/predict")
    work()
    small, large = alice.get(f"{address}/rows").json()["rows"]
    assert small["state"] == "done"
    assert (
        large["state"] == "problem" and "are 6,000,000 steps, and the limit is 2,000,000" in large["reason"]
    )


def test_a_plan_by_hand_is_a_value_and_no_name_of_a_file_of_the_server(alice: Browser) -> None:
    """tiny-gpt2 has two layers; the file would be there."""
    divided = [{"device": "desk", "layers": 1}, {"device": "shelf", "layers": 1}]
    plans = {
        "name": "plan",
        "path": "params.plan",
        "values": [
            {"label": "halves", "value": {"devices": divided}},
            {"label": "half", "value": {"devices": divided[:1]}},
            {"label": "file", "value": __file__},
        ],
    }
    address = f"/experiments/{created(alice, base=BASE | {'strategy': 'gpipe'}, factors=[plans])['id']}"
    alice.post(f"{address}/predict")
    work()
    halves, half, file = alice.get(f"{address}/rows").json()["rows"]
    assert (halves["outcome"], half["outcome"]) == ("finished", "no_plan")
    assert "divides 1 layers, and tiny-gpt2 has 2" in half["reason"]
    assert file["state"] == "problem" and "no file is opened by its name here" in file["reason"]


def test_an_experiment_file_brings_the_recorded_files_that_it_names(alice: Browser) -> None:
    toml = """
name = "recorded"
[base]
cluster = "lab-3"
model = "tiny-gpt2"
strategy = "single"
workload = { trace = "days/day.csv,requests=1" }
"""
    day = "at_s,prompt_tokens,new_tokens\n0.5,8,2\n2,8,4\n"
    assert "names the recorded file day.csv: give it together" in refused(
        alice.post("/experiments", {"toml": toml}), 422
    )
    answer = alice.post("/experiments", {"toml": toml, "files": {"day.csv": day}})
    assert answer.status_code == 201, answer.content
    address = f"/experiments/{answer.json()['id']}"
    alice.post(f"{address}/predict")
    work()
    (row,) = alice.get(f"{address}/rows").json()["rows"]
    assert row["outcome"] == "finished", row
    assert answer.json()["experiment"]["base"]["workload"]["trace"] == [
        {"at_s": 0.5, "prompt_tokens": 8, "new_tokens": 2}
    ]
    long = "at_s,prompt_tokens,new_tokens" + 25_000 * "\n123456.5,8,2"
    large = {"toml": toml.replace(",requests=1", ""), "files": {"day.csv": long}}
    assert "name a part of them, as day.csv,requests=1000" in refused(alice.post("/experiments", large), 422)
    bad = alice.post("/experiments", {"toml": toml, "files": {"day.csv": day.replace("8,2", "8,soon")}})
    assert "day.csv, line 2, new_tokens: expected a number" in refused(bad, 422)


def test_weights_in_a_directory_of_the_server_are_refused_wherever_they_are_written(alice: Browser) -> None:
    weights = {
        "name": "weights",
        "path": "weights",
        "values": [{"label": "x", "value": {"kind": "directory", "directory": "/etc"}}],
    }
    answer = alice.post("/experiments/check", {"experiment": fields(factors=[STRATEGIES, weights])}).json()
    sentences = [answer["sentence"], *(point["problem"] for point in answer["points"])]
    assert any("directory" in sentence for sentence in sentences)
    assert answer["num_points"] == 0 or all(point["problem"] for point in answer["points"])


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({}, "give either experiment or toml"),
        ({"experiment": fields(), "toml": ""}, "give either experiment or toml"),
        ({"toml": "["}, "no valid TOML"),
        ({"toml": "x" * 1_000_001}, "1,000,001 characters, and the limit is 1,000,000"),
        ({"toml": 'name = "a\\u0000b"'}, "name"),
        ({"toml": "a = " + "[" * 5000}, "no valid TOML"),
        ({"toml": 'name = "x"\nbase = {dilation = nan}'}, "base.dilation: nan is no finite number"),
        ({"toml": 'name = "x"\nbase = {params = {n = 9223372036854775808}}'}, "base.params.n: the limit"),
    ],
)
def test_a_body_that_is_no_experiment_is_refused(
    alice: Browser, body: dict[str, Any], complaint: str
) -> None:
    assert complaint in refused(alice.post("/experiments", body), 422)
    assert complaint in alice.post("/experiments/check", body).json()["sentence"]


@pytest.mark.parametrize("path", [f"/experiments/{10**30}", f"/experiments/{10**30}/rows", "/experiments/0"])
def test_an_experiment_that_is_not_there_is_not_found(alice: Browser, path: str) -> None:
    assert alice.get(path).status_code in (404, 422)


def test_a_stored_experiment_of_a_newer_version_is_said_to_be_unreadable(alice: Browser) -> None:
    experiment = created(alice)
    document = {"schema": 99, "name": "x", "novel": json.loads("{}"), "seeds": "?"}
    Experiment.objects.filter(pk=experiment["id"]).update(document=document)
    answer = alice.get(f"/experiments/{experiment['id']}").json()
    assert answer["experiment"] is None and "newer version of EdgeLoom" in answer["unreadable"]
    refused(alice.post(f"/experiments/{experiment['id']}/predict"), 422)


def test_a_stored_experiment_of_an_older_version_is_shown_and_predicted(alice: Browser) -> None:
    document = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert document["base"]["params"] == {"assumed_tokens": 9, "mode": "dp"}
    experiment = created(alice)
    Experiment.objects.filter(pk=experiment["id"]).update(document=document)
    answer = alice.get(f"/experiments/{experiment['id']}").json()
    assert answer["unreadable"] == "" and answer["experiment"]["base"]["workload"]["assumed_tokens"] == 9
    assert alice.post(f"/experiments/{experiment['id']}/predict").status_code < 300
