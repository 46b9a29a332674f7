"""voltage-6 gives back what Voltage (ICDCS 2024) published for BERT-Large at 500 Mbit/s and 200 words."""

from __future__ import annotations

import pytest

import topologies
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict
from engine.strategies.registry import by_rule


def latency_s(strategy: str) -> float:
    model, weights = catalogue.resolve("bert-large", "random")
    spec = RunSpec(
        cluster=topologies.load("voltage-6"),
        model=model,
        weights=weights,
        strategy=strategy,
        params=by_rule(strategy),
        workload=Workload(prompt_tokens=200, new_tokens=0),
    )
    return predict(spec).latency_s


def test_six_machines_are_about_28_percent_faster_than_one() -> None:
    """Published: 27.9 %. The fit of the machines' rate used the same figure and the terminal's
    serial broadcast; here a machine starts its first layer while others still get their input."""
    assert latency_s("voltage") / latency_s("single") == pytest.approx(1 - 0.279, abs=0.03)


def test_tensor_parallelism_is_slower_than_one_machine_at_500_mbit() -> None:
    """By the paper's cost model 1.73 times as slow on six machines."""
    assert latency_s("megatron") / latency_s("single") == pytest.approx(1.731, rel=0.05)
