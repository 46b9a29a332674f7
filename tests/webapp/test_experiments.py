"""Experiments over HTTP: checked, stored, edited, started; and what is refused, in one sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

import topologies
from tests.support.experiments import BASE, RATES, STRATEGIES, fields
from tests.support.web import Browser, person
from webapp.experiments import computations, executions
from webapp.experiments.models import Computation, Execution, Experiment
from webapp.runs import workers

pytestmark = pytest.mark.django_db
ME = workers.this_worker("points@here")
ACTIONS = ("predict", "emulate", "pause", "resume", "cancel", "retry")


@pytest.fixture(autouse=True)
def nobody_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are called by the tests."""
    monkeypatch.setattr(executions, "announce", lambda count: None)


def created(browser: Browser, **changes: Any) -> dict[str, Any]:
    answer = browser.post("/experiments", {"experiment": fields(**changes)})
    assert answer.status_code == 201, answer.content
    return answer.json()


def refused(answer: Any, status: int) -> str:
    """The sentence of a refusal."""
    assert answer.status_code == status, answer.content
    sentence: str = answer.json()["detail"]
    assert sentence.endswith(".") and "\n" not in sentence
    return sentence


def work() -> None:
    """What a planning worker does, without Celery."""
    from webapp.experiments import tasks

    while taken := computations.take(ME, 10):
        for computation in taken:
            tasks.predict_one(computation, str(ME))


# From design to rows ------------------------------------------------------------------------------
def test_an_experiment_goes_from_its_fields_to_rows_with_metrics(alice: Browser) -> None:
    experiment = created(alice)
    assert (experiment["state"], experiment["owner"], experiment["may_change"]) == ("new", "alice", True)
    address = f"/experiments/{experiment['id']}"
    started = alice.post(f"{address}/predict").json()
    assert started["state"] == "running" and started["progress"]["simulated"]["waiting"] == 4
    work()
    answer = alice.get(f"{address}/rows").json()
    assert answer["state"] == "finished"
    single = {
        row["coordinates"]["rate"]: row for row in answer["rows"] if "single" in row["coordinates"].values()
    }
    assert single[1e7]["metrics"]["total_s"] == single[1e8]["metrics"]["total_s"] > 0
    voltage = {
        row["coordinates"]["rate"]: row for row in answer["rows"] if "voltage" in row["coordinates"].values()
    }
    assert voltage[1e7]["metrics"]["total_s"] > voltage[1e8]["metrics"]["total_s"]
    listed = alice.get("/experiments").json()
    assert [(row["id"], row["total"], row["done"], row["state"]) for row in listed] == [
        (experiment["id"], 4, 4, "finished")
    ]


def test_a_cursor_gives_what_has_changed_since(alice: Browser, monkeypatch) -> None:
    monkeypatch.setattr("webapp.experiments.rows.OVERLAP_S", 0.0)
    address = f"/experiments/{created(alice)['id']}"
    alice.post(f"{address}/predict")
    first = alice.get(f"{address}/rows").json()
    assert len(first["rows"]) == 4
    (taken,) = computations.take(ME, 1)
    computations.fail(taken.pk, "It broke.")
    later = alice.get(f"{address}/rows", since=first["cursor"]).json()
    assert [row["state"] for row in later["rows"]] == ["failed"]
    assert alice.get(f"{address}/rows", since=later["cursor"]).json()["rows"] == []
    for wrong in ("nan", "-1", "1e30"):
        assert "cursor" in refused(alice.get(f"{address}/rows", since=wrong), 422)


def test_a_file_is_read_and_written(alice: Browser) -> None:
    experiment = created(alice)
    toml = alice.get(f"/experiments/{experiment['id']}/export/toml").content.decode()
    again = alice.post("/experiments", {"toml": toml, "name": "again"}).json()
    assert again["name"] == "again" and again["experiment"] == experiment["experiment"]


def test_a_preview_is_predicted_and_repeats_cost_nothing(alice: Browser) -> None:
    first = alice.post("/experiments/preview", {"experiment": fields()}).json()
    assert (first["num_points"], first["waiting"], first["emulate_s"]) == (4, 4, None)
    work()
    second = alice.post("/experiments/preview", {"experiment": fields()}).json()
    assert second["waiting"] == 0 and second["predict_s"] == 0
    assert all(row["metrics"]["total_s"] > 0 for row in second["rows"])
    assert second["emulate_s"] == pytest.approx(sum(point["emulate_s"] for point in second["points"]))
    assert Computation.objects.count() == 4 and not Experiment.objects.exists()
    experiment = created(alice)
    started = alice.post(f"/experiments/{experiment['id']}/predict").json()
    assert started["state"] == "finished", "everything is known from the preview"


def test_a_check_counts_points_and_estimates_their_time(alice: Browser, victor: Browser) -> None:
    answer = victor.post("/experiments/check", {"experiment": fields(seeds=[0, 1, 2])}).json()
    assert answer["num_points"] == 12 and answer["problems"] == [] and answer["predict_s"] > 0
    assert not Execution.objects.exists() and not Computation.objects.exists()


def test_points_to_emulate_are_chosen_by_digest(alice: Browser) -> None:
    address = f"/experiments/{created(alice)['id']}"
    alice.post(f"{address}/predict")
    rows = alice.get(f"{address}/rows").json()["rows"]
    chosen = [rows[0]["digest"], rows[3]["digest"]]
    assert alice.post(f"{address}/emulate", {"digests": chosen}).status_code == 202
    emulated = [row for row in alice.get(f"{address}/rows").json()["rows"] if row["world"] == "emulated"]
    assert [(row["index"], row["digest"], row["state"]) for row in emulated] == [
        (0, chosen[0], "waiting"),
        (3, chosen[1], "waiting"),
    ]
    assert "no point" in refused(alice.post(f"{address}/emulate", {"digests": ["f" * 64]}), 422)
    assert "either" in refused(alice.post(f"{address}/emulate", {}), 422)
    assert "either" in refused(alice.post(f"{address}/emulate", {"digests": chosen, "choose": "all"}), 422)


FIGURE = {"name": "latency", "kind": "lines", "x": "rate", "metric": "total_s", "series": "strategy"}
TABLE = {"name": "table", "rows": ["strategy"], "columns": ["rate"], "metric": "total_s"}


def test_figures_tables_and_the_best_are_made_of_the_rows(alice: Browser, victor: Browser) -> None:
    address = f"/experiments/{created(alice, figures=[FIGURE], tables=[TABLE])['id']}"
    assert alice.get(f"{address}/analysis").json()["best"] == []
    alice.post(f"{address}/predict")
    work()
    total_s = {
        tuple(row["coordinates"].values()): row["metrics"]["total_s"]
        for row in alice.get(f"{address}/rows").json()["rows"]
    }
    found = victor.get(f"{address}/analysis").json()
    assert found["problems"] == []
    (panel,) = found["figures"][0]["panels"]
    drawn = {(line["label"], spot["x"]): spot["y"] for line in panel["lines"] for spot in line["spots"]}
    assert drawn == total_s
    cells = [cell["value"] for row in found["tables"][0]["rows"] for cell in row["cells"]]
    assert cells == [total_s[name, rate] for name in ("single", "voltage") for rate in (1e7, 1e8)]
    for entry in found["best"]:
        rate = entry["coordinates"]["rate"]
        assert entry["winners"] == [min(("single", "voltage"), key=lambda name: total_s[name, rate])]
    assert victor.post(f"{address}/figure", {"figure": FIGURE}).json() == found["figures"][0]
    assert victor.post(f"{address}/table", {"table": TABLE}).json() == found["tables"][0]
    assert "speed" in refused(victor.post(f"{address}/figure", {"figure": FIGURE | {"x": "speed"}}), 422)


def test_a_preview_has_figures_and_says_which_cannot_be_drawn(alice: Browser) -> None:
    body = {"experiment": fields(figures=[FIGURE, FIGURE | {"name": "other", "metric": "beauty"}])}
    alice.post("/experiments/preview", body)
    work()
    answer = alice.post("/experiments/preview", body).json()
    assert [figure["name"] for figure in answer["figures"]] == ["latency"]
    assert [problem["path"] for problem in answer["problems"]] == ["figures[1]"]
    assert "beauty" in answer["problems"][0]["message"] and len(answer["best"]) == 2


def test_every_factor_that_is_offered_can_be_varied(alice: Browser) -> None:
    """Each with what the base has, or its first choice, as the only value: the same run, or a similar one."""
    cluster = topologies.load("lab-3").model_dump(mode="json")
    base = BASE | {"cluster": cluster, "strategy": "voltage"}
    offered = alice.post("/experiments/factors", {"base": base}).json()
    assert {"Links", "Devices", "Model", "Workload", "Strategy", "Run"} == {one["group"] for one in offered}
    assert len({one["path"] for one in offered}) == len(offered)
    for option in offered:
        value = option["choices"][-1]["value"] if option["choices"] else option["current"]
        if value is None:
            value = option["low"] if option["low"] is not None else 1
        factor = {"name": option["name"], "unit": option["unit"], "path": option["path"], "values": [value]}
        answer = alice.post("/experiments/check", {"experiment": fields(base=base, factors=[factor])}).json()
        problems = [answer["sentence"], *(point["problem"] for point in answer["points"])]
        assert not any(problems), (option, problems)
    by_name = {one["name"]: one for one in offered}
    assert by_name["devices"]["current"] == by_name["devices"]["high"] == 3
    assert "base.cluster" in refused(alice.post("/experiments/factors", {"base": {}}), 422)


@pytest.mark.parametrize(
    ("kind", "start"),
    [
        ("csv", b"strategy,rate,seed,"),
        ("json", b"{"),
        ("parquet", b"PAR1"),
        ("tex", b"% latency: End-to-end latency in ms"),
        ("svg", b"<?xml"),
        ("pdf", b"%PDF"),
        ("html", b"<!"),
    ],
)
def test_a_file_of_every_kind_is_made(alice: Browser, victor: Browser, kind: str, start: bytes) -> None:
    address = f"/experiments/{created(alice, figures=[FIGURE])['id']}"
    alice.post(f"{address}/predict")
    work()
    file = victor.get(f"{address}/export/{kind}")
    assert file.status_code == 200 and file.content.startswith(start)
    assert file["Content-Disposition"] == f'attachment; filename="two-by-two.{kind}"'


def test_an_export_of_what_is_not_there_is_refused(alice: Browser) -> None:
    address = f"/experiments/{created(alice, figures=[FIGURE])['id']}"
    assert "choose one of toml, csv" in refused(alice.get(f"{address}/export/docx"), 422)
    assert "it has latency" in refused(alice.get(f"{address}/export/svg", figure="speed"), 422)
    assert "it has latency" in refused(alice.get(f"{address}/export/tex", table="speed"), 422)
    empty = f"/experiments/{created(alice)['id']}"
    assert "it has no figures" in refused(alice.get(f"{empty}/export/pdf"), 422)


def test_every_shipped_experiment_can_be_stored_and_started(alice: Browser) -> None:
    shipped = alice.get("/experiments/shipped").json()
    assert {"methods-by-rate", "scaling"} <= {one["name"] for one in shipped}
    for one in shipped[:2]:
        stored = alice.post("/experiments", {"experiment": one["experiment"]}).json()
        started = alice.post(f"/experiments/{stored['id']}/predict")
        assert started.status_code == 202 and started.json()["total"] > 0, started.content
        alice.delete(f"/experiments/{stored['id']}")


def test_the_reproductions_are_counted_and_their_experiments_can_be_checked(victor: Browser) -> None:
    found = victor.get("/experiments/reproductions").json()
    assert len(found["papers"]) == 5
    assert sum(paper["figures"] for paper in found["papers"]) == 1034
    names = [one["name"] for one in found["experiments"]]
    shipped = {one["name"]: one["experiment"] for one in victor.get("/experiments/shipped").json()}
    assert set(names) <= set(shipped)
    checked = victor.post("/experiments/check", {"experiment": shipped[names[0]]}).json()
    assert checked["num_points"] > 0 and not checked["sentence"]
    assert victor.get(f"/experiments/reproductions/{names[0]}").json()
    assert "no reproduction" in refused(victor.get("/experiments/reproductions/none"), 422)


def test_every_metric_of_a_row_is_in_the_table_of_metrics(alice: Browser) -> None:
    address = f"/experiments/{created(alice)['id']}"
    alice.post(f"{address}/predict")
    work()
    known = {metric["name"] for metric in alice.get("/experiments/metrics").json()}
    for row in alice.get(f"{address}/rows").json()["rows"]:
        plain = {name for name in row["metrics"] if not name.startswith("method.") and "[" not in name}
        assert {"total_s", "first_token_s", "bytes", "energy_j"} <= plain <= known


# Editing ------------------------------------------------------------------------------------------
def test_an_edit_counts_versions_and_a_name_does_not(alice: Browser) -> None:
    experiment = created(alice)
    address = f"/experiments/{experiment['id']}"
    alice.post(f"{address}/predict")
    renamed = alice.put(address, {"name": "better", "version": 1}).json()
    assert (renamed["name"], renamed["version"]) == ("better", 1)
    edited = alice.put(address, {"experiment": fields(factors=[RATES]), "version": 1})
    assert "strategy" in refused(alice.post(f"{address}/predict"), 422), "no factor and no base names one"
    assert edited.json()["version"] == 2 and edited.json()["started_version"] == 1
    assert "you edited version 1, stored is 2" in refused(
        alice.put(address, {"name": "x", "version": 1}), 409
    )


def test_a_deleted_experiment_leaves_its_results_to_others(alice: Browser) -> None:
    first, second = created(alice), created(alice)
    for experiment in (first, second):
        alice.post(f"/experiments/{experiment['id']}/predict")
    assert alice.delete(f"/experiments/{first['id']}").status_code == 204
    assert "There is no experiment" in refused(alice.get(f"/experiments/{first['id']}"), 404)
    work()
    assert alice.get(f"/experiments/{second['id']}").json()["state"] == "finished"


# Who may ------------------------------------------------------------------------------------------
def test_a_viewers_question_is_limited_too(alice: Browser, victor: Browser) -> None:
    address = f"/experiments/{created(alice)['id']}"
    many = {"where": ["rate > 1"] * 101}
    assert "101 conditions" in refused(victor.post(f"{address}/figure", {"figure": FIGURE | many}), 422)
    assert "101 conditions" in refused(victor.post(f"{address}/table", {"table": TABLE | many}), 422)
    base = {"cluster": one_device(1001)}
    assert "1,001 devices" in refused(victor.post("/experiments/factors", {"base": base}), 422)


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


MANY_TABLES = [{"name": f"t{number}", "rows": ["rate"], "metric": "total_s"} for number in range(101)]
MANY_PATHS = {"name": "x", "paths": [f"params.p{number}" for number in range(201)], "values": [1]}


OF_NO_FACTOR = {"name": "c", "text": "It ends.", "kind": "ended", "outcome": "finished", "at": {"speed": 1}}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"factors": [rates(1001), STRATEGIES]}, "2,002 points, and the limit is 2,000"),
        ({"factors": [rates(1000)], "seeds": list(range(1000))}, "1,000,000 points, and the limit is 10,000"),
        ({"factors": [rates(700)], "worlds": ["simulated", "calculated", "emulated"]}, "2,100 points"),
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
    assert not Computation.objects.exists()


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
