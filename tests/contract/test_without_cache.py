"""Every method without KV caches: the same tokens as with them, from passes over all tokens so far."""

from itertools import pairwise

import pytest
import torch

from engine.domain.errors import SpecError
from engine.domain.trace import Mark
from engine.runs.predict import plan_of as checked_plan
from engine.strategies.registry import STRATEGIES
from tests.support.memory_world import run_in_memory
from tests.support.small_cases import GPT2, LLAMA, plan_of, play, prompts, spec_of, star, supported

UNEVEN = star([4e10, 1e10, 2.5e10, 3e9], source=2)
TOKENS = 4
FREE = [one for one in STRATEGIES if not one.needs_cache]


def spec_without(name, model, cluster, **more):
    spec = spec_of(name, model, cluster, new_tokens=TOKENS, **more)
    return spec.model_copy(update={"workload": spec.workload.model_copy(update={"kv_cache": False})})


def answers(spec):
    """The logits of every request, or the tokens where only these reach the source."""
    source, world = run_in_memory(spec, plan_of(spec), prompts(spec), 0)
    assert not any(device.caches for device in world.devices), "a device kept a KV cache"
    return {k: torch.stack(v) for k, v in (source.logits or source.chosen).items()}


def runs_on(cluster, *models):
    """(method, model) for which the method goes without caches there."""
    return [(chosen, model) for chosen in FREE for model in models if supported(chosen.name, cluster, model)]


@pytest.mark.parametrize("pattern", ["sporadic", "bursty"])
@pytest.mark.parametrize(
    ("chosen", "model"),
    [pytest.param(*one, id=f"{one[0].name}-{one[1].family}") for one in runs_on(UNEVEN, GPT2, LLAMA)],
)
def test_a_method_without_a_cache_gives_the_same_tokens(chosen, model, pattern):
    given = {"requests": 2, "pattern": pattern, **chosen.lossless_params()}
    ours = answers(spec_without(chosen.name, model, UNEVEN, **given))
    alone = spec_of("single", model, star([1e10]), new_tokens=TOKENS, requests=2)
    for request, expected in answers(alone).items():
        if ours[request].dim() == 1 or ours[request].shape != expected.shape:
            assert ours[request].flatten().tolist() == expected.argmax(-1).flatten().tolist()
        else:
            torch.testing.assert_close(ours[request], expected, atol=1e-4, rtol=1e-4)


ALONE = star([1e10])


@pytest.mark.parametrize("chosen", [one for one, _ in runs_on(ALONE, GPT2)], ids=lambda chosen: chosen.name)
def test_every_token_takes_as_long_as_the_first_of_a_prompt_with_all_tokens_before_it(chosen):
    """On one device, where no plan depends on the length."""
    cluster, rows = ALONE, 9
    spec = spec_without(chosen.name, GPT2, cluster, rows=rows, **chosen.lossless_params())
    emitted = [m.time_s for m in play(spec) if isinstance(m, Mark) and m.name == "token_emitted"]
    each = [after - before for before, after in pairwise([0.0, *emitted])]
    for number, token_s in enumerate(each):
        given = {"rows": rows + number, **chosen.lossless_params()}
        longer = spec_of(chosen.name, GPT2, cluster, new_tokens=1, **given)
        first = [m.time_s for m in play(longer) if isinstance(m, Mark) and m.name == "token_emitted"]
        assert token_s == pytest.approx(first[0], rel=1e-6)


@pytest.mark.parametrize("chosen", [one for one in STRATEGIES if one.needs_cache], ids=lambda one: one.name)
def test_a_method_that_needs_caches_says_why(chosen):
    spec = spec_without(chosen.name, GPT2, UNEVEN)
    with pytest.raises(SpecError, match=r"workload\.kv_cache is false.* Keep the KV cache"):
        checked_plan(spec, prompts(spec))
