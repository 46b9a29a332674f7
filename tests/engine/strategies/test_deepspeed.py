"""DeepSpeed: equal shards on all devices, or a refusal with the reason."""

import pytest

from engine.strategies.registry import strategy
from engine.strategies.shared.demand import weights_bytes
from tests.support.small_cases import BERT, GPT2, LLAMA, MODELS, plan_of, spec_of, star


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
@pytest.mark.parametrize("devices", [1, 2, 4])
def test_unequal_devices_get_equal_shards(model, devices):
    cluster = star([4e10, 1e9, 2e10, 5e9][:devices], terminal=True)
    plan = plan_of(spec_of("deepspeed", model, cluster))
    assert len({weights_bytes(plan, model, rank) for rank in range(devices)}) == 1
    assert plan.layout.heads == tuple(model.num_heads // devices * i for i in range(devices + 1))
    assert plan.layout.columns == tuple(model.intermediate_size // devices * i for i in range(devices + 1))


@pytest.mark.parametrize(
    ("model", "devices", "uneven"),
    [
        (GPT2, 3, "4 attention heads and 64 feed-forward columns"),
        (BERT, 8, "4 attention heads"),
        (LLAMA.model_copy(update={"num_heads": 12, "num_kv_heads": 6}), 4, "6 KV heads"),
        (GPT2.model_copy(update={"intermediate_size": 66}), 4, "66 feed-forward columns"),
    ],
)
def test_uneven_shards_are_refused_with_the_units_and_the_devices(model, devices, uneven):
    reason = strategy("deepspeed").supports(star([1e10] * devices, terminal=True), model)
    assert reason == (
        f"every device gets an equal shard, but {model.name} has {uneven}, which {devices} workers "
        "cannot share equally."
    )


def test_it_is_megatron_with_equal_shares():
    cluster = star([4e10, 1e9])
    mine, megatron = (plan_of(spec_of(name, GPT2, cluster)) for name in ("deepspeed", "megatron"))
    assert (mine.work, mine.holdings, mine.layout) == (megatron.work, megatron.holdings, megatron.layout)
