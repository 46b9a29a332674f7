"""Experiments over HTTP: checked, stored, edited, started, and their rows, figures and files."""

from __future__ import annotations

import csv
import io
import json

import pytest

import topologies
from tests.support.experiments import (
    BASE,
    FIGURE,
    POINTS_WORKER,
    RATES,
    STRATEGIES,
    TABLE,
    created,
    fields,
    refused,
    work,
)
from tests.support.waiting_points import fail
from tests.support.web import Browser
from webapp.experiments import points, tasks
from webapp.experiments.models import Execution, Experiment
from webapp.experiments.points import all_points

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nobody_hears")]


# From design to rows ------------------------------------------------------------------------------
def test_an_experiment_goes_from_its_fields_to_rows_with_metrics(alice: Browser) -> None:
    experiment = created(alice)
    assert (experiment["state"], experiment["owner"], experiment["may_change"]) == ("new", "alice", True)
    address = f"/experiments/{experiment['id']}"
    started = alice.post(f"{address}/predict").json()
    assert started["state"] == "running" and started["progress"]["predicted"]["waiting"] == 4
    work()
    answer = alice.get(f"{address}/rows").json()
    assert answer["state"] == "finished"
    single = {
        row["coordinates"]["rate"]: row for row in answer["rows"] if "single" in row["coordinates"].values()
    }
    assert single[1e7]["metrics"]["latency_s"] == single[1e8]["metrics"]["latency_s"] > 0
    voltage = {
        row["coordinates"]["rate"]: row for row in answer["rows"] if "voltage" in row["coordinates"].values()
    }
    assert voltage[1e7]["metrics"]["latency_s"] > voltage[1e8]["metrics"]["latency_s"]
    listed = alice.get("/experiments").json()
    assert [(row["id"], row["total"], row["done"], row["state"]) for row in listed] == [
        (experiment["id"], 4, 4, "finished")
    ]


def test_a_cursor_gives_what_has_changed_since(alice: Browser, monkeypatch) -> None:
    monkeypatch.setattr("webapp.experiments.answers.OVERLAP_S", 0.0)
    address = f"/experiments/{created(alice)['id']}"
    alice.post(f"{address}/predict")
    first = alice.get(f"{address}/rows").json()
    assert len(first["rows"]) == 4
    (taken,) = points.take(POINTS_WORKER, 1)
    fail(taken, "It broke.")
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
    assert all(row["metrics"]["latency_s"] > 0 for row in second["rows"])
    assert second["emulate_s"] == pytest.approx(sum(point["emulate_s"] for point in second["points"]))
    assert all_points().count() == 4 and not Experiment.objects.exists()
    experiment = created(alice)
    started = alice.post(f"/experiments/{experiment['id']}/predict").json()
    assert started["state"] == "finished", "everything is known from the preview"


def test_a_check_counts_points_and_estimates_their_time(alice: Browser, victor: Browser) -> None:
    answer = victor.post("/experiments/check", {"experiment": fields(seeds=[0, 1, 2])}).json()
    assert answer["num_points"] == 12 and answer["problems"] == [] and answer["predict_s"] > 0
    assert not Execution.objects.exists() and not all_points().exists()


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


def test_figures_tables_and_the_best_are_made_of_the_rows(alice: Browser, victor: Browser) -> None:
    address = f"/experiments/{created(alice, figures=[FIGURE], tables=[TABLE])['id']}"
    assert alice.get(f"{address}/analysis").json()["best"] == []
    alice.post(f"{address}/predict")
    work()
    total_s = {
        tuple(row["coordinates"].values()): row["metrics"]["latency_s"]
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


def test_methods_by_their_papers_rules_are_told_what_the_best_plans_would_give(
    alice: Browser, victor: Browser
) -> None:
    """Voltage's even split over three devices loses to one device, which its best plan takes."""
    address = f"/experiments/{created(alice)['id']}"
    assert victor.get(f"{address}/planners").json() == {"told": "", "gains": []}
    alice.post(f"{address}/predict")
    work()
    rows = alice.get(f"{address}/rows").json()["rows"]
    times = {tuple(row["coordinates"].values()): row["metrics"]["latency_s"] for row in rows}
    found = victor.get(f"{address}/planners").json()
    (gain,) = found["gains"]
    assert gain["strategy"] == "voltage" and "voltage" in found["told"] and "planner=best" in found["told"]
    # not slower than one device, by the test of all planners
    assert gain["most"] >= 0.98 * max(times["voltage", rate] / times["single", rate] for rate in (1e7, 1e8))


def test_where_all_methods_come_to_one_plan_the_design_is_warned_and_offered_what_makes_them_differ(
    alice: Browser, victor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = STRATEGIES | {"values": ["single", "gpipe"]}
    design = fields(factors=[methods, RATES], figures=[FIGURE], base=BASE | {"model": "demo-lm"})
    alice.post("/experiments/preview", {"experiment": design})
    work()
    (note,) = alice.post("/experiments/preview", {"experiment": design}).json()["notes"]
    assert note["kind"] == "one_plan"
    monkeypatch.setattr(tasks, "models_here", list)  # of large models this takes seconds
    (offered,) = alice.post("/experiments/remedies", {"experiment": design}).json()
    assert offered["methods"] and offered["cluster"]
    changed = design | {"base": design["base"] | {"cluster": offered["cluster"]}}
    alice.post("/experiments/preview", {"experiment": changed})
    work()
    answer = alice.post("/experiments/preview", {"experiment": changed}).json()
    assert answer["notes"] == [] and len(answer["figures"][0]["panels"][0]["lines"]) == 2
    memory = {"name": "memory", "path": "cluster.devices[*].memory_bytes", "values": [1e9, 2e9]}
    varied = design | {"factors": [methods, memory]}
    assert alice.post("/experiments/remedies", {"experiment": varied}).json() == []
    assert victor.post("/experiments/remedies", {"experiment": design}).status_code == 403


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
    groups = {"Links", "Devices", "Model", "Workload", "Failures and changes", "Strategy", "Run"}
    assert groups == {one["group"] for one in offered}
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


FIRST_BYTES = {
    "csv": b"strategy,rate,seed,",
    "json": b"{",
    "parquet": b"PAR1",
    "tex": b"% EdgeLoom experiment two-by-two, digest ",
    "svg": b"<?xml",
    "pdf": b"%PDF",
    "html": b"<!",
    "zip": b"PK",
}


def test_a_file_of_every_kind_is_made(alice: Browser, victor: Browser) -> None:
    address = f"/experiments/{created(alice, figures=[FIGURE])['id']}"
    alice.post(f"{address}/predict")
    work()
    for kind, start in FIRST_BYTES.items():
        file = victor.get(f"{address}/export/{kind}")
        assert file.status_code == 200 and file.content.startswith(start), kind
        assert file["Content-Disposition"] == f'attachment; filename="two-by-two.{kind}"'


def test_an_export_of_what_is_not_there_is_refused(alice: Browser) -> None:
    address = f"/experiments/{created(alice, figures=[FIGURE])['id']}"
    assert "choose one of toml, csv" in refused(alice.get(f"{address}/export/docx"), 422)
    assert "it has latency" in refused(alice.get(f"{address}/export/svg", figure="speed"), 422)
    assert "it has latency" in refused(alice.get(f"{address}/export/tex", table="speed"), 422)
    assert "choose one of ieee-1" in refused(alice.get(f"{address}/export/svg", size="a4"), 422)
    empty = f"/experiments/{created(alice)['id']}"
    assert "it has no figures" in refused(alice.get(f"{empty}/export/pdf"), 422)


def test_time_place_and_kind_of_the_changes_of_the_base_can_be_factors(alice: Browser) -> None:
    """And each of them is one that points can be made with."""
    drop = {"kind": "drop_device", "device": "shelf", "at_s": 1.5}
    base = {**BASE, "strategy": "gpipe", "scenario": {"changes": [drop]}}
    offered = alice.post("/experiments/factors", {"base": base}).json()
    found = {one["path"]: one for one in offered if one["group"] == "Failures and changes"}
    assert [one["current"] for one in found.values()] == ["none", 1.5, None, None, "shelf", "drop_device"]
    levels = {"at_s": [1e-6, 5.0], "device": ["shelf", "window"], "kind": ["drop_device", "freeze_device"]}
    factors = [
        {"name": one["name"], "path": path, "values": levels[path.rpartition(".")[2]]}
        for path, one in found.items()
        if path.rpartition(".")[2] in levels
    ]
    address = f"/experiments/{created(alice, base=base, factors=factors)['id']}"
    alice.post(f"{address}/predict")
    work()
    numbers = alice.get(address).json()["progress"]["predicted"]
    rows = alice.get(f"{address}/rows").json()["rows"]
    late = [row for row in rows if row["coordinates"][factors[0]["name"]] == 5.0]
    assert (numbers["done"], numbers["missed"], len(late)) == (8, 4, 4)
    assert all(row["reason"].startswith("Never took place, since the run had ended after") for row in late)


def test_the_composed_table_is_exported_with_its_own_value_and_the_numbers_of_the_screen(
    alice: Browser,
) -> None:
    address = f"/experiments/{created(alice, figures=[FIGURE])['id']}"
    alice.post(f"{address}/predict")
    work()
    table = {"name": "pivot", "rows": ["rate"], "columns": ["strategy"], "metric": "ttft_s"}
    shown = alice.post(f"{address}/table", {"table": table}).json()
    file = alice.get(f"{address}/export/csv", table=json.dumps(table))
    read = list(csv.DictReader(io.StringIO(file.content.decode())))
    values = [cell["value"] for row in shown["rows"] for cell in row["cells"]]
    assert [float(row["Time to first token (s)"]) for row in read] == values and len(values) == 4
    latex = alice.get(f"{address}/export/tex", table=json.dumps(table)).content.decode()
    assert "Time to first token in " in latex
    wrong = json.dumps({**table, "rows": ["speed"]})
    assert "there is no factor speed" in refused(alice.get(f"{address}/export/tex", table=wrong), 422)


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
    assert sum(paper["figures"] for paper in found["papers"]) == 1038
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
    known = {metric["name"] for metric in alice.get("/metrics").json()}
    for row in alice.get(f"{address}/rows").json()["rows"]:
        plain = {name for name in row["metrics"] if not name.startswith("method.") and "[" not in name}
        assert {"latency_s", "ttft_s", "link_bytes", "energy_j"} <= plain <= known


# Editing ------------------------------------------------------------------------------------------
def test_a_figure_or_a_table_that_is_added_shows_the_rows_that_are_there(alice: Browser) -> None:
    """What says which points there are is the same: nothing is to be computed again."""
    address = f"/experiments/{created(alice)['id']}"
    alice.post(f"{address}/predict")
    work()
    shown = fields(figures=[FIGURE | {"name": "kept"}], tables=[TABLE | {"name": "kept"}])
    edited = alice.put(address, {"experiment": shown, "version": 1}).json()
    assert (edited["version"], edited["started_version"], edited["done"]) == (2, 2, 4)
    found = alice.get(f"{address}/analysis").json()
    (panel,) = found["figures"][0]["panels"]
    assert len(panel["lines"]) == 2 and len(found["tables"][0]["rows"]) == 2
    other = alice.put(address, {"experiment": shown | {"seeds": [0, 1]}, "version": 2}).json()
    assert (other["version"], other["started_version"]) == (3, 2)


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
