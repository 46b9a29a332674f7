"""LIME and its baseline with streamed layers in both worlds: operations, bytes, peaks, and right answers.

Real processes and sockets on loopback, native speed.
"""

from collections import Counter

import pytest
from test_lime_memory import growing
from test_lime_run import DEEP, case, tight
from test_pipeline_offload import overfull

from engine.domain.events import to_json
from engine.runs.attempts import Attempt
from engine.runs.predict import predict, prepare, simulate
from engine.runs.rehearsal import rehearsal_of
from tests.support.operations import operations

LLAMA, BERT = DEEP["small-llama"], DEEP["small-bert"]
CASES = {
    "two-requests": case(new_tokens=4, requests=2),
    "burst-at-a-terminal": case(
        LLAMA, tight(LLAMA, (1e9, 2e9, 1e9), 2.6, terminal=True), new_tokens=3, requests=3, pattern="bursty"
    ),
    "blocks-that-stay": case(BERT, tight(BERT, (2e9, 1e9), 3.35, disk_byte_per_s=1e6), num_segments=2),
    "in-stage": overfull(LLAMA, workload={"requests": 2, "pattern": "bursty", "new_tokens": 3}),
    "parked-rows": growing(fluctuation_rows=1, new_tokens=28),
    "burst-in-batches": case(new_tokens=4, requests=4, pattern="bursty", planner="best"),
    "parked-rows-of-batches": growing(
        3.7, requests=2, pattern="bursty", planner="best", fluctuation_rows=1, new_tokens=10
    ),
    "parked-rows-of-a-burst": growing(requests=2, pattern="bursty", fluctuation_rows=1, new_tokens=10),
}
SPECS = {name: spec.model_copy(update={"dilation": "native"}) for name, spec in CASES.items()}


@pytest.fixture(scope="module")
def real_runs(play_for_real):
    return play_for_real(SPECS)


@pytest.mark.parametrize("name", SPECS)
def test_both_worlds_do_the_same(name, real_runs):
    trace, outcome = simulate(prepare(SPECS[name]))
    simulated, real = operations(to_json(trace)), operations(real_runs[name]["trace"])
    assert outcome.kind == "finished"
    assert simulated - real == Counter() and real - simulated == Counter()
    assert any(kind == "load" for _, kind, *_ in simulated), "without streamed layers this tests nothing"
    assert ("batches" in name) == (getattr(prepare(SPECS[name]).plan.layout, "micro_batch", 1) > 1)
    parks = any(tag.startswith("kv_back.") for _, kind, tag, *_ in simulated if kind == "send")
    assert parks == name.startswith("parked-rows")


def test_a_rehearsal_leaves_no_trace_and_the_run_does_what_it_does_without_one(play_for_real):
    """These methods load and evict while they run."""
    specs = {
        name: CASES[name].model_copy(update={"dilation": "auto"}) for name in ("two-requests", "in-stage")
    }
    for name, played in play_for_real(specs).items():
        prepared = prepare(specs[name])
        trace, _ = simulate(prepared)
        assert rehearsal_of(prepared, trace, Attempt(1.0, 1.0)) is not None
        assert Counter(operations(to_json(trace))) == Counter(operations(played["trace"])), name
        assert played["report"]["correctness"]["ok"], played["report"]["correctness"]


@pytest.mark.parametrize("name", SPECS)
def test_tokens_and_logits_are_those_of_the_reference(name, real_runs):
    report = real_runs[name]["report"]
    assert report["outcome"]["kind"] == "finished", report["outcome"]["sentence"]
    assert report["correctness"]["ok"], report["correctness"]
    assert report["correctness"]["max_rel_error"] < 1e-4


@pytest.mark.parametrize("name", SPECS)
def test_both_ledgers_reach_the_same_peak_within_memory(name, real_runs):
    simulated = {d.name: d.peak_memory_bytes for d in predict(SPECS[name]).devices}
    real = {d["name"]: d["peak_memory_bytes"] for d in real_runs[name]["report"]["devices"]}
    # parked rows come while their target computes: which of its operations they meet is a matter of time
    tolerance = 0.02 if name.startswith("parked-rows") else 0.0
    assert real == {device: pytest.approx(peak, rel=tolerance) for device, peak in simulated.items()}
    for device in SPECS[name].cluster.devices:
        assert real[device.name] <= device.memory_bytes
