"""TPI-LLM with growing ranges of streamed blocks, recomputed tokens, and KV rows on disk, in both worlds: the
same operations, bytes and peaks, and right answers. Real processes and sockets on loopback, native speed.
"""

from collections import Counter
from functools import cache

import pytest
from test_kv_disk import offloading
from test_kv_pressure import MODELS, pressed
from test_tpi_llm import DEEP, tight

from engine.domain.events import to_json
from engine.runs.predict import predict, prepare, simulate
from tests.support.operations import operations

BURST = {"requests": 2, "pattern": "bursty"}
CASES = {  # made when they are asked for: to find how much memory is too little takes seconds
    "blocks-unpinned": lambda: tight("tpi_llm_offload", DEEP["gpt2"], 10, rows=7, new_tokens=10, requests=2),
    "all-stream": lambda: tight("tpi_llm", DEEP["bert"]),
    "recomputed-in-stages": lambda: pressed("gpipe", MODELS["llama"], **BURST)[0],
    "recomputed-in-rows": lambda: pressed("galaxy", MODELS["gpt2"])[0],
    "recomputed-while-streaming": lambda: pressed("tpi_llm", MODELS["gpt2"], **BURST)[0],
    "on-disk-in-stages": lambda: offloading("edgeshard", MODELS["llama"], **BURST)[0],
    "on-disk-in-flushed-stages": lambda: offloading("gpipe", MODELS["gpt2"])[0],
    "on-disk-in-tiles": lambda: offloading("galaxy", MODELS["gpt2"], **BURST)[0],
    "on-disk-while-streaming": lambda: offloading("tpi_llm", MODELS["llama"])[0],
}


@cache
def spec_of(name):
    return CASES[name]().model_copy(update={"dilation": "native"})


@pytest.fixture(scope="module")
def real_runs(play_for_real):
    return play_for_real({name: spec_of(name) for name in CASES})


@pytest.mark.parametrize("name", CASES)
def test_both_worlds_do_the_same_and_answer_like_the_reference(name, real_runs):
    spec, report = spec_of(name), real_runs[name]["report"]
    trace, outcome = simulate(prepare(spec))
    assert outcome.kind == "finished"
    assert report["outcome"]["kind"] == "finished", report["outcome"]["sentence"]
    simulated, real = operations(to_json(trace)), operations(real_runs[name]["trace"])
    assert simulated - real == Counter() and real - simulated == Counter()
    marks = {getattr(item, "name", "") for item in trace}
    assert ("recomputed" in marks) == name.startswith("recomputed")
    assert ("unpinned" in marks) == (name == "blocks-unpinned")
    assert any(getattr(item, "kind", "") == "store" for item in trace) == name.startswith("on-disk")
    assert report["correctness"]["ok"], report["correctness"]
    assert report["correctness"]["max_rel_error"] < 1e-4


@pytest.mark.parametrize("name", CASES)
def test_both_ledgers_stay_within_memory(name, real_runs):
    simulated = {d.name: d.peak_memory_bytes for d in predict(spec_of(name)).devices}
    real = {d["name"]: d["peak_memory_bytes"] for d in real_runs[name]["report"]["devices"]}
    assert simulated == real
    for device in spec_of(name).cluster.devices:
        assert real[device.name] <= device.memory_bytes
