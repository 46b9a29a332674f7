"""Every strategy with the families whose layers differ: real tensors in this process, the library's numbers.

The prompt is longer than the windows, so prefill and decoding cross their edges on every device.
"""

from functools import cache

import pytest
import torch

from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.models.inputs.prompts import requests_of
from engine.models.reference import transformers_outputs
from engine.strategies.registry import STRATEGIES, drafted, strategy
from tests.support.memory_world import run_in_memory
from tests.support.one_device import relative_error
from tests.support.small_cases import star
from tests.support.spread import ON_ONE_DEVICE, spread_params

FAMILIES = (
    *("qwen2", "mistral", "gemma", "gemma2", "gemma3", "phi3", "smollm3"),
    *("mixtral", "qwen3-moe", "qwen2-moe", "granite", "granite-moe-shared"),
    *("olmo2", "olmoe", "gpt-oss"),
)
CLUSTER = star((4e10, 1e10, 2.5e10, 6e9))
WORKLOAD = Workload(prompt_tokens=11, new_tokens=4, requests=2, pattern="bursty")
SQUEEZED = {
    "gpipe": {"kv_pressure": "recompute"},
    "voltage": {"decode": "recompute", "causal_trim": True, "order": "reorder"},
}
"""Parameters that lead to the other operations of a strategy."""


def spec_of(family, chosen, **params):
    model = drafted(strategy(chosen), catalogue.resolve(f"tiny-{family}")[0])
    return RunSpec(cluster=CLUSTER, model=model, workload=WORKLOAD, strategy=chosen, params=params, seed=4)


@cache
def answers(family):
    return transformers_outputs.compute(spec_of(family, "single"))


@pytest.fixture(autouse=True)
def one_thread():
    """Tensors this small are computed sooner by one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def check(spec, family):
    chosen = strategy(spec.strategy)
    plan = chosen.plan(spec.cluster, spec.model, spec.workload, chosen.Params.parse(spec.params, "here"))
    source, world = run_in_memory(spec, plan, requests_of(spec))
    nothing_placed = spec.strategy == "expert_parallel" and not spec.model.num_experts
    assert bool(world.sent) != (spec.strategy in ON_ONE_DEVICE or nothing_placed)
    for index in range(spec.workload.requests):
        if index in source.chosen:  # only ids reached the source
            ids = torch.stack(source.chosen[index]).tolist()
            assert ids == answers(family)[f"tokens.{index}"].tolist()
        else:
            ours = torch.stack(source.logits[index])
            assert relative_error(ours, answers(family)[f"logits.{index}"]) < 1e-4
    return plan


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("chosen", STRATEGIES, ids=lambda chosen: chosen.name)
def test_a_strategy_computes_what_transformers_does(chosen, family):
    spec = spec_of(family, chosen.name, **spread_params(chosen))
    over_heads = chosen.splits_heads and spec.model.qk_norm_over_heads
    refuses = over_heads or (chosen.name == "edgeformer" and spec.model.attention_sinks)
    assert (chosen.supports(spec.cluster, spec.model) is not None) == refuses
    if not refuses:
        check(spec, family)


@pytest.mark.parametrize("family", ["qwen2", "gemma2", "gemma3", "gpt-oss"])
def test_positions_in_every_order_and_recomputed_are_the_same(family):
    plan = check(spec_of(family, "voltage", **SQUEEZED["voltage"]), family)
    assert {shard.value_order for shard in plan.layout.shards} == {"reorder"}
