"""A run whose times are not valid is repeated with twice the dilation, if none was asked for."""

from __future__ import annotations

from typing import Any

import pytest

import topologies
from emulator.session.until_valid import until_valid
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict


@pytest.fixture(scope="module")
def spec() -> RunSpec:
    workload = Workload(prompt_tokens=2, new_tokens=1)
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    cluster = topologies.load("lab-3")
    return RunSpec(cluster=cluster, model=model, weights=weights, workload=workload, strategy="single")


@pytest.mark.parametrize(
    ("asked", "verdicts", "dilations"),
    [
        ("auto", [True], [8.0]),
        ("auto", [False, True], [8.0, 16.0]),
        ("auto", [False, False, False, True], [8.0, 16.0, 32.0]),
        ("auto", [None], [8.0]),
        (4.0, [False, True], [4.0]),
    ],
)
def test_another_attempt_has_twice_the_dilation(
    spec: RunSpec, asked: Any, verdicts: list[bool | None], dilations: list[float]
) -> None:
    used: list[float] = []
    report = predict(spec)

    def run(attempt: RunSpec) -> RunReport:
        used.append(8.0 if attempt.dilation == "auto" else float(attempt.dilation))
        fidelity = report.fidelity.model_copy(update={"valid": verdicts[len(used) - 1]})
        return report.model_copy(update={"fidelity": fidelity, "dilation": used[-1]})

    found = until_valid(run, spec.model_copy(update={"dilation": asked}))
    assert used == dilations
    assert found.fidelity.valid == verdicts[len(used) - 1]
