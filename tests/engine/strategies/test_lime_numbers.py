"""Streamed layers and parked rows change no bit of a result, however messages interleave."""

import pytest
import torch
from test_lime_memory import growing
from test_lime_run import DEEP, case, tight
from test_pipeline_offload import overfull

from tests.support.memory_world import run_in_memory
from tests.support.small_cases import plan_of, prompts, spec_of, star

LLAMA, BERT = DEEP["small-llama"], DEEP["small-bert"]
CASES = {
    "two-requests": case(new_tokens=4, requests=2),
    "burst-at-a-terminal": case(
        LLAMA, tight(LLAMA, (1e9, 2e9, 1e9), 2.6, terminal=True), new_tokens=3, requests=3, pattern="bursty"
    ),
    "blocks-that-stay": case(BERT, tight(BERT, (2e9, 1e9), 3.35, disk_byte_per_s=1e6), num_segments=2),
    "alone": case(cluster=tight(DEEP["small-gpt2"], (1e9,), 5.5), new_tokens=4),
    "thresholds": growing(kv_transfer=False, requests=2, new_tokens=16),
    "parked-rows": growing(fluctuation_rows=1, new_tokens=20),
    "parked-rows-of-a-burst": growing(requests=2, pattern="bursty", fluctuation_rows=1, new_tokens=6),
    "in-stage": overfull(LLAMA, workload={"requests": 2, "pattern": "bursty", "new_tokens": 3}),
    "in-stage-around-all-slots": overfull(BERT, layers=1.8, extra_bytes=4.5e4),
}


def outputs_of(spec, seed):
    source, world = run_in_memory(spec, plan_of(spec), prompts(spec), seed)
    assert not any(device.caches for device in world.devices), "a finished sequence's cache was kept"
    return source.logits if spec.model.causal else source.states, world


def alone(spec):
    work = spec.workload
    single = spec_of(
        "single",
        spec.model,
        star((1e9,)),
        rows=work.prompt_tokens,
        new_tokens=work.new_tokens,
        requests=work.requests,
    )
    return outputs_of(single, 0)[0]


@pytest.mark.parametrize("name", CASES)
def test_results_are_bit_by_bit_those_of_one_device(name):
    spec = CASES[name]
    expected = alone(spec)
    for seed in range(2):
        got, world = outputs_of(spec, seed)
        assert got.keys() == expected.keys()
        for request, rows in expected.items():
            assert all(map(torch.equal, rows, got[request]))
        parks = any(tag.startswith("kv_back.") for sent in world.sent.values() for tag, size in sent if size)
        assert parks == name.startswith("parked-rows")
        for device in world.devices:
            assert device.ledger.peak_bytes <= device.device.memory_bytes
            assert set(device.weights.held) == set(device.ledger.resident)


def test_after_the_last_request_a_device_holds_what_its_plan_gave_it():
    spec = CASES["parked-rows"]
    _, world = outputs_of(spec, 0)
    for rank, device in enumerate(world.devices):
        assert set(device.weights.held) == set(plan_of(spec).held_by(rank))
