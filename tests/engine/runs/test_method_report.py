"""What a method did in a run: the report carries it, as JSON too, and the command line prints it."""

import io
import json
from typing import Literal

import pytest
from pydantic import ValidationError

from engine.cli.tables import show_report
from engine.domain.method_report import MethodReport
from engine.domain.report import RunReport
from engine.domain.scenario import DropDevice, Scenario
from engine.domain.stored import read_report, to_document
from engine.domain.trace import Mark
from engine.runs.method import method_report
from engine.runs.predict import predict
from engine.strategies.gpipe import GPipe
from tests.support.small_cases import GPT2, plan_of, spec_of, star


class PlansSeen(MethodReport):
    """When each plan began, the devices with layers in it, and the tokens in the trace."""

    kind: Literal["plans_seen"] = "plans_seen"
    began_s: tuple[float, ...]
    devices: tuple[tuple[int, ...], ...]
    tokens: int

    def lines(self):
        return (f"{len(self.began_s)} plans for {self.tokens} tokens",)


def seen(self, cluster, model, plans, trace):
    tokens = sum(isinstance(item, Mark) and item.name == "token_emitted" for item in trace)
    devices = tuple(tuple(stage.device for stage in at.plan.layout.stages) for at in plans)
    return PlansSeen(began_s=tuple(at.time_s for at in plans), devices=devices, tokens=tokens)


@pytest.fixture
def summarising(monkeypatch):
    monkeypatch.setattr(GPipe, "summarise", seen)


def spec(*changes):
    made = spec_of("gpipe", GPT2, star([1e9, 1e9, 1e9]))
    return made.model_copy(update={"scenario": Scenario(changes=changes)})


def test_a_method_without_a_report_of_its_own_has_none():
    assert predict(spec_of("single", GPT2, star([1e9]))).method is None


def test_the_first_plan_begins_at_zero_and_every_new_one_at_its_re_plan(summarising):
    usual = predict(spec())
    late_s = usual.requests[0].token_s[1]
    report = predict(spec(DropDevice(at_s=late_s, device=usual.spec.cluster.devices[2].name)))
    (recovery,) = report.recoveries
    first, second = report.method.began_s
    assert first == 0 and second == pytest.approx(recovery.at_s + recovery.detect_s + recovery.replan_s)
    assert report.method.devices[0] == (0, 1, 2) and report.method.devices[1] == (0, 1)
    assert report.method.tokens == len(report.requests[0].token_s)


def test_a_method_report_comes_back_from_json_and_from_a_stored_document(summarising):
    report = predict(spec())
    again = RunReport.model_validate(json.loads(report.model_dump_json()))
    assert again == report and type(again.method) is PlansSeen
    document = json.loads(json.dumps(to_document(report)))
    assert read_report(document, "the report").needed() == report
    del document["method"]  # what older versions stored
    assert read_report(document, "the report").needed().method is None


def test_a_method_report_of_an_unknown_kind_is_refused_with_the_known_ones(summarising):
    document = json.loads(predict(spec()).model_dump_json())
    document["method"]["kind"] = "spiral"
    with pytest.raises(
        ValidationError, match=r"method report kind 'spiral' is unknown: known are .*plans_seen"
    ):
        RunReport.model_validate(document)


def test_the_command_line_prints_the_lines_of_the_method(summarising):
    out = io.StringIO()
    report = predict(spec())
    show_report(report, out)
    assert f"1 plans for {len(report.requests[0].token_s)} tokens" in out.getvalue().splitlines()


def test_layouts_and_method_reports_do_not_share_their_kinds():
    assert "plans_seen" in MethodReport.members
    layout = plan_of(spec_of("gpipe", GPT2, star([1e9, 1e9]))).layout
    assert "plans_seen" not in type(layout).members and layout.kind not in MethodReport.members


def test_a_real_run_is_summarised_from_its_own_trace(summarising):
    made = spec()
    plan = plan_of(made)
    trace = [Mark(0.5, "token_emitted", facts={"request": 0, "index": 0, "token": 1})]
    report = method_report(made, plan, trace)
    assert isinstance(report, PlansSeen) and report.tokens == 1
