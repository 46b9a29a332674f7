"""Models by name, by directory, from a config; text and prompts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.domain.errors import SpecError
from engine.domain.spec import WeightsRef
from engine.models import catalogue
from engine.models.families import hf_config
from engine.models.inputs import prompts
from engine.models.inputs.prompts import requests_of
from engine.models.inputs.text import decode, encode
from engine.models.reference import transformers_outputs
from tests.support.one_device import TINY, spec_of

# Parameters as counted by transformers (without BERT's pooler) or stated by the models' authors.
PARAMETERS = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "bert-base": 108_891_648,
    "bert-large": 334_092_288,
    "tinyllama-42m": 41_689_600,
    "mixtral-8x7b": 46_702_792_704,
    "qwen3-30b-a3b": 30_532_122_624,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "qwen1.5-moe-a2.7b": 14_315_784_192,
}
GPT2 = {"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 9, "n_positions": 16}
LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 1,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 12,
    "vocab_size": 9,
    "max_position_embeddings": 16,
}
PHI3 = LLAMA | {"model_type": "phi3", "hidden_size": 32, "pad_token_id": 0}
LONGROPE = {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
OPT = {
    "model_type": "opt",
    "num_hidden_layers": 1,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "ffn_dim": 12,
    "vocab_size": 9,
    "max_position_embeddings": 16,
}


def test_every_row_resolves_to_the_model_it_describes():
    rows = catalogue.rows()
    assert {"demo-lm", "minilm", "gpt2", "bert-large", "tinyllama-42m", *TINY} <= {row.name for row in rows}
    for row in rows:
        model, weights = catalogue.resolve(row.name)
        assert (model.name, model.num_layers, model.causal) == (row.name, row.num_layers, row.causal)
        assert weights.kind == ("directory" if row.trained else "random")
        assert row.source and row.weight_bytes == row.num_parameters * model.element_bytes


@pytest.mark.parametrize(("name", "count"), PARAMETERS.items())
def test_models_have_as_many_parameters_as_published(name, count):
    assert {row.name: row.num_parameters for row in catalogue.rows()}[name] == count


@pytest.mark.parametrize("row", [row.name for row in catalogue.rows()])
def test_a_spec_survives_the_way_through_a_config(row):
    model = catalogue.resolve(row)[0]
    config = json.loads(json.dumps(hf_config.config_of_spec(model)))
    again = hf_config.spec_of_config(model.name, config, "here")
    assert again == model.model_copy(update={"source": ""})


def test_trained_models_can_be_run_with_random_weights():
    weights = catalogue.resolve("minilm", "random")[1]
    assert weights.kind == "random" and (Path(weights.directory) / "config.json").is_file()


def test_a_name_with_a_directory_of_weights_uses_them(tmp_path):
    transformers_outputs.library_model(spec_of("tiny-llama")).save_pretrained(tmp_path)
    model, weights = catalogue.resolve("tiny-llama", str(tmp_path))
    assert (model.name, weights.directory) == ("tiny-llama", str(tmp_path))
    assert catalogue.resolve(str(tmp_path))[0].num_kv_heads == 2
    with pytest.raises(SpecError, match=r"family is llama, and tiny-gpt2 has gpt2"):
        catalogue.resolve("tiny-gpt2", str(tmp_path))


def test_unknown_names_and_missing_directories_say_what_there_is(tmp_path):
    with pytest.raises(SpecError, match=r"neither a directory, a GGUF file nor one of .*demo-lm.*gpt2"):
        catalogue.resolve("gpt-17")
    with pytest.raises(SpecError, match="no such model directory"):
        catalogue.resolve("gpt2", str(tmp_path / "nowhere"))
    with pytest.raises(SpecError, match=r"config\.json: no such file"):
        catalogue.resolve(str(tmp_path))


def test_a_directory_with_only_pickles_is_refused_at_once(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(GPT2))
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(SpecError, match="pickle"):
        catalogue.resolve(str(tmp_path))
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(SpecError, match=r"neither model\.safetensors nor"):
        catalogue.resolve(str(tmp_path))
    assert catalogue.resolve(str(tmp_path), "random")[0].num_layers == 2


@pytest.mark.parametrize(
    ("config", "match"),
    [
        (GPT2 | {"auto_map": {"AutoModel": "code.Model"}}, "remote code, which is never run"),
        ({"n_layer": 2}, "config.json, model_type: missing, expected the name of a family"),
        (GPT2 | {"model_type": "bloom"}, "model_type bloom: no such family, expected one of gpt2, opt, "),
        (GPT2 | {"model_type": "lfm2"}, "many of its layers are short convolutions, .* expected one of gpt2"),
        (
            {"model_type": "deepseek_v3", "quantization_config": {"quant_method": "fp8"}},
            "deepseek_v3: its keys and values are kept",  # whatever its weights are stored in
        ),
        (
            GPT2 | {"auto_map": {"AutoModel": "code.Model"}, "model_type": "bloom"},
            "model_type bloom: no such family",
        ),
        (GPT2 | {"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx: true is not supported"),
        (GPT2 | {"activation_function": "mish"}, "activation_function: 'mish' is not one of gelu"),
        (GPT2 | {"n_layer": -1}, "n_layer: -1 is not between 1 and 10000"),
        (
            GPT2 | {"quantization_config": {"quant_method": "gptq", "bits": 4}},
            "of GPTQ are not read: take the model in bfloat16 with --weight-bits 4, or, for random weights",
        ),
        (GPT2 | {"quantization_config": {"quant_method": "fp8"}}, "of FP8 .* --weight-bits 8"),
        (GPT2 | {"quantization_config": {"quant_method": "mxfp4"}}, "of MXFP4 .* --weight-bits 4"),
        (
            GPT2 | {"quantization": {"group_size": 64, "bits": 6}},
            "quantization: .* of MLX .*--weight-bits 8",
        ),
        (
            LLAMA | {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
            r"rope_scaling\.low_freq_factor: is missing",
        ),
        (LLAMA | {"rope_scaling": LLAMA3 | {"high_freq_factor": 1.0}}, "low_freq_factor 1.0 is not below"),
        (
            LLAMA | {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
            "rope_scaling.rope_type: 'dynamic' is not",
        ),
        (OPT | {"do_layer_norm_before": False}, "do_layer_norm_before: false is not supported"),
        (
            OPT | {"word_embed_proj_dim": 4},
            "word_embed_proj_dim: 4 is not supported, expected hidden_size's 8",
        ),
        (
            LLAMA | {"rope_parameters": {"rope_type": "yarn"}},
            r"rope_parameters\.factor: is missing, and scaling of type 'yarn' needs it",
        ),
        (
            LLAMA | {"model_type": "mistral", "sliding_window": 1},
            "sliding_window: 1 is not .* at least 2 keys",
        ),
        (
            PHI3 | {"rope_scaling": LONGROPE | {"short_factor": [1.0] * 7}},
            "rope_scaling.short_factor: got .*, expected 8 numbers above 0",
        ),
        (
            {"model_type": "gemma3", "text_config": {"model_type": "llama"}},
            "text_config.model_type: 'llama' is not supported, expected 'gemma3_text'",
        ),
        (PHI3 | {"rope_scaling": LONGROPE | {"type": "yarn"}}, "rope_type: 'yarn' is not supported"),
        (
            PHI3 | {"partial_rotary_factor": 0.6},
            "partial_rotary_factor: with 0.6, 9 of a head's 16 numbers turn",
        ),
        (
            LLAMA | {"model_type": "gemma3_text", "head_dim": 8, "rope_parameters": {"rope_theta": 5e5}},
            "rope_parameters.rope_theta: 500000.0 is not supported, expected full_attention and sliding",
        ),
        (
            LLAMA | {"model_type": "qwen2", "num_key_value_heads": 2, "layer_types": ["sliding_attention"]},
            "layer_types: 'sliding_attention' is not supported, expected use_sliding_window",
        ),
        (
            LLAMA | {"model_type": "smollm3", "pad_token_id": 0, "no_rope_layers": []},
            "no_rope_layers: has 0 entries, expected one for each of 1 layers",
        ),
        (LLAMA | {"num_key_value_heads": 3}, "num_key_value_heads: 3 does not divide 2 attention heads"),
    ],
)
def test_configs_that_cannot_be_run_are_refused_with_the_reason(config, match, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(SpecError, match=match):
        catalogue.resolve(str(tmp_path), "random")


def test_a_config_that_is_no_json_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(SpecError, match=r"config\.json: cannot be read as JSON"):
        catalogue.resolve(str(tmp_path))


def test_rotary_base_is_read_from_both_its_places():
    for config in (LLAMA | {"rope_theta": 5e5}, LLAMA | {"rope_parameters": {"rope_theta": 5e5}}):
        assert hf_config.spec_of_config("x", config, "here").rope_theta == 5e5


def test_rope_scaling_is_read_from_all_its_places():
    older = {"type" if key == "rope_type" else key: value for key, value in LLAMA3.items()}
    for config in ({"rope_scaling": LLAMA3}, {"rope_scaling": older}, {"rope_parameters": LLAMA3}):
        scaling = hf_config.spec_of_config("x", LLAMA | config, "here").rope_scaling
        assert (scaling.factor, scaling.low_freq_factor, scaling.high_freq_factor) == (8, 1, 4)
        assert scaling.original_max_positions == 8192
    assert hf_config.spec_of_config("x", LLAMA | {"rope_scaling": None}, "here").rope_scaling is None


def test_an_opt_without_biases_has_none_anywhere():
    model = hf_config.spec_of_config("x", OPT | {"enable_bias": False, "word_embed_proj_dim": 8}, "here")
    assert not model.attention_bias and not model.ffn_bias and model.position_offset == 2


def test_text_survives_the_demo_model_s_tokenizer():
    model, weights = catalogue.resolve("demo-lm")
    text = "The with statement is used to wrap the execution of a block."
    ids = encode(model, weights, text)
    assert 5 < len(ids) < len(text) and decode(model, weights, ids) == text


def test_an_encoder_s_text_gets_its_special_tokens_and_is_never_cut():
    model, weights = catalogue.resolve("minilm")
    ids = encode(model, weights, "hello " * 300)
    assert ids[0] == 101 and ids[-1] == 102 and len(ids) == 302


def test_random_weights_take_bytes_and_show_token_ids():
    model, weights = catalogue.resolve("tiny-gpt2")
    assert encode(model, weights, "ab{") == (97, 98, 123 % 101)
    assert decode(model, weights, (5, 60)) == " 5 60"


def test_trained_weights_without_a_tokenizer_cannot_take_text(tmp_path):
    model = catalogue.resolve("tiny-gpt2")[0]
    weights = WeightsRef(kind="directory", directory=str(tmp_path))
    with pytest.raises(SpecError, match=r"tokenizer\.json: no such file.*--prompt-tokens"):
        encode(model, weights, "hello")


def test_a_tokenizer_of_another_model_is_refused():
    weights = catalogue.resolve("minilm")[1]
    with pytest.raises(SpecError, match="belongs to another model"):
        encode(catalogue.resolve("tiny-bert")[0], weights, "hello")


def test_requests_with_text_share_it_and_random_ones_differ():
    same = requests_of(spec_of("demo-lm", prompt="An expression is", requests=3))
    assert [request.index for request in same] == [0, 1, 2] and len({r.tokens for r in same}) == 1
    spec = spec_of("demo-lm", prompt_tokens=9, requests=3)
    different = requests_of(spec)
    assert len({r.tokens for r in different}) == 3 and {len(r.tokens) for r in different} == {9}
    assert requests_of(spec) == different
    assert requests_of(spec.model_copy(update={"seed": 12})) != different


@pytest.mark.parametrize(
    ("name", "workload", "match"),
    [
        ("tiny-bert", {"prompt_tokens": 4, "new_tokens": 2}, "generates nothing: give 0"),
        ("tiny-gpt2", {"prompt_tokens": 60, "new_tokens": 8}, "68 positions, and tiny-gpt2 has 64"),
        ("tiny-gpt2", {"prompt_tokens": 4, "prompt": "x"}, "exactly one of prompt and prompt_tokens"),
        ("tiny-gpt2", {"prompt": ""}, "no tokens"),
    ],
)
def test_workloads_that_a_model_cannot_do_are_refused(name, workload, match):
    with pytest.raises(SpecError, match=match):
        requests_of(spec_of(name, **workload))


def test_a_prompt_longer_than_the_model_reads_is_refused_before_any_of_it_is_drawn(monkeypatch):
    monkeypatch.setattr(prompts, "Random", None)  # what draws ids fails otherwise
    with pytest.raises(SpecError, match="68 positions, and tiny-gpt2 has 64"):
        requests_of(spec_of("tiny-gpt2", prompt_tokens=60, new_tokens=8))


def test_prediction_s_part_of_the_models_loads_no_torch():
    code = (
        "import sys; from engine.models import catalogue; from engine.models.families import hf_config; "
        "from engine.models.inputs import prompts, text; "
        "from engine.models.reference import transformers_outputs; "
        "catalogue.resolve('minilm'); catalogue.rows(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
