"""One stored run has the same figures on the command line, in CSV, lists, report, Compare and experiments."""

from __future__ import annotations

import argparse
import csv
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.cli import compare_command
from engine.cli.tables import show_report
from engine.domain.numbers_as_text import shown
from engine.domain.report import RunReport
from engine.domain.stored import read_report
from engine.experiments.results.rows import result_of
from engine.reports import metrics
from engine.reports.metric import of_run
from tests.support.web import Browser
from tests.webapp.runs.test_runs import finished

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]

ADDED = of_run(
    "tokens",
    "Tokens in all",
    "",
    "higher",
    lambda report: sum(len(request.token_s) for request in report.requests),
    shown=("report", "list"),
)


def by_hand(report: RunReport) -> dict[str, float]:
    """From the times of tokens, and what each device and link has."""
    (request,) = report.requests
    later = [after - before for before, after in pairwise(request.token_s)]
    energy_j = sum(part.energy_j for part in (*report.devices, *report.links))
    return {
        "latency_s": request.token_s[-1],
        "ttft_s": request.token_s[0],
        "tpot_s": sum(later) / len(later),
        "tokens_per_s": len(request.token_s) / request.token_s[-1],
        "energy_j": energy_j,
        "edp_j_s": energy_j * request.token_s[-1],
        "link_bytes": sum(link.bytes for link in report.links),
        "peak_memory_bytes": max(device.peak_memory_bytes for device in report.devices),
        "tokens": len(request.token_s),
    }


def test_the_cells_of_all_surfaces_are_equal_and_an_added_row_is_among_them(
    alice: Browser,
    live_redis: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(metrics, "METRICS", (*metrics.METRICS, ADDED))
    run_id, other_id = finished(alice), finished(alice)
    document = alice.get(f"/runs/{run_id}/report.json").json()
    report = read_report(document, "the report").needed()
    expected = by_hand(report)
    table = csv.DictReader(io.StringIO(alice.get(f"/runs/{run_id}/report.csv").content.decode()))
    in_csv = {
        row["column"]: float(row["value"]) for row in table if (row["table"], row["column"]) in wanted()
    }
    assert in_csv == pytest.approx(expected)
    assert chosen(alice.get(f"/runs/{run_id}").json()["figures"]) == in_csv
    assert chosen(result_of(report, "d", "emulated").metrics) == in_csv
    (listed, _) = alice.get("/runs").json()
    usual = {one["name"] for one in alice.get("/metrics").json() if "list" in one["shown"]}
    assert chosen(listed["figures"]) == {name: in_csv[name] for name in in_csv if name in usual}
    compared = alice.get("/compare", ids=f"{run_id},{other_id}").json()["metrics"]
    assert chosen({row["name"]: row["values"][0] for row in compared}) == in_csv
    assert on_the_command_line(report, document, tmp_path, capsys) == in_csv


def wanted() -> set[tuple[str, str]]:
    return {("run", name) for name in NAMES}


NAMES = (
    *("latency_s", "ttft_s", "tpot_s", "tokens_per_s", "energy_j", "edp_j_s", "link_bytes"),
    *("peak_memory_bytes", "tokens"),
)


def chosen(values: dict[str, Any]) -> dict[str, float]:
    return {name: values[name] for name in NAMES if name in values}


def on_the_command_line(
    report: RunReport, document: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, float]:
    """The figures that `loom compare` gives as JSON; a report as text has the same ones rounded."""
    file = folder / "run.json"
    file.write_text(json.dumps(document))
    asked = argparse.Namespace(reports=[file, file], baseline=1, json=True)
    assert compare_command.run(asked) == 0
    values = {row["name"]: row["values"][0] for row in json.loads(capsys.readouterr().out)["metrics"]}
    text = io.StringIO()
    show_report(report, text)
    for name, unit in (("latency_s", "s"), ("ttft_s", "s"), ("energy_j", "J")):
        assert shown(values[name], unit) in text.getvalue()
    assert "tokens in all" in text.getvalue()
    return chosen(values)
