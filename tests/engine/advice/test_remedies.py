"""What makes methods differ that come to one plan: on a cluster where one device is enough for the model."""

from __future__ import annotations

import pytest

from engine.advice.assess import assess
from engine.advice.remedies import Remedy, remedies
from engine.domain.scenario import DropDevice, Scenario
from engine.domain.spec import RunSpec
from tests.support.web import run_spec

METHODS = ("single", "gpipe", "megatron")
SPECS = [run_spec(strategy=name, model="demo-lm") for name in METHODS]


def assess_all(specs: list[RunSpec]) -> list[object]:
    return [assess(spec) for spec in specs]


def found(specs: list[RunSpec]) -> list[Remedy]:
    return list(remedies(specs, (), assess_all))  # type: ignore[arg-type]


def test_with_less_memory_than_one_device_needs_the_methods_differ_and_that_is_predicted_again() -> None:
    (alone,) = {assess(spec).devices for spec in SPECS}
    assert alone == ("desk",), "as drawn, all of them compute on desk"
    (remedy,) = (one for one in found(SPECS) if one.cluster)
    assert remedy.words.endswith("of memory on every device") and "gpipe" in remedy.methods
    again = [assess(spec.model_copy(update={"cluster": remedy.cluster})) for spec in SPECS[1:]]
    assert all(len(row.devices) > 1 for row in again)


def test_a_remedy_of_a_failure_that_nothing_felt_lets_the_device_that_fails_compute() -> None:
    changes = (DropDevice(at_s=0.001, device="window"),)
    specs = [spec.model_copy(update={"scenario": Scenario(changes=changes)}) for spec in SPECS]
    for remedy in found(specs):
        runs = [spec.model_copy(update={"cluster": remedy.cluster or spec.cluster}) for spec in specs]
        assert any("window" in assess(run).devices for run in runs)


@pytest.mark.parametrize("method", METHODS)
def test_one_method_alone_has_nothing_to_differ_from(method: str) -> None:
    assert found([run_spec(strategy=method, model="demo-lm")]) == []
