"""AdaptLink with too little memory on the primary, in both worlds: secondaries and backups."""

from collections import Counter

import pytest

from engine.domain.events import to_json
from engine.models import catalogue
from engine.reports.fold import fold
from engine.runs.predict import prepare, simulate
from tests.support.adaptlink_cases import tight
from tests.support.operations import operations

CASES = {
    "columns-gpt2": ("tiny-gpt2", {"over": 0.4}),
    "columns-bert": ("tiny-bert", {"over": 0.7, "terminal": True}),
    "columns-qwen3": ("tiny-qwen3", {"over": 0.9, "requests": 3, "pattern": "bursty"}),
    "summa-llama": ("tiny-llama", {"over": 0.7, "others": 0.5, "primary": "d0", "partition": "summa"}),
    "heads-llama": ("tiny-llama", {"over": 1.1, "others": 3, "primary": "d0", "new_tokens": 5}),
    "requests-opt": ("tiny-opt", {"over": 0.4, "requests": 2}),
}


def spec_of(name):
    family, how = CASES[name]
    model, weights = catalogue.resolve(family)
    return tight(model, **how).model_copy(update={"weights": weights, "dilation": "native"})


@pytest.fixture(scope="module")
def real_runs(play_for_real):
    return play_for_real({name: spec_of(name) for name in CASES})


@pytest.mark.parametrize("name", CASES)
def test_both_worlds_do_the_same_and_the_real_one_is_right(name, real_runs):
    report, prepared = real_runs[name]["report"], prepare(spec_of(name))
    assert prepared.plan.layout.split_layers
    assert bool(prepared.plan.layout.heads) == name.startswith("heads")
    trace, outcome = simulate(prepared)
    simulated = operations(to_json(trace))
    real = operations(real_runs[name]["trace"])
    assert outcome.kind == report["outcome"]["kind"] == "finished", report["outcome"]["sentence"]
    assert simulated - real == Counter() and real - simulated == Counter()
    assert report["correctness"]["ok"], report["correctness"]
    devices = fold(prepared.spec, prepared.plan, trace, world="predicted", outcome=outcome).devices
    peaks = {device.name: device.peak_memory_bytes for device in devices}
    assert peaks == {device["name"]: device["peak_memory_bytes"] for device in report["devices"]}
