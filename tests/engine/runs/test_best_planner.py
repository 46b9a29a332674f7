"""What a report says of planner=best. A far board costs more than it saves: one board is the best plan."""

from __future__ import annotations

from typing import Any

import pytest

from engine.domain.cluster import ClusterSpec
from engine.domain.report import Outcome, RunReport
from engine.domain.scenario import DropDevice, Scenario, SlowDevice
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.reports.finding import finding_of
from engine.runs import best_planner, conclude
from engine.runs.best_planner import with_best_planner
from engine.runs.conclude import RealResult, report_of
from engine.runs.predict import predict, prepare, simulate
from engine.runs.predictions import before_the_start

UNDISTURBED = Scenario()
BOARD: dict[str, Any] = {"memory_bytes": 1e9, "memory_byte_per_s": 1e9, "flop_per_s": 2e9}


def spec_of(strategy: str, bit_per_s: float = 1e6, new_tokens: int = 3, **params: Any) -> RunSpec:
    """Two equal boards over a slow link."""
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    devices = [{"name": name, **BOARD} for name in "ab"]
    links = [{"a": "a", "b": "b", "bit_per_s": bit_per_s, "delay_s": 0.001}]
    return RunSpec(
        cluster=ClusterSpec(name="two", source="a", devices=devices, links=links),
        model=model,
        weights=weights,
        strategy=strategy,
        params=params,
        workload=Workload(prompt_tokens=8, new_tokens=new_tokens),
        dilation=2.0,
    )


def concluded(spec: RunSpec, scenario: Scenario = UNDISTURBED) -> RunReport:
    """The report of a real run, whose trace is a simulated one."""
    trace, _ = simulate(prepare(spec.model_copy(update={"scenario": scenario})))
    stats = {"operations": 9, "late": 0, "errors": (0.0,), "used": (0.1,), "target_s": 1.0}
    result = RealResult(trace, Outcome(), scenario.changes, {"a": stats}, 0.1)
    return report_of(prepare(spec), result, 2.0, [], "loopback")


@pytest.mark.parametrize("strategy", ["galaxy", "deepspeed"])
def test_a_report_of_the_papers_rule_says_what_the_best_plan_is_predicted_to_take(strategy: str) -> None:
    alone_s = predict(spec_of("single")).latency_s
    predicted = with_best_planner(predict(spec_of(strategy)))
    assert predicted.with_best_planner_s == pytest.approx(alone_s, rel=0.01)
    gain = predicted.latency_s / alone_s
    assert gain > 2, "a case in which it matters"
    assert f"would save {100 * (1 - 1 / gain):.0f} %" in finding_of(predicted).sentences[-1]
    real = concluded(spec_of(strategy))
    assert real.with_best_planner_s == predicted.with_best_planner_s
    assert any("(planner=best) would save" in sentence for sentence in finding_of(real).sentences)


@pytest.mark.parametrize(
    "spec",
    [
        spec_of("single"),
        spec_of("galaxy", planner="best"),
        spec_of("gpipe"),
        spec_of("edgeshard"),  # its rule leaves the far board out, too
    ],
    ids=["no planner", "best already", "best by default", "no gain"],
)
def test_other_reports_say_nothing_of_it(spec: RunSpec) -> None:
    report = with_best_planner(predict(spec))
    assert report.with_best_planner_s is None
    assert "planner=best" not in " ".join(finding_of(report).sentences)


def test_a_rule_that_was_given_goes_with_the_rule() -> None:
    assert with_best_planner(predict(spec_of("gpipe", by="even"))).with_best_planner_s is not None


def test_the_best_plan_meets_the_changes_of_the_run() -> None:
    """The far board goes at once: the best plan, which does not use it, has nothing to recover."""
    spec = spec_of("galaxy", new_tokens=6)
    drop = DropDevice(at_s=predict(spec).latency_s / 3, device="b")
    report = concluded(spec, Scenario(changes=(drop,)))
    known = report.predictions.with_all_changes_known
    assert report.recoveries and known is not None and report.with_best_planner_s is not None
    assert report.with_best_planner_s == pytest.approx(
        predict(spec_of("single", new_tokens=6)).latency_s, rel=0.01
    )
    assert report.with_best_planner_s < known.latency_s


def test_what_slows_the_run_slows_the_best_plan_too() -> None:
    slowed = Scenario(changes=(SlowDevice(at_s=0.0, device="a", factor=5.0),))
    alone = spec_of("single").model_copy(update={"scenario": slowed})
    report = concluded(spec_of("galaxy"), slowed)
    assert report.with_best_planner_s == pytest.approx(predict(alone).latency_s, rel=0.01)
    assert predict(alone).latency_s > 2 * predict(spec_of("single")).latency_s


def test_a_long_run_is_not_predicted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_planner, "MOST_STEPS", 5)
    assert with_best_planner(predict(spec_of("galaxy"))).with_best_planner_s is None


def test_a_cluster_too_large_for_the_search_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 128 devices the search took longer than the run."""
    predicted = predict(spec_of("galaxy"))
    monkeypatch.setattr(best_planner, "MOST_DEVICES", 1)
    assert with_best_planner(predicted).with_best_planner_s is None


@pytest.mark.parametrize(
    ("changes", "again"), [((), 0), ((SlowDevice(at_s=0.0, device="a", factor=2.0),), 1)]
)
def test_a_run_in_which_nothing_unforeseen_happened_is_not_predicted_twice(
    monkeypatch: pytest.MonkeyPatch, changes: tuple[Any, ...], again: int
) -> None:
    spec = spec_of("single")
    prepared = prepare(spec)
    trace, outcome = simulate(prepared)
    played: list[Scenario] = []
    known = conclude.played_again
    monkeypatch.setattr(conclude, "played_again", lambda *given: played.append(given[1]) or known(*given))
    stats = {"operations": 9, "late": 0, "errors": (0.0,), "used": (0.1,), "target_s": 1.0}
    result = RealResult(trace, Outcome(), changes, {"a": stats}, 0.1)
    before = before_the_start(prepared, trace, outcome)
    report = report_of(prepared, result, 2.0, [], "loopback", before)
    assert len(played) == again
    first, last = report.predictions.before_the_start, report.predictions.with_all_changes_known
    assert first is not None and last is not None and (last.latency_s > first.latency_s) is bool(again)
