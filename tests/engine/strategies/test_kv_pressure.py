"""Evict the oldest tokens and recompute their keys and values: same results, within the memory."""

from functools import cache

import pytest
import torch

from engine.domain.errors import PlanError
from engine.domain.spec import RunSpec
from engine.runs.predict import predict
from tests.support.memory_world import alone, run_in_memory
from tests.support.small_cases import GPT2, LLAMA, plan_of, play, prompts, sends, spec_of, star

MODELS = {model.family: model.model_copy(update={"num_layers": 10}) for model in (GPT2, LLAMA)}
STRATEGIES = ["gpipe", "edgeshard", "galaxy", "tpi_llm"]
ROWS, NEW = 8, 9


def sized(spec, memory_bytes):
    devices = [d.model_copy(update={"memory_bytes": float(memory_bytes)}) for d in spec.cluster.devices]
    cluster = spec.cluster.model_copy(update={"devices": tuple(devices)})
    return spec.model_copy(update={"cluster": cluster})


def plans(spec, memory_bytes):
    try:
        return plan_of(sized(spec, memory_bytes))
    except PlanError:
        return None


def least_memory(spec):
    """The least memory, to 100 bytes, with which there is a plan."""
    return _least_memory(spec.model_dump_json())


@cache
def _least_memory(document):
    spec = RunSpec.model_validate_json(document)
    low, high = 0, 10**6
    while high - low > 100:
        middle = (low + high) // 2
        low, high = (low, middle) if plans(spec, middle) else (middle, high)
    return high


def pressed(name, model, requests=1, pattern="sporadic"):
    """A workload whose cache does not quite fit, with and without recomputing."""
    more = {"rows": ROWS, "new_tokens": NEW, "requests": requests, "pattern": pattern}
    plain = spec_of(name, model, star([1e10] * 2), **more)
    spec = plain.model_copy(update={"params": {"kv_pressure": "recompute"}})
    memory_bytes = least_memory(plain) - 2500
    return sized(spec, memory_bytes), sized(plain, memory_bytes)


@pytest.mark.parametrize(
    ("name", "family", "pattern"),
    [
        ("gpipe", "llama", "sporadic"),
        ("gpipe", "gpt2", "bursty"),
        ("edgeshard", "gpt2", "bursty"),
        ("galaxy", "gpt2", "sporadic"),
        ("galaxy", "gpt2", "bursty"),
        ("tpi_llm", "llama", "bursty"),
    ],
)
def test_recomputing_evicted_tokens_gives_the_tokens_of_unlimited_memory(name, family, pattern):
    model = MODELS[family]
    spec, plain = pressed(name, model, 2, pattern)
    with pytest.raises(PlanError, match=r"needs .* has .*B"):
        plan_of(plain)
    plan = plan_of(spec)
    assert 0 < plan.layout.kv_rows < ROWS + NEW - 1
    trace = play(spec, plan)  # raises OutOfMemory if the planner was wrong
    assert any(getattr(item, "name", "") == "recomputed" for item in trace)
    source, world = run_in_memory(spec, plan, prompts(spec))
    assert not any(device.caches for device in world.devices)
    expected = alone(model, ROWS, NEW, requests=2)
    for request in range(2):
        logits, wanted = torch.stack(source.logits[request]), torch.stack(expected.logits[request])
        torch.testing.assert_close(logits, wanted, rtol=1e-4, atol=1e-4)
        assert torch.equal(logits.argmax(-1), wanted.argmax(-1))


@pytest.mark.parametrize("name", STRATEGIES)
def test_no_plan_evicts_more_rows_than_it_must(name):
    spec, _ = pressed(name, MODELS["gpt2"])
    kept = plan_of(spec).layout.kv_rows
    memory = spec.cluster.devices[0].memory_bytes
    more = plan_of(sized(spec, memory * 1.02)).layout.kv_rows
    assert more is None or more >= kept
    peaks = {device.name: device.peak_memory_bytes for device in predict(spec).devices}
    assert max(peaks.values()) <= memory


def test_messages_grow_with_every_evicted_token():
    spec, _ = pressed("gpipe", MODELS["gpt2"])
    plan = plan_of(spec)
    kept, row = plan.layout.kv_rows, GPT2.hidden_size * 4
    hops = [s for s in sends(play(spec, plan)) if s.device == "d0"]
    rows = [s.payload_bytes // row for s in hops]
    assert rows == [ROWS] + [1 + max(0, n - kept) for n in range(ROWS + 1, ROWS + NEW)]


def test_a_prompt_may_be_too_long_for_the_cache_already():
    model = GPT2.model_copy(update={"num_layers": 12})
    spec = spec_of("gpipe", model, star([1e10] * 2), rows=24, new_tokens=3, kv_pressure="recompute")
    plain = spec.model_copy(update={"params": {}})
    tight = sized(spec, least_memory(plain) - 8000)
    assert plan_of(tight).layout.kv_rows < 24
    source, _ = run_in_memory(tight, plan_of(tight), prompts(tight))
    expected = alone(model, rows=24, new_tokens=3)
    torch.testing.assert_close(torch.stack(source.logits[0]), torch.stack(expected.logits[0]))


def test_with_enough_memory_nothing_is_evicted():
    for name in STRATEGIES:
        spec = spec_of(name, GPT2, star([1e10] * 2), kv_pressure="recompute")
        assert plan_of(spec).layout.kv_rows is None
