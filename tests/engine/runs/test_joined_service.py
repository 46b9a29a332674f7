"""Requests that people send while others are answered join them, in real processes, with proven tokens."""

import json

import pytest

from engine.domain.report import RunReport
from tests.support.joined_service import JOINS, LAST, LEAVES, LONG, STOPS, WITH_A_PAUSE_TO_JOIN


@pytest.mark.parametrize(
    ("strategy", "scheduler", "chosen"),
    [
        ("gpipe", "auto", "continuous"),
        ("single", "chunked", "chunked"),
        ("disaggregated", "auto", "disaggregated"),
    ],
)
def test_who_asks_while_others_are_answered_joins_leaves_and_survives_a_device(
    strategy, scheduler, chosen, in_a_copy, tmp_path
):
    in_a_copy("joined_service", tmp_path / "result.json", strategy, scheduler)
    found = json.loads((tmp_path / "result.json").read_text())
    report = RunReport.model_validate(found["report"])
    assert report.outcome.kind == "finished", report.outcome
    assert report.spec.workload.scheduler == chosen
    assert report.correctness.ok, report.correctness
    answered = [request.answered_s is not None for request in report.requests]
    assert answered[:4] == [True, True, False, True]
    tokens = [request.token_s for request in report.requests]
    assert len(tokens[LONG]) == WITH_A_PAUSE_TO_JOIN and len(tokens[JOINS]) == 16
    assert all(3 <= len(tokens[one]) < WITH_A_PAUSE_TO_JOIN for one in (LEAVES, STOPS))
    first_s, last_s = ([one.arrival_s + one.token_s[at] for one in report.requests] for at in (0, -1))
    assert first_s[LONG] < first_s[JOINS] < last_s[JOINS] < last_s[LONG]
    assert 25 <= len(tokens[LAST]) <= 30
    assert max(len(step) for step in found["steps"]) >= 3
    assert report.recoveries or strategy == "single"
