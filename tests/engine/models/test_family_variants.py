"""Configs of the families with their settings varied: our layers give the logits of `transformers`.

Prompts are longer and shorter than the window, and decoding crosses its edge. The library reads the config
itself; our model is what `spec_of_config` makes of it.
"""

import json

import pytest
import torch

from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec, WeightsRef
from engine.domain.workload import Workload
from engine.models.families import hf_config
from engine.models.inputs.prompts import requests_of
from engine.models.reference import transformers_outputs
from engine.models.weights.store import WeightStore
from engine.ops.layout import whole_model
from tests.support.one_device import LAPTOP, generate, relative_error

SIZES = {
    "num_hidden_layers": 3,
    "hidden_size": 24,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "intermediate_size": 37,
    "vocab_size": 53,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
"""Odd counts; heads of eight numbers where a family does not say otherwise."""
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 6, "rope_theta": 100.0}
LINEAR = {"rope_type": "linear", "factor": 8.0}
FULL, SLIDING = "full_attention", "sliding_attention"
VARIANTS = {
    "llama-linear": {"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 3.0}},
    "llama-yarn": {"model_type": "llama", "rope_parameters": YARN},
    "qwen2": {"model_type": "qwen2"},
    "qwen2-windows": {
        "model_type": "qwen2",
        "use_sliding_window": True,
        "sliding_window": 5,
        "max_window_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_size": 40,
    },
    "qwen2-yarn": {"model_type": "qwen2", "rope_scaling": {**YARN, "attention_factor": 1.3}},
    "qwen3-windows": {
        "model_type": "qwen3",
        "head_dim": 6,
        "use_sliding_window": True,
        "sliding_window": 3,
        "layer_types": [SLIDING, FULL, SLIDING],
    },
    "mistral": {"model_type": "mistral", "sliding_window": 4, "head_dim": 6},
    "mistral-two-keys": {"model_type": "mistral", "sliding_window": 2},
    "mistral-v0.3": {"model_type": "mistral", "sliding_window": None, "rope_theta": 1e6},
    "gemma": {"model_type": "gemma", "head_dim": 6, "hidden_act": "gelu", "num_key_value_heads": 3},
    "gemma2": {"model_type": "gemma2", "head_dim": 6, "query_pre_attn_scalar": 9, "sliding_window": 4},
    "gemma2-caps": {
        "model_type": "gemma2",
        "head_dim": 8,
        "attn_logit_softcapping": 0.6,
        "final_logit_softcapping": 0.1,
        "sliding_window": 2,
    },
    "gemma2-no-caps": {
        "model_type": "gemma2",
        "head_dim": 8,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
        "attention_bias": True,
    },
    "gemma3": {
        "model_type": "gemma3_text",
        "head_dim": 6,
        "sliding_window": 4,
        "sliding_window_pattern": 2,
        "rope_local_base_freq": 30.0,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
    "gemma3-nested": {
        "model_type": "gemma3_text",
        "head_dim": 8,
        "sliding_window": 3,
        "layer_types": [SLIDING, FULL, SLIDING],
        "rope_parameters": {FULL: {**YARN}, SLIDING: {"rope_type": "default", "rope_theta": 50.0}},
        "final_logit_softcapping": 0.2,
    },
    "phi3": {"model_type": "phi3", "sliding_window": 4},
    "phi3-longrope": {
        "model_type": "phi3",
        "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.3, 2.0, 4.0], "long_factor": [9.0] * 4},
        "original_max_position_embeddings": 16,
    },
    "olmo2": {"model_type": "olmo2", "attention_bias": True, "num_attention_heads": 4, "hidden_size": 40},
    "olmo2-heads": {"model_type": "olmo2", "num_key_value_heads": 3, "rope_parameters": YARN},
    "olmoe": {"model_type": "olmoe", "num_experts": 5, "num_experts_per_tok": 2},
    "gpt-oss": {
        "model_type": "gpt_oss",
        "head_dim": 6,
        "num_local_experts": 5,
        "num_experts_per_tok": 2,
        "sliding_window": 4,
        "swiglu_limit": 0.4,
        "swiglu_alpha": 0.9,
    },
    "gpt-oss-plain": {
        "model_type": "gpt_oss",
        "head_dim": 8,
        "num_local_experts": 3,
        "num_experts_per_tok": 3,
        "attention_bias": False,
        "sliding_window": 3,
        "layer_types": [FULL, SLIDING, SLIDING],
        "rope_scaling": {"type": "linear", "factor": 3.0},
        "rope_theta": 100.0,
    },
    "gemma3-wrapped": {
        "model_type": "gemma3",
        "architectures": ["Gemma3ForConditionalGeneration"],
        "text_config": SIZES | {"head_dim": 6, "sliding_window": 4, "rope_scaling": LINEAR},
        "vision_config": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "image_size": 14}
        | {"num_attention_heads": 1},
        "mm_tokens_per_image": 1,
        "image_token_index": 52,
    },
    "phi3-partial": {"model_type": "phi3", "partial_rotary_factor": 0.75, "tie_word_embeddings": True},
    "smollm2": {"model_type": "llama", "tie_word_embeddings": True, "rope_theta": 1e5},
    "smollm3": {"model_type": "smollm3", "no_rope_layer_interval": 2, "attention_bias": True},
    "smollm3-windows": {
        "model_type": "smollm3",
        "no_rope_layers": [0, 1, 0],
        "use_sliding_window": True,
        "sliding_window": 3,
        "mlp_bias": True,
    },
}


def model_of(name) -> ModelSpec:
    return hf_config.spec_of_config(name, SIZES | VARIANTS[name], "here")


@pytest.fixture(autouse=True)
def one_thread():
    """Tensors this small are computed sooner by one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", VARIANTS)
def test_logits_of_a_variant_are_those_that_transformers_reads_from_its_config(name, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(SIZES | VARIANTS[name]))
    weights = WeightsRef(kind="random", directory=str(tmp_path))
    store = WeightStore(model_of(name), WeightsRef(kind="random"), 3)
    for piece in whole_model(store.model):
        store.load(piece)
    for prompt_tokens, new_tokens in ((11, 3), (2, 5)):
        spec = RunSpec(
            cluster=LAPTOP,
            model=store.model,
            weights=weights,
            workload=Workload(prompt_tokens=prompt_tokens, new_tokens=new_tokens),
            strategy="single",
            seed=3,
        )
        theirs = transformers_outputs.compute(spec)["logits.0"]
        ours = generate(store, requests_of(spec)[0].tokens, new_tokens)
        assert relative_error(ours, theirs) < 1e-5


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_s_spec_written_as_a_config_is_read_as_the_same(name):
    model = model_of(name)
    written = json.loads(json.dumps(hf_config.config_of_spec(model)))
    assert hf_config.spec_of_config(name, written, "here") == model
