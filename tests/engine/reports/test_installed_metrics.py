"""Figures of installed packages: in every table like our own, and what is wrong with one is a sentence."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.plugins.installed import Installed
from engine.reports.metric import Metric
from engine.reports.metrics import BUILT_IN, values_of
from engine.reports.outside import figures_of, installed_metrics
from engine.runs.predict import predict
from tests.devtools.rooms import ROOT
from tests.support.outside import edgeloom, install
from tests.support.small_cases import GPT2, star

GUIDE = (ROOT / "docs" / "guides" / "own-data.md").read_text(encoding="utf-8")
GAPS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)[0]
ENTRIES = "worst_gap_s = gaps:worst_gap_s\nmessages = gaps:messages"
"""The module of the guide and its entry points: a figure of the report, and one of the trace."""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("LOOM_METRICS", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    sys.modules.pop("gaps", None)


def write_metrics(site: Path, text: str = GAPS, entries: str = ENTRIES) -> Installed[Metric]:
    (site / "gaps.py").write_text(text, encoding="utf-8")
    install(site, entries, "token-gaps", "edgeloom.metrics")
    return installed_metrics({metric.name for metric in BUILT_IN})


@pytest.fixture(scope="module")
def report() -> RunReport:
    return predict(RunSpec(cluster=star([1e10, 2e10]), model=GPT2, strategy="gpipe"))


def test_a_figure_of_a_report_and_one_of_its_trace_have_values(site: Path, report: RunReport) -> None:
    found = write_metrics(site)
    assert found.unusable == () and set(found.rows) == {"worst_gap_s", "messages"}
    kept = report.model_copy(update={"figures": figures_of(report, [], list(found.rows.values()))})
    gaps = [b - a for a, b in zip(report.requests[0].token_s, report.requests[0].token_s[1:], strict=False)]
    assert values_of(kept, list(found.rows.values())) == {"worst_gap_s": max(gaps), "messages": 0.0}


def test_a_prediction_has_them_and_compare_shows_them(site: Path) -> None:
    write_metrics(site)
    words = ("lab-3", "--model", "tiny-gpt2", "--strategy", "voltage", "--new-tokens", "3")
    done = edgeloom(site, "predict", *words, "--json", "one.json", path=str(site))
    assert done.returncode == 0, done.stderr
    assert "longest wait for a token" in done.stdout.lower()
    assert json.loads((site / "one.json").read_text())["figures"]["messages"] > 0
    compared = edgeloom(site, "compare", "one.json", "one.json", path=str(site)).stdout
    assert "messages sent" in compared.lower()
    assert "worst_gap_s" in edgeloom(site, "list", "metrics", path=str(site)).stdout


@pytest.mark.parametrize(
    ("text", "entries", "says"),
    [
        ("1 / 0\n", "worst_gap_s = gaps:worst_gap_s", "ZeroDivisionError"),
        (GAPS, "worst_gap_s = gaps:worst_gap", "expected an edgeloom.metric.Metric"),
        (GAPS, "worst_gap = gaps:worst_gap_s", "give entry point and figure one name"),
        (GAPS, "latency_s = gaps:worst_gap_s", "there is a figure of this name already"),
        (GAPS.replace('"lower"', '"small"'), "worst_gap_s = gaps:worst_gap_s", "ValidationError"),
    ],
)
def test_a_figure_that_is_wrong_is_left_out_with_a_sentence(
    site: Path, text: str, entries: str, says: str
) -> None:
    found = write_metrics(site, text, entries)
    (wrong,) = found.unusable
    assert found.rows == {} and says in wrong.reason
    assert wrong.reason.startswith("figure ") and wrong.reason.endswith(".") and "\n" not in wrong.reason


def test_a_figure_that_raises_has_no_value_and_the_log_says_once_in_which_line(
    site: Path, report: RunReport, caplog: pytest.LogCaptureFixture
) -> None:
    raising = GAPS.replace("    return max", "    1 / 0\n    return max").replace(
        "sum(1", "trace[1] or sum(1"
    )
    rows = list(write_metrics(site, raising).rows.values())
    with caplog.at_level(logging.WARNING):
        assert values_of(report, rows) == values_of(report, rows) == {}
        assert figures_of(report, [], rows) == {}
    assert len(caplog.messages) == 2
    assert "figure worst_gap_s of the package token-gaps: has no value: ZeroDivisionError" in caplog.text
    assert f"({site / 'gaps.py'}, line 7)" in caplog.text


@pytest.mark.parametrize("value", ["float('nan')", "float('inf')", "'many'", "None"])
def test_what_is_no_finite_number_is_no_figure(site: Path, report: RunReport, value: str) -> None:
    """A report with such a number could not be read again."""
    given = GAPS.replace("return max", f"return {value}\n    return max").replace(
        "return sum", f"return {value}\n    return sum"
    )
    rows = list(write_metrics(site, given).rows.values())
    assert values_of(report, rows) == figures_of(report, [], rows) == {}
