"""Drafts of a second model, or of the first layers, in both worlds: the real one measures how many are
accepted, and gives the tokens of `transformers`; told that, the simulated one does the same.
"""

from collections import Counter

import pytest

from engine.domain.events import to_json
from engine.domain.model import with_draft
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.reports.fold import fold
from engine.runs.method import method_report
from engine.runs.predict import predict, prepare, simulate
from tests.contract.test_worlds_agree import decisions_of
from tests.support.operations import operations
from tests.support.small_cases import star

CASES = {
    "itself": ("tiny-llama", "tiny-llama", {}),
    "another family": ("tiny-llama", "tiny-qwen2", {}),
    "windows": ("tiny-gemma3", "tiny-gpt2", {"requests": 3, "pattern": "bursty"}),
    "experts": ("tiny-qwen3-moe", "tiny-qwen3-moe", {"temperature": 0.8}),
    "first layers": ("tiny-llama", None, {"requests": 2, "pattern": "bursty"}),
    "first layers, drawn": ("tiny-qwen3-moe", None, {"temperature": 0.8}),
    "first layers, right to the end": ("tiny-gpt2", None, {"new_tokens": 4}),
    "queue": ("tiny-gpt2", "tiny-gpt2", {"requests": 3, "pattern": "poisson", "rate_per_s": 100.0}),
}


def spec_of(name):
    model, draft, workload = CASES[name]
    return RunSpec(
        cluster=star([1e9, 4e10, 1e10]),
        model=with_draft(
            catalogue.resolve(model)[0],
            first_layer(catalogue.resolve(draft)[0], name) if draft else None,
        ),
        strategy="speculative",
        params={} if draft else {"draft_layers": 1},
        dilation="native",
        seed=7,
        workload=Workload(**{"prompt_tokens": 11, "new_tokens": 20} | workload),
    )


def first_layer(draft, name):
    """The draft is always right where it is the model itself."""
    return draft if name == "itself" else draft.model_copy(update={"num_layers": 1})


@pytest.fixture(scope="module")
def real_runs(play_for_real):
    return play_for_real({name: spec_of(name) for name in CASES})


@pytest.mark.parametrize("name", CASES)
def test_both_worlds_do_the_same_and_the_real_one_is_right(name, real_runs):
    report, trace = real_runs[name]["report"], real_runs[name]["trace"]
    prepared = prepare(spec_of(name))
    simulated, outcome = simulate(prepared, decisions=decisions_of(trace))
    assert outcome.kind == report["outcome"]["kind"] == "finished", report["outcome"]["sentence"]
    assert report["correctness"]["ok"], report["correctness"]
    assert report["correctness"]["token_identical"]
    assert operations(to_json(simulated)) - operations(trace) == Counter()
    assert operations(trace) - operations(to_json(simulated)) == Counter()
    folded = fold(prepared.spec, prepared.plan, simulated, world="predicted", outcome=outcome)
    peaks = {device.name: device.peak_memory_bytes for device in folded.devices}
    assert peaks == {device["name"]: device["peak_memory_bytes"] for device in report["devices"]}
    measured = report["method"]
    assert method_report(prepared.spec, prepared.plan, simulated).model_dump(mode="json") == measured
    assert (measured["accepted_share"] == 1) == (name == "itself")


def test_a_measured_acceptance_is_an_input_of_the_prediction(real_runs):
    measured = real_runs["itself"]["report"]["method"]
    spec = spec_of("itself")
    model = spec.model.model_copy(update={"likely_acceptance": measured["likely_acceptance"]})
    predicted = predict(spec.model_copy(update={"model": model}))
    assert predicted.method.model_dump(mode="json") == measured
