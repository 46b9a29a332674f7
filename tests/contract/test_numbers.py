"""Every strategy computes what one device computes: on real tensors, however the messages interleave."""

from functools import cache

import pytest
import torch

from engine.strategies.registry import STRATEGIES
from tests.support.few import few
from tests.support.memory_world import run_in_memory
from tests.support.small_cases import BERT, GPT2, LLAMA, MODELS, plan_of, prompts, spec_of, star, supported

CLUSTERS = {
    "terminal": star([1e10] * 3, terminal=True),
    "uneven": star([4e10, 1e10, 2.5e10, 3e9], source=2),
    "more-devices-than-heads": star([1e10] * 6),
    "alone": star([1e10]),
}
BY_HAND = [
    ("accelerate", {}),
    ("accelerate", {"device_map": "balanced_low_0"}),
    ("accelerate", {"device_map": "sequential"}),
    ("gpipe", {"by": "memory"}),
    ("gpipe", {"by": "flops"}),
    ("gpipe", {"head": "last"}),
    ("gpipe", {"planner": "best"}),
    ("edgeshard", {"planner": "best"}),
    ("megatron", {"planner": "best"}),
    ("galaxy", {"planner": "best"}),
    ("deepspeed", {"planner": "best"}),
    ("edgeshard", {"objective": "latency"}),
    ("edgeshard", {"objective": "throughput"}),
    ("edgeshard", {"objective": "throughput", "schedule": "bubbles"}),
    ("megatron", {"shares": "equal"}),
    ("megatron", {"shares": "proportional", "all_reduce": "tree"}),
    ("megatron", {"all_reduce": "star"}),
    ("megatron", {"all_reduce": "direct"}),
    ("megatron", {"head": "columns"}),
    ("megatron", {"head": "columns", "shares": "proportional"}),
    ("tpi_llm", {"all_reduce": "direct"}),
    ("galaxy", {}),
    ("galaxy", {"overlap": False, "row_shares": "proportional"}),
    ("tpi_llm", {}),
    ("tpi_llm", {"window": 1, "ffn_split": "equal", "all_reduce": "ring"}),
    ("tpi_llm", {"window": 3, "retain_every": 2, "all_reduce": "tree"}),
    ("voltage", {}),
    ("voltage", {"ratio": "proportional", "gather": "ring", "order": "naive"}),
    ("voltage", {"planner": "best", "order": "reorder"}),
    ("voltage", {"causal_trim": True, "gather": "ring"}),
    ("voltage", {"causal_trim": True, "planner": "best"}),
    ("edgeformer", {"t_max_mode": "none"}),
    ("edgeformer", {"t_max_mode": "none", "block_alloc": "even", "scheduling": "static"}),
    ("edgeformer", {"t_max_mode": "none", "block_alloc": "fastest", "cost_model": "device"}),
    ("mcu", {}),
    ("mcu", {"group_size": 2, "allow_kv_dup": True}),
]
TOKENS = 3
"""A prompt, and two passes over one token: the second reads what the first kept."""
VARIANTS = [
    *BY_HAND,
    *((chosen.name, chosen.lossless_params()) for chosen in STRATEGIES if chosen.name not in dict(BY_HAND)),
]


def results(name, model, cluster, seed=0, **more):
    spec = spec_of(name, model, cluster, new_tokens=TOKENS if model.causal else 0, **more)
    return results_of(spec, plan_of(spec), seed)


def results_of(spec, plan, seed):
    source, world = run_in_memory(spec, plan, prompts(spec), seed)
    model = spec.model
    outputs = source.states if not model.causal else {k: torch.stack(v) for k, v in source.logits.items()}
    outputs = outputs or {k: torch.stack(v) for k, v in source.chosen.items()}  # only token ids reached it
    assert not any(device.caches for device in world.devices), "a finished sequence's cache was kept"
    return outputs


@cache
def expected_of(model, rows=11, requests=1):
    return results("single", model, CLUSTERS["alone"], rows=rows, requests=requests)


ALL = [
    (name, params, model, cluster, pattern)
    for name, params in VARIANTS
    for model in MODELS
    for cluster in CLUSTERS
    if supported(name, CLUSTERS[cluster], model)
    for pattern in ("bursty", "sporadic")
]


def features(case):
    """Each variant with every model, pattern and cluster of several devices, its strategy on one device, and
    some strategy with all three.
    """
    name, params, model, cluster, pattern = case
    several = {cluster} - {"alone"}
    single = {(name, str(params), one) for one in (model.family, pattern, *several)}
    return single | {(name, cluster), ("any", model.family, cluster, pattern)}


def more_features(case):
    """Each strategy with every two of them, too."""
    name, _, model, cluster, pattern = case
    pairs = {(name, model.family, cluster), (name, model.family, pattern), (name, cluster, pattern)}
    return features(case) | pairs


CASES = list(few(ALL, features))
MORE = list(
    few(ALL, more_features, set().union(*map(more_features, ALL)).difference(*map(more_features, CASES)))
)
"""Those of the campaign."""
IDS = [
    "-".join([model.family, name, *map(str, params.values()), cluster, pattern])
    for name, params, model, cluster, pattern in (*CASES, *MORE)
]
MARKED = [*CASES, *(pytest.param(*case, marks=pytest.mark.long("engine")) for case in MORE)]


@pytest.mark.parametrize(("name", "params", "model", "cluster", "pattern"), MARKED, ids=IDS)
def test_every_strategy_gives_one_devices_numbers(name, params, model, cluster, pattern):
    expected = expected_of(model, requests=3)
    actual = results(name, model, CLUSTERS[cluster], requests=3, pattern=pattern, seed=1, **params)
    assert actual.keys() == expected.keys()
    for request, numbers in expected.items():
        if actual[request].dtype == torch.int64:
            assert actual[request].flatten().tolist() == numbers.argmax(-1).flatten().tolist()
            continue
        torch.testing.assert_close(actual[request], numbers, rtol=1e-4, atol=1e-4)
        if model.causal:
            assert torch.equal(actual[request].argmax(-1), numbers.argmax(-1))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_fewer_positions_than_devices_leave_some_without_rows(model, rows):
    expected = expected_of(model, rows)
    for params in ({}, {"gather": "ring"}, {"causal_trim": True}, {"decode_owner": "d0"}):
        actual = results("voltage", model, CLUSTERS["more-devices-than-heads"], rows=rows, **params)
        torch.testing.assert_close(actual[0], expected[0], rtol=1e-4, atol=1e-4)
    for overlap in (True, False):
        actual = results("galaxy", model, CLUSTERS["more-devices-than-heads"], rows=rows, overlap=overlap)
        torch.testing.assert_close(actual[0], expected[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_the_numbers_do_not_depend_on_who_comes_first(name, params):
    spec = spec_of(name, LLAMA, CLUSTERS["uneven"], new_tokens=2, requests=3, pattern="bursty", **params)
    plan = plan_of(spec)
    runs = [results_of(spec, plan, seed) for seed in range(2)]
    assert all(torch.equal(runs[1][request], runs[0][request]) for request in runs[0])


@pytest.mark.parametrize("model", [GPT2, BERT], ids=lambda model: model.family)
def test_a_pipeline_of_one_request_at_a_time_is_bit_exact(model):
    expected = expected_of(model, requests=2)
    actual = results("gpipe", model, CLUSTERS["uneven"], requests=2, pattern="bursty")
    assert all(torch.equal(actual[request], expected[request]) for request in expected)
