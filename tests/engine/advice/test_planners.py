"""What planner=best would give the methods of an experiment."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.advice.assess import assess
from engine.advice.planners import PlannerGain, in_words, planner_gains, runs_by_rule
from engine.advice.values import Assessment
from engine.domain.cluster import ClusterSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict


def spec_of(strategy: str, mbit_per_s: float, **params: str) -> RunSpec:
    board = {"memory_bytes": 1e9, "memory_byte_per_s": 1e9, "flop_per_s": 2e9}
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    cluster = ClusterSpec(
        name="two",
        source="a",
        devices=[{"name": name, **board} for name in "ab"],
        links=[{"a": "a", "b": "b", "bit_per_s": mbit_per_s * 1e6}],
    )
    work = Workload(prompt_tokens=8, new_tokens=3)
    return RunSpec(
        cluster=cluster, model=model, weights=weights, strategy=strategy, params=params, workload=work
    )


def assess_all(specs: Sequence[RunSpec]) -> list[Assessment]:
    return [assess(spec) for spec in specs]


def test_gains_are_those_of_whole_predictions_at_the_first_and_last_point() -> None:
    rates = (1, 2, 4, 8, 16)
    specs = [spec_of(name, rate) for rate in rates for name in ("single", "galaxy", "edgeshard")]
    gains = [predict(spec_of("galaxy", rate)).latency_s / predict(specs[0]).latency_s for rate in rates]
    (found,) = planner_gains(specs, assess_all)
    assert found.strategy == "galaxy"
    assert found.most == pytest.approx(gains[0], rel=0.01) and found.least == pytest.approx(
        gains[-1], rel=0.01
    )
    assert found.most > 2 * found.least > 2, "a case with two ends"


def test_a_point_at_which_the_rule_is_as_good_counts_as_no_gain() -> None:
    def gained(specs: Sequence[RunSpec]) -> list[Assessment]:
        return [
            Assessment(strategy=spec.strategy, lossless=True, reason="", total_s=2.0, best_planner_s=best_s)
            for spec, best_s in zip(specs, (0.5, None), strict=True)
        ]

    (found,) = planner_gains([spec_of("galaxy", rate) for rate in (1, 2)], gained)
    assert (found.least, found.most) == (1.0, 4.0)


def test_of_every_method_at_most_three_runs_are_planned_again_each_once() -> None:
    specs = [spec_of("galaxy", rate) for rate in (1, 1, 2, 4, 8, 16)]
    specs += [spec_of("galaxy", 1, planner="best"), spec_of("single", 1), spec_of("deepspeed", 2)]
    assert runs_by_rule(specs) == (specs[0], specs[3], specs[5], specs[-1])


def test_the_sentence_names_one_number_where_both_ends_are_alike() -> None:
    gains = [PlannerGain(strategy="galaxy", least=1.02, most=3.21)]
    assert in_words(gains) == "With planner=best, by prediction: galaxy 1.0 to 3.2 times as fast."
    gains.append(PlannerGain(strategy="deepspeed", least=2.01, most=2.02))
    assert in_words(gains).endswith("galaxy 1.0 to 3.2 times, deepspeed 2.0 times as fast.")
    assert in_words([]) == ""
