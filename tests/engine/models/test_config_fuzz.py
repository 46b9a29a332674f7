"""Any config.json of a known family is refused with one sentence, or computed as `transformers` computes it.

The cases here are few, so that the suite stays quick. `python -m tests.support.config_fuzz` tries thousands.
"""

import json
from collections import Counter

import pytest

from tests.support import config_fuzz
from tests.support.config_fuzz import outcome_of

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 40,
    "vocab_size": 61,
    "max_position_embeddings": 64,
}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
GPT2 = {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 61, "n_positions": 64}
VIT = {
    "model_type": "vit",
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "image_size": 12,
    "patch_size": 4,
}
TOWER = {"model_type": "clip_vision_model", **{key: VIT[key] for key in VIT if key != "model_type"}}
LLAVA = {
    "model_type": "llava",
    "image_token_index": 60,
    "text_config": LLAMA,
    "vision_config": TOWER,
}


def test_drawn_configs_are_refused_or_computed_as_the_library_computes_them():
    tried = config_fuzz.cases(150, seed=5)
    assert not [case for case in config_fuzz.wrong(tried)]
    assert min(Counter(case.outcome for case in tried)[outcome] for outcome in ("refused", "equal")) > 30


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        *(
            (LLAVA | {"text_config": LLAMA | {"model_type": kind}}, "text_config.model_type: '" + kind)
            for kind in ("qwen2", "qwen3", "gemma", "mistral")
        ),
        (
            LLAMA | {"rope_parameters": {"rope_theta": 5e5}, "rope_scaling": LLAMA3},
            "rope_scaling: is .* and rope_parameters, which means the same, is",
        ),
        (VIT | {"is_causal": True}, "is_causal: true is not supported, expected false"),
        (LLAVA | {"is_causal": True}, "is_causal: true is not supported, expected no such key"),
        (LLAMA | {"is_causal": False}, "is_causal: false is not supported, expected true"),
        (LLAMA | {"sliding_window": 4}, "sliding_window: 4 is not supported, expected null"),
        (LLAMA | {"layer_types": ["sliding_attention"] * 2}, "layer_types: .* is not supported"),
        (
            LLAMA | {"per_layer_config": {"0": {"hidden_act": "relu"}}},
            "per_layer_config: .* is not supported",
        ),
        (LLAMA | {"configuration_files": ["config.4.0.0.json"]}, "configuration_files: .* is not supported"),
        (LLAVA | {"architectures": ["LlavaModel"]}, "architectures: .* is not supported, expected 'Llava"),
        (LLAMA | {"quantization_config": {}}, "quantization_config: {} is not supported, expected null"),
        (LLAMA | {"dtype": "int8"}, "dtype: got 'int8', expected 'float32' or 'float16'"),
        (LLAVA | {"vision_config": TOWER | {"dtype": "x"}}, "vision_config, dtype: got 'x'"),
        (
            LLAMA | {"model_type": "gemma2", "attn_implementation": "sdpa"},
            "attn_implementation: 'sdpa' is not supported, expected null or 'eager'",
        ),
        (VIT | {"num_labels": 0}, "num_labels: 0 gives 0 classes"),
        (GPT2 | {"hidden_size": 64}, "hidden_size: is 64, and n_embd, which means the same, is 32"),
        (GPT2 | {"n_embd": 50, "n_head": 6}, "n_embd: 50 is no multiple of the 6 attention heads"),
        (LLAMA | {"hidden_size": 50, "num_attention_heads": 6}, "hidden_size: 50 is no multiple of the 6"),
        (LLAMA | {"head_dim": 7}, "head_dim: 7 is odd, and rotary positions need pairs"),
        (LLAMA | {"pad_token_id": 61}, "pad_token_id: 61 is not supported, expected null or one of the 61"),
    ],
)
def test_what_would_be_another_model_is_refused_by_the_name_of_its_key(config, sentence, tmp_path):
    import re

    outcome, said = outcome_of(config, tmp_path)
    assert outcome == "refused" and re.search(sentence, said)


@pytest.mark.parametrize(
    "config",
    [
        LLAMA | {"original_max_position_embeddings": 16, "rope_scaling": LLAMA3, "rope_theta": 500.0},
        LLAMA
        | {
            "original_max_position_embeddings": 16,
            "rope_parameters": LLAMA3 | {"original_max_position_embeddings": 32, "rope_theta": 500.0},
        },
        LLAMA | {"rope_scaling": LLAMA3 | {"rope_theta": 100.0}, "rope_theta": 500.0},
        LLAMA | {"rope_scaling": LLAMA3, "rope_parameters": LLAMA3},
        LLAVA | {"hidden_size": 64, "num_hidden_layers": 1, "hidden_act": "gelu", "rms_norm_eps": 0.5},
        LLAVA | {"tie_word_embeddings": True},
        LLAVA | {"text_config": LLAMA | {"tie_word_embeddings": True}},
        LLAVA | {"vision_feature_layer": -1},
        GPT2 | {"activation_function": "gelu_fast", "n_inner": None},
        VIT | {"num_labels": 3, "id2label": {"0": "a", "1": "b"}},
        LLAMA | {"rms_norm_epsilon": 0.5, "logit_scale": 2.0, "torch_dtype": "float16"},
    ],
)
def test_what_is_read_from_several_keys_is_what_the_library_makes_of_them(config, tmp_path):
    assert outcome_of(config, tmp_path) == ("equal", "")


def test_random_weights_are_compared_with_the_library_s_own_reading_of_the_file(tmp_path, monkeypatch):
    """If a key were read wrongly, the reference would not repeat the mistake."""
    from engine.models.families import rope

    monkeypatch.setitem(rope.KINDS, "linear", lambda *ignored: None)
    config = LLAMA | {"rope_parameters": {"rope_type": "linear", "factor": 4.0}}
    outcome, _ = outcome_of(config, tmp_path)
    assert outcome == "different"


def test_a_file_that_was_changed_after_the_run_was_made_is_not_used(tmp_path):
    from engine.domain.errors import SpecError
    from engine.models import catalogue
    from engine.models.reference import transformers_outputs
    from tests.support.one_device import spec_of

    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    model, weights = catalogue.resolve(str(tmp_path), "random")
    spec = spec_of("tiny-llama").model_copy(update={"model": model, "weights": weights})
    (tmp_path / "config.json").write_text(json.dumps(LLAMA | {"rms_norm_eps": 0.25}))
    with pytest.raises(SpecError, match=r"config\.json: norm_eps is 0\.25, and this run's model has 1e-06"):
        transformers_outputs.library_model(spec)
