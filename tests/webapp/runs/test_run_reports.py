"""Reports of runs: their figures in lists, exports, replays and comparisons."""

from __future__ import annotations

import csv
import io
from itertools import pairwise
from typing import Any

import pyarrow.parquet as parquet
import pytest
from django.utils import timezone

import topologies
from edgeloom import Client
from engine.domain.report import PairReport
from engine.domain.stored import read_report
from engine.domain.trace import Span
from tests.support.web import Browser, recorded
from tests.webapp.runs.test_runs import finished, started
from webapp.runs import api
from webapp.runs.exports import report_csv
from webapp.runs.models import Run

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]


def test_a_finished_run_shows_its_figures_in_the_list(alice: Browser, live_redis) -> None:
    run_id = finished(alice)
    _, report = recorded()
    (row,) = alice.get("/runs").json()
    assert (row["status"], row["outcome"]) == ("finished", "finished")
    assert row["figures"]["latency_s"] == pytest.approx(report.latency_s)
    assert row["figures"]["tokens_per_s"] == pytest.approx(report.tokens_per_s)
    assert timezone.datetime.fromisoformat(row["finished_at"]).tzinfo is not None
    assert row["figures"]["link_bytes"] == sum(link.bytes for link in report.links)
    assert row["params"]["new_tokens"] == report.spec.workload.new_tokens
    assert alice.get(f"/runs/{run_id}").json()["report"]["latency_s"] == row["figures"]["latency_s"]


def test_the_report_is_exported_as_json_csv_and_trace(alice: Browser, live_redis) -> None:
    run_id = finished(alice)
    _, report = recorded()
    exported = alice.get(f"/runs/{run_id}/report.json")
    assert read_report(exported.json(), "export").needed().latency_s == report.latency_s
    rows = list(csv.DictReader(io.StringIO(alice.get(f"/runs/{run_id}/report.csv").content.decode())))
    figures = {row["column"]: row["value"] for row in rows if row["table"] == "run"}
    assert float(figures["latency_s"]) == report.latency_s
    devices = {row["row"] for row in rows if row["table"] == "devices"}
    assert devices == {device.name for device in report.devices}
    trace = alice.get(f"/runs/{run_id}/trace.json").json()["traceEvents"]
    events, _ = recorded()
    assert sum(e["ph"] == "X" for e in trace) == sum(isinstance(e, Span) for e in events)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ('=HYPERLINK("http://x")', '\'=HYPERLINK("http://x")'),
        ("+1 and more", "'+1 and more"),
        ("-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-1.5", "-1.5"),
        ("1 = 1", "1 = 1"),
    ],
)
def test_no_text_of_a_report_is_a_formula_in_its_table(text: str, cell: str) -> None:
    _, report = recorded()
    said = report.requests[0].model_copy(update={"text": text})
    workload = report.spec.workload.model_copy(update={"prompt": text})
    spec = report.spec.model_copy(update={"workload": workload})
    told = report.model_copy(update={"requests": (said, *report.requests[1:]), "spec": spec})
    rows = list(csv.DictReader(io.StringIO(report_csv(told))))
    assert [row["value"] for row in rows if row["column"] == "workload.prompt"] == [cell]
    (first, *_) = (row for row in rows if (row["table"], row["column"]) == ("requests", "text"))
    assert first["value"] == cell


def test_chosen_runs_are_exported_as_a_table(alice: Browser, live_redis) -> None:
    over, waiting, _ = finished(alice), started(alice, name="=cmd()"), started(alice)
    path = f"/runs/export/{{}}?ids={over},{waiting}"
    text = alice.get(path.format("csv")).content.decode()
    newest, oldest = csv.DictReader(io.StringIO(text))
    assert (newest["id"], newest["name"], newest["latency_s"]) == (str(waiting), "'=cmd()", "")
    assert float(oldest["latency_s"]) == recorded()[1].latency_s
    assert oldest["params.new_tokens"] == str(recorded()[1].spec.workload.new_tokens)
    table = parquet.read_table(io.BytesIO(alice.get(path.format("parquet")).content))
    assert table.column("id").to_pylist() == [waiting, over]
    assert table.column("name").to_pylist()[0] == "=cmd()"
    assert alice.get("/runs/export/docx?ids=1").status_code == 422


def test_a_run_without_report_has_nothing_to_export(alice: Browser, live_redis) -> None:
    run_id = started(alice)
    for path in ("report.json", "report.csv"):
        response = alice.get(f"/runs/{run_id}/{path}")
        assert response.status_code == 409
        assert "has no report: it is queued" in response.json()["detail"]


def test_a_replay_repeats_what_happened_under_another_strategy(alice: Browser, live_redis) -> None:
    link = topologies.load("lab-3").links[0].name
    happened = {
        "changes": [{"kind": "set_rate", "at_s": 0.01, "link": link, "bit_per_s": 5e7, "direction": "both"}]
    }
    run_id = finished(alice, scenario=happened, params={"ratio": "even"})
    again = alice.post(f"/runs/{run_id}/replay", {"strategy": "single", "name": "again"})
    assert again.status_code == 201
    run = alice.get(f"/runs/{again.json()['id']}").json()
    assert (run["strategy"], run["name"], run["spec"]["params"]) == ("single", "again", {})
    assert run["spec"]["scenario"] == happened
    assert run["spec"]["workload"] == alice.get(f"/runs/{run_id}").json()["spec"]["workload"]


def test_a_replay_under_another_strategy_does_not_keep_a_name_that_is_not_true(
    alice: Browser, live_redis
) -> None:
    run_id = finished(alice, name="Megatron is slow")
    for body, name in (({}, "Megatron is slow"), ({"strategy": "single"}, "single on lab-3")):
        again = alice.post(f"/runs/{run_id}/replay", body).json()["id"]
        assert alice.get(f"/runs/{again}").json()["name"] == name


def test_a_replay_with_a_bad_field_is_refused(alice: Browser, live_redis) -> None:
    run_id = finished(alice)
    assert alice.post(f"/runs/{run_id}/replay", {"strategy": "magic"}).status_code == 422
    assert alice.post(f"/runs/{run_id}/replay", {"seed": -1}).json()["fields"][0]["path"] == "seed"


def test_runs_are_compared_against_the_baseline_run(alice: Browser, live_redis) -> None:
    one, two = finished(alice), finished(alice, strategy="single")
    answer = alice.get("/compare", ids=f"{one},{two}", baseline=two).json()
    assert [run["id"] for run in answer["runs"]] == [one, two] and answer["baseline"] == two
    metric = next(row for row in answer["metrics"] if row["name"] == "latency_s")
    assert metric["deltas"][1] == 0
    ours, base = metric["values"]
    assert metric["deltas"][0] == pytest.approx((ours - base) / base)
    differing = {row["path"]: row["values"] for row in answer["params"] if row["differs"]}
    assert differing["strategy"] == ["voltage", "single"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"ids": "1"}, 404),
        ({"ids": "one,two"}, 422),
        ({"ids": "{id}"}, 422),
        ({"ids": "{id},{id}"}, 422),
        ({"ids": "{id},{other}", "baseline": 999}, 422),
    ],
)
def test_a_bad_comparison_is_refused(alice: Browser, live_redis, query: dict[str, Any], status: int) -> None:
    one, other = finished(alice), finished(alice)
    filled = {key: str(value).format(id=one, other=other) for key, value in query.items()}
    if status == 404:
        filled["ids"] = f"{other + 1},{other + 2}"
    assert alice.get("/compare", **filled).status_code == status


def test_of_more_runs_than_are_compared_no_report_is_read(
    alice: Browser, live_redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.services, "find", lambda run_id: pytest.fail("a run is read"))
    for path in ("/compare", "/compare/figure"):
        refused = alice.get(path, ids=",".join(map(str, range(1, 52))))
        assert refused.status_code == 422 and "Got 51 runs to compare" in refused.json()["detail"]


def test_groups_of_runs_are_averaged_by_the_server(alice: Browser, live_redis) -> None:
    runs = [finished(alice) for _ in range(3)]
    for run_id, latency_s in zip(runs, (1.0, 2.0, 3.0), strict=True):
        Run.objects.filter(pk=run_id).update(latency_s=latency_s, figures={"energy_j": 4.0})
    both, single = alice.post("/runs/averages", {"groups": [runs, [runs[0], 999_999]]}).json()
    # 1, 2, 3: mean 2, standard deviation 1, standard error 1/√3, t(2) = 4.303
    assert both["latency_s"]["margin"] == pytest.approx(4.303 / 3**0.5)
    assert (both["latency_s"]["mean"], both["latency_s"]["count"], both["energy_j"]["margin"]) == (2, 3, 0)
    assert (single["latency_s"]["mean"], single["latency_s"]["margin"]) == (1, None)


def test_averages_of_more_runs_than_a_list_shows_are_refused(alice: Browser, live_redis) -> None:
    refused = alice.post("/runs/averages", {"groups": [[1] * 3000, [2] * 2001]})
    assert refused.status_code == 422 and "have 5001 runs, expected at most 5000" in refused.json()["detail"]


def test_the_critical_path_of_a_stored_run_covers_its_latency_without_a_gap(
    alice: Browser, live_redis
) -> None:
    run_id = finished(alice)
    path = alice.get(f"/runs/{run_id}/critical-path").json()
    _, report = recorded()
    assert all(later["start_s"] == piece["end_s"] for later, piece in pairwise(path))
    assert path[0]["end_s"] - path[-1]["start_s"] == pytest.approx(report.latency_s)
    computing = sum(piece["end_s"] - piece["start_s"] for piece in path if piece["kind"] == "compute")
    assert computing == pytest.approx(report.attribution.compute_s)


def test_the_figure_of_compared_runs_is_that_of_an_experiment(alice: Browser, live_redis) -> None:
    one, two = finished(alice), finished(alice, strategy="single")
    made = alice.get("/compare/figure", ids=f"{one},{two}", **{"as": "bars", "logy": "1"}).json()
    assert (made["view"]["x"], made["view"]["kind"], made["view"]["log_y"]) == ("strategy", "bars", True)
    marks = {
        spot["x"]: spot["y"]
        for panel in made["figure"]["panels"]
        for line in panel["lines"]
        for spot in line["spots"]
    }
    compared = alice.get("/compare", ids=f"{one},{two}").json()["metrics"]
    latency_s = next(row["values"] for row in compared if row["name"] == "latency_s")
    assert sorted(marks.values()) == sorted(latency_s) and list(marks) == sorted(marks)
    assert alice.get("/compare/figure", ids=f"{one},{two}", **{"as": "pie"}).status_code == 422


def test_a_notebook_s_table_of_runs_has_a_column_per_figure(alice: Browser, live_redis, monkeypatch) -> None:
    run_id = finished(alice)
    monkeypatch.setattr(Client, "runs", lambda self, **filters: alice.get("/runs").json())
    table = Client("http://localhost", "token").runs_frame()
    assert table.loc[run_id, "latency_s"] == recorded()[1].latency_s


def test_the_table_has_the_network_between_boards_drawn_beside_measured() -> None:
    _, report = recorded()
    figures = {"drawn_bit_per_s": 1e8, "drawn_delay_s": 0.0, "drawn_loss_frac": 0.0}
    measured = {"measured_bit_per_s": 9.1e7, "measured_delay_s": 2e-4, "measured_loss_frac": 0.01}
    pair = PairReport(sender="a", receiver="b", **figures, **measured)
    rows = csv.DictReader(io.StringIO(report_csv(report.model_copy(update={"pairs": (pair,)}))))
    cells = {row["column"]: row["value"] for row in rows if (row["table"], row["row"]) == ("pairs", "a → b")}
    assert {name: float(cells[name]) for name in (*figures, *measured)} == figures | measured
