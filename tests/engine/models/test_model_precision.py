"""Rotary angles to float32's rounding, and what 16 bits cost: measured against `transformers`."""

import math
from functools import cache

import pytest
import torch
from transformers import AutoConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from engine.domain.rope import LinearScaling, Llama3Scaling, Rope, YarnScaling
from engine.models.catalogue import rows
from engine.models.families import hf_config
from engine.models.inputs.prompts import requests_of
from engine.models.reference import transformers_outputs
from engine.models.weights.store import WeightStore
from engine.ops.layout import whole_model
from engine.ops.torch_kernels.rope import rope_frequencies, rotate
from engine.runs.predict import prepare
from tests.support.memory_world import run_in_memory
from tests.support.one_device import generate, model_of, relative_error, spec_of

LLAMA3 = Llama3Scaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_positions=8192)
SHORT = Llama3Scaling(factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_positions=16)


def changed(spec, **update):
    return spec.model_copy(update={"model": spec.model.model_copy(update=update)})


@pytest.fixture(autouse=True)
def one_thread():
    """Tensors this small are computed sooner by one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("scaling", "theta", "head_dim"),
    [
        (None, 10000.0, 64),
        (None, 1e6, 128),
        (LLAMA3, 5e5, 128),
        (LLAMA3, 5e5, 64),
        (SHORT, 10000.0, 8),
    ],
)
def test_rotary_frequencies_are_those_of_transformers(scaling, theta, head_dim):
    spec = spec_of("tiny-llama").model.model_copy(
        update={"rope_scaling": scaling, "rope_theta": theta, "head_dim": head_dim, "max_positions": 131072}
    )
    config = hf_config.config_of_spec(spec)
    theirs = LlamaRotaryEmbedding(AutoConfig.for_model(config.pop("model_type"), **config)).inv_freq
    torch.testing.assert_close(rope_frequencies(Rope(theta, scaling, head_dim)), theirs, rtol=3e-7, atol=0)


YARN = {"factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 1e4}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"rope_type": "linear", "factor": 2.5, "rope_theta": 1e4}, LinearScaling(factor=2.5)),
        (
            {"rope_type": "yarn", **YARN},
            YarnScaling(factor=4.0, original_max_positions=64, attention_factor=0.1 * math.log(4) + 1),
        ),
        (
            {"rope_type": "yarn", **YARN, "beta_fast": 8.0, "beta_slow": 2.0, "attention_factor": 0.7},
            YarnScaling(
                factor=4.0, original_max_positions=64, attention_factor=0.7, beta_fast=8.0, beta_slow=2.0
            ),
        ),
        (
            {"rope_type": "yarn", **YARN, "truncate": False},
            YarnScaling(
                factor=4.0,
                original_max_positions=64,
                attention_factor=0.1 * math.log(4) + 1,
                truncate=False,
            ),
        ),
    ],
)
def test_stretched_wavelengths_and_the_factor_of_cos_and_sin_are_those_of_transformers(theirs, ours):
    config = AutoConfig.for_model("llama", head_dim=32, max_position_embeddings=256, rope_parameters=theirs)
    library = LlamaRotaryEmbedding(config)
    rope = Rope(1e4, ours, 32)
    torch.testing.assert_close(rope_frequencies(rope), library.inv_freq, rtol=3e-7, atol=0)
    assert getattr(ours, "attention_factor", 1.0) == pytest.approx(library.attention_scaling, rel=1e-12)


def test_scaling_keeps_short_wavelengths_stretches_long_ones_and_blends_between():
    plain, scaled = (rope_frequencies(Rope(5e5, scaling, 128)) for scaling in (None, LLAMA3))
    turns = 8192 * plain / (2 * torch.pi)
    ratio = plain / scaled
    torch.testing.assert_close(ratio[turns > 4], torch.ones_like(ratio[turns > 4]))
    torch.testing.assert_close(ratio[turns < 1], torch.full_like(ratio[turns < 1], 8.0))
    between = ratio[(turns > 1) & (turns < 4)]
    assert len(between) and bool(((between > 1) & (between < 8)).all())


def test_a_llama_with_scaled_positions_generates_what_transformers_does():
    spec = changed(spec_of("tiny-llama"), rope_scaling=SHORT)
    theirs = transformers_outputs.compute(spec)
    for request in requests_of(spec):
        ours = generate(store_of(spec), request.tokens, spec.workload.new_tokens)
        assert relative_error(ours, theirs[f"logits.{request.index}"]) < 1e-5
    unscaled = generate(store_of(spec_of("tiny-llama")), requests_of(spec)[0].tokens, 6)
    assert relative_error(unscaled, theirs["logits.0"]) > 1e-3, "the scaling must show"


def test_scores_of_rotated_heads_depend_on_distance_alone():
    rope = Rope(10000.0, SHORT, 8)
    q, k = torch.randn(2, 1, 1, 1, 8, generator=torch.Generator().manual_seed(1))
    scores = [(rotate(rope, q, at + 3) * rotate(rope, k, at)).sum() for at in (0, 7, 40)]
    torch.testing.assert_close(torch.stack(scores), scores[0].expand(3), rtol=1e-4, atol=1e-5)


def store_of(spec):
    store = WeightStore(spec.model, spec.weights, spec.seed)
    for piece in whole_model(store.model):
        store.load(piece)
    return store


@cache
def first_results(name, dtype):
    """What one device and `transformers` answer to 8 prompts: first logits, or all that an encoder says."""
    model = model_of(name)
    prompt_tokens = 13 if model.reads_text else None
    spec = changed(
        spec_of(name, prompt_tokens=prompt_tokens, new_tokens=int(model.has_head), requests=8), dtype=dtype
    )
    prepared, theirs = prepare(spec), transformers_outputs.compute(spec)
    source, _ = run_in_memory(spec, prepared.plan, prepared.requests)
    if model.has_head:
        ours = [source.logits[index][0] for index in range(8)]
        expected = [theirs[f"logits.{index}"][0] for index in range(8)]
    else:
        ours, expected = zip(*((source.states[i], theirs[f"hidden.{i}"]) for i in range(8)), strict=True)
    return torch.stack(list(ours)).float(), torch.stack(list(expected)).float()


@pytest.mark.parametrize("name", sorted(row.name for row in rows() if row.name.startswith("tiny-")))
def test_16_bits_are_as_close_to_32_as_those_of_transformers(name):
    """bfloat16 has 8 significant bits: one rounding is 0.4 % at most, and a layer rounds a dozen times. The
    library itself is further off for Gemma 2. Of a mixture one prompt may be left out, in which a router is
    torn between two experts: how this processor rounds decides which.
    """
    ours, theirs = first_results(name, "bfloat16")
    exact = first_results(name, "float32")[1]
    if model_of(name).num_experts:
        errors = [relative_error(*pair) for pair in zip(ours, theirs, strict=True)]
        kept = torch.tensor(errors).argsort()[:-1]
        ours, theirs, exact = ours[kept], theirs[kept], exact[kept]
    assert 0 < relative_error(ours, exact) < max(0.03, 1.01 * relative_error(theirs, exact))
    assert relative_error(ours, theirs) < 0.03
    assert root_mean_square(ours - exact) < 1.25 * root_mean_square(theirs - exact)


def root_mean_square(x):
    return float(x.square().mean().sqrt())
