"""Answers of unknown length: all methods plan for the same assumption, and adapt where they can."""

from random import Random

import pytest
import torch
from test_kv_pressure import MODELS, NEW, ROWS, least_memory, sized

from engine.domain.errors import OutOfMemory, PlanError
from engine.domain.plan import Slice
from engine.domain.workload import Workload
from engine.ops.sizes import weight_bytes
from engine.runs.predict import predict
from engine.strategies.pipeline_offload.slots import cycles_by_rows, cycles_of
from engine.strategies.registry import STRATEGIES
from engine.strategies.shared.demand import demand_of
from tests.support.memory_world import alone, run_in_memory
from tests.support.small_cases import GPT2, LLAMA, plan_of, play, prompts, spec_of, star, supported

ASSUMED = ROWS + 2
WORSE = 1.02
"""Of all lengths that somebody may assume some are tried: another one may be so much better."""
SEEDS = (1, 2, 3, 6, 8, 29)
STREAMING = ["lime", "tpi_llm_offload", "pipeline_offload"]
PRESSED = [
    (name, pressure)
    for name in ("gpipe", "edgeshard", "galaxy", "tpi_llm")
    for pressure in ("recompute", "offload_kv")
]


def marks(trace):
    return {getattr(item, "name", "") for item in trace}


def same_tokens(spec, plan):
    """Whether a run of `plan` gives what one device with memory for all gives."""
    source, _ = run_in_memory(spec, plan, prompts(spec))
    work = spec.workload
    expected = alone(spec.model, work.prompt_tokens, work.new_tokens, work.requests)
    for request in range(work.requests):
        logits, wanted = torch.stack(source.logits[request]), torch.stack(expected.logits[request])
        torch.testing.assert_close(logits, wanted, rtol=1e-4, atol=1e-4)
    return True


@pytest.mark.parametrize("name", [chosen.name for chosen in STRATEGIES])
@pytest.mark.parametrize("model", [GPT2, LLAMA], ids=lambda model: model.name)
def test_every_method_plans_for_the_assumed_length_whatever_the_answer_becomes(name, model):
    cluster = star([1e9, 2e9])
    if not supported(name, cluster, model):
        pytest.skip("this method cannot run the model here")
    known = spec_of(name, model, cluster, rows=8, new_tokens=9)
    plan = plan_of(known)
    for new_tokens in (2, 5, 20):
        unknown = spec_of(name, model, cluster, rows=8, new_tokens=new_tokens, assumed_tokens=16)
        assert plan_of(unknown) == plan


def test_an_assumption_shorter_than_the_prompt_is_one_token_more_than_it():
    unknown = Workload(prompt_tokens=10, new_tokens=5, assumed_tokens=3)
    demand = demand_of(GPT2, unknown, True)
    assert (demand.rows, demand.new_tokens, demand.cached_rows) == (10, 2, 11)
    assert demand.true == demand.longest == demand_of(GPT2, Workload(prompt_tokens=10, new_tokens=5), True)
    long = demand_of(GPT2, Workload(prompt_tokens=10, new_tokens=5, assumed_tokens=10**6), True)
    assert long.cached_rows == GPT2.max_positions and long.longest is long
    assert demand_of(GPT2, Workload(prompt_tokens=10, new_tokens=0, assumed_tokens=99), True).cached_rows == 0


def outgrown(name, **more):
    """A run whose answer outgrows the memory of the plan for the assumed length, and that plan's run."""
    model, cluster = MODELS["gpt2"], star([1e10] * 2)
    memory = least_memory(spec_of(name, model, cluster, ROWS, NEW)) - 2500
    assumed = spec_of(name, model, cluster, ROWS, ASSUMED - ROWS + 1)
    spec = spec_of(name, model, cluster, ROWS, NEW, assumed_tokens=ASSUMED, **more)
    return sized(spec, memory), sized(assumed, memory)


@pytest.mark.parametrize(("name", "pressure"), PRESSED)
def test_with_a_policy_the_plan_stays_and_rows_make_way(name, pressure):
    spec, assumed = outgrown(name, kv_pressure=pressure)
    plan, before = plan_of(spec), plan_of(assumed)
    assert (plan.holdings, plan.work) == (before.holdings, before.work)
    rows = plan.layout.kv_rows if pressure == "recompute" else plan.layout.kv_memory_rows
    assert 0 < rows < ROWS + NEW - 1
    play(spec, plan)  # raises OutOfMemory if rows do not make way
    assert same_tokens(spec, plan)


@pytest.mark.parametrize("name", ["gpipe", "single"])
def test_without_a_policy_the_run_ends_where_the_memory_does(name):
    model, cluster = MODELS["gpt2"], star([1e10] * 2)
    memory = least_memory(spec_of(name, model, cluster, ROWS, ASSUMED - ROWS + 1))
    spec = sized(spec_of(name, model, cluster, ROWS, 4 * NEW, assumed_tokens=ASSUMED), memory)
    with pytest.raises(OutOfMemory):
        play(spec, plan_of(spec))


@pytest.mark.parametrize("name", STREAMING)
def test_what_streams_weights_streams_more_as_answers_grow(name):
    model = GPT2.model_copy(update={"num_layers": 6, "max_positions": 64})
    layer_bytes = sum(weight_bytes(model, Slice(layer=0, part=part)) for part in ("attention", "ffn"))
    cluster = star([1e9] * 2, memory_bytes=2.6 * layer_bytes + 4e4, disk_byte_per_s=1e6)
    sizes = {"rows": 8, "new_tokens": 24, "requests": 2}
    plan = plan_of(spec := spec_of(name, model, cluster, **sizes, assumed_tokens=9))
    with_truth = plan_of(spec_of(name, model, cluster, **sizes))
    offloaded = [sum(held.home == "offloaded" for held in one.holdings) for one in (plan, with_truth)]
    assert offloaded[0] <= offloaded[1]
    assert marks(play(spec, plan)) & {"threshold", "unpinned", "slots"}
    assert same_tokens(spec, plan)


def test_slots_get_fewer_as_caches_grow_and_never_none():
    by_rows = cycles_by_rows(layers=4, free_bytes=430, layer_bytes=100, row_bytes=1, rows=5, longest=70)
    assert by_rows == ((0, ()), (8, cycles_of(4, 1)), (33, cycles_of(4, 2)), (58, cycles_of(4, 3)))
    for rows, cycles in ((7, 0), (32, 1), (57, 2)):
        assert (4 - cycles) * 100 + 4 * rows <= 430 < (4 - cycles) * 100 + 4 * (rows + 1)
    assert cycles_by_rows(4, 430, 100, 1, 5, 7) == ((0, ()),)


def drawn(random, model):
    """A cluster of which some devices stream layers, and a run on it."""
    layer_bytes = sum(weight_bytes(model, Slice(layer=0, part=part)) for part in ("attention", "ffn"))
    number = random.choice((2, 3))
    of_layers = random.uniform(0.5, 1.0) * model.num_layers / number
    cluster = star(
        [random.choice((5e8, 1e9, 3e9)) for _ in range(number)],
        memory_bytes=of_layers * layer_bytes + 6e4,
        disk_byte_per_s=random.choice((1e6, 5e6, 2e7)),
    )
    devices = tuple(
        device.model_copy(
            update={
                "memory_bytes": device.memory_bytes * random.uniform(0.7, 1.4),
                "disk_byte_per_s": device.disk_byte_per_s * random.choice((0.5, 1, 2)),
            }
        )
        for device in cluster.devices
    )
    sizes = {"rows": random.choice((4, 8, 16)), "new_tokens": random.choice((8, 24, 48))}
    return cluster.model_copy(update={"devices": devices}), sizes | {"requests": random.choice((1, 1, 3))}


def latency_s(spec):
    """None where there is no plan, or the run does not end."""
    try:
        report = predict(spec)
    except PlanError:
        return None
    return report.latency_s if report.outcome.kind == "finished" else None


@pytest.mark.parametrize("name", STREAMING)
def test_who_knows_how_long_answers_become_is_not_slower_than_who_assumes_a_length(name):
    compared = 0
    for seed in SEEDS:
        random = Random(seed)
        model = random.choice((GPT2, LLAMA)).model_copy(update={"num_layers": random.choice((4, 6, 8))})
        cluster, sizes = drawn(random, model)
        known_s = latency_s(spec_of(name, model, cluster, **sizes))
        true = sizes["rows"] + sizes["new_tokens"] - 1
        for assumed in (sizes["rows"] + 1, true - 3):
            assumed_s = latency_s(spec_of(name, model, cluster, **sizes, assumed_tokens=assumed))
            if assumed_s is not None:
                assert known_s is not None and known_s <= WORSE * assumed_s, (seed, assumed)
                compared += 1
    assert compared > 5
