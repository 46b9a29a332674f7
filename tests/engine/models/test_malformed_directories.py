"""Broken model directories are refused with one sentence that names the file and the key or tensor."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import topologies
from engine.cli import main
from engine.cli.command import Environment
from engine.cli.commands import COMMANDS
from engine.domain.errors import SpecError
from engine.models import catalogue
from engine.models.families.hf_config import config_of_spec, spec_of_config
from engine.models.families.registry import FAMILIES
from engine.models.inputs import text
from engine.models.reference import transformers_outputs
from tests.support.config_fuzz import MALFORMED, kinds_of
from tests.support.one_device import model_of, spec_of

SMALLEST = {catalogue.resolve(name)[0].family: name for name in catalogue.smallest_models()}
NOT_NUMBERS = (float("nan"), float("inf"))
ENVIRONMENT = Environment(topologies.load, topologies.names, topologies.presets)


def refusal(config):
    """The sentence with which a config is refused, "" if it is taken."""
    try:
        spec_of_config("mine", config, "config.json")
    except SpecError as error:
        return str(error)
    return ""


def one_sentence(said):
    return "\n" not in said and said.endswith(".") and said.startswith(("config.json", "model_type"))


@pytest.mark.parametrize("name", [family.name for family in FAMILIES])
def test_every_key_with_every_malformed_value_is_taken_or_refused_with_one_sentence(name):
    config = json.loads(json.dumps(config_of_spec(model_of(SMALLEST[name]))))
    for key in ["model_type", *kinds_of(name)]:
        for value in (*MALFORMED, *NOT_NUMBERS):
            said = refusal(config | {key: value})
            assert not said or one_sentence(said), said
            if said and key != "model_type":
                named = (key, "attention heads", "multiple")
                assert any(name in said for name in named), (key, value, said)


@pytest.mark.parametrize("part", ["text_config", "vision_config"])
def test_malformed_values_inside_a_nested_config_are_named_with_their_place(part):
    config = json.loads(json.dumps(config_of_spec(model_of(SMALLEST["llava"]))))
    for key in config[part]:
        for value in (*MALFORMED, *NOT_NUMBERS):
            said = refusal(config | {part: config[part] | {key: value}})
            assert not said or (one_sentence(said) and (part in said or "dtype" in said)), said


@pytest.mark.parametrize("place", ["rope_parameters", "rope_scaling"])
def test_malformed_rotary_settings_are_named(place):
    config = config_of_spec(model_of(SMALLEST["llama"]))
    config.pop("rope_parameters")
    full = {
        "rope_type": "llama3",
        "rope_theta": 1e4,
        "factor": 2.0,
        "low_freq_factor": 1,
        "high_freq_factor": 2,
    }
    full["original_max_position_embeddings"] = 16
    assert not refusal(config | {place: full})
    for key in full:
        for value in (*MALFORMED, *NOT_NUMBERS):
            said = refusal(config | {place: full | {key: value}})
            assert not said or (one_sentence(said) and f"{place}" in said), said


@pytest.mark.parametrize(
    ("name", "key"),
    [
        (family.name, family.key_of[field])
        for family in FAMILIES
        for field in ("num_layers", "hidden_size", "num_heads", "norm_eps", "activation")
        if field in family.key_of
    ],
)
def test_a_size_that_is_no_number_is_refused_by_the_config_s_own_name_of_it(name, key):
    config = config_of_spec(model_of(SMALLEST[name]))
    for value in (None, [], {}, True, -1):
        assert refusal(config | {key: value}).startswith(f"config.json, {key}: ")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ('{"model_type": "gpt2", "n_layer": null}', "n_layer: got null, expected an integer"),
        ('{"model_type": "gpt2", "n_embd": 50, "n_head": 6}', "n_embd: 50 is no multiple of the 6"),
        ('{"model_type": ["gpt2"]}', "model_type: got ['gpt2'], expected the name of a family"),
        (
            '{"model_type": "gpt2", "layer_norm_epsilon": NaN}',
            "layer_norm_epsilon: got nan, expected a number",
        ),
        ('{"model_type": "llava", "text_config": [1]}', "text_config: got [1], expected an object"),
        ("[1, 2]", "holds a list, expected a JSON object"),
        ("[" * 100_000, "cannot be read as JSON"),
        ("\x00", "cannot be read as JSON"),
    ],
)
def test_the_command_line_refuses_a_broken_config_with_one_line(written, words, tmp_path, capsys):
    (tmp_path / "config.json").write_text(written)
    command = ["predict", "lab-3", "--model", str(tmp_path), "--weights", "random", "--strategy", "gpipe"]
    assert main(command, COMMANDS, ENVIRONMENT) == 2
    said = capsys.readouterr()
    assert not said.out and len(said.err.strip().splitlines()) == 1
    assert words in said.err and str(tmp_path / "config.json") in said.err


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A directory of tiny-gpt2 with everything in it."""
    folder = tmp_path_factory.mktemp("whole")
    transformers_outputs.library_model(spec_of("tiny-gpt2")).save_pretrained(folder)
    return folder


@pytest.fixture
def directory(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "model")


def changed(directory, change):
    file = directory / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


NAME = "transformer.h.1.mlp.c_fc.weight"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors: tensors.pop(NAME), f"has no tensor {NAME}"),
        (
            lambda tensors: tensors.update({NAME: torch.zeros(32, 95)}),
            r"shape \[32, 95\], expected \[32, 96\]",
        ),
        (
            lambda tensors: tensors.update({NAME: torch.zeros(32, 96, dtype=torch.int8)}),
            "stored as I8, expected",
        ),
        (
            lambda tensors: tensors.update({"lm_head.weight": torch.zeros(101, 32)}),
            "an lm_head.weight other than the table of embeddings, and config.json says tie_word_embeddings",
        ),
    ],
)
def test_weights_of_another_model_are_refused_before_anything_is_loaded(directory, change, words):
    changed(directory, change)
    with pytest.raises(SpecError, match=words):
        catalogue.resolve(str(directory))
    assert catalogue.resolve(str(directory), "random")[0].num_layers == 2


def test_a_tensor_that_is_there_under_two_names_is_refused(directory):
    changed(directory, lambda t: t.update({"wte.weight": torch.zeros(101, 32)}))
    with pytest.raises(
        SpecError, match=r"has transformer\.wte\.weight and wte\.weight, which mean one tensor"
    ):
        catalogue.resolve(str(directory))


def test_a_tied_table_that_a_file_has_twice_is_taken(directory):
    changed(directory, lambda t: t.update({"lm_head.weight": t["transformer.wte.weight"].clone()}))
    assert catalogue.resolve(str(directory))[1].kind == "directory"


def test_a_head_of_its_own_is_computed_with_when_the_config_does_not_tie(directory):
    changed(directory, lambda t: t.update({"lm_head.weight": torch.randn(101, 32)}))
    file = directory / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"tie_word_embeddings": False}))
    assert not catalogue.resolve(str(directory))[0].tied_head


@pytest.mark.parametrize("kept", [0, 5, 60, -7])
def test_a_file_that_was_cut_off_is_refused(directory, kept):
    file = directory / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(SpecError, match=r"model\.safetensors: is no safetensors file: .*\.") as refused:
        catalogue.resolve(str(directory))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "head", [b"[]", b'{"a": 1}', b'{"a": {"dtype": "F32", "shape": ["x"], "data_offsets": [0, 4]}}', b"{"]
)
def test_a_header_that_describes_nothing_is_refused(directory, head):
    file = directory / "model.safetensors"
    file.write_bytes(len(head).to_bytes(8, "little") + head)
    with pytest.raises(SpecError, match="is no safetensors file: "):
        catalogue.resolve(str(directory))


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (
            {"weight_map": {"a": "../outside.safetensors"}},
            r"names \.\./outside\.safetensors, which is no file",
        ),
        ({"weight_map": {"a": "/etc/passwd"}}, r"names /etc/passwd, which is no file of the directory"),
        ({"weight_map": {"a": ".."}}, "which is no file of the directory"),
        ({"weight_map": {"a": 5}}, "names 5, which is no file"),
        ({"weight_map": ["a"]}, "weight_map: expected an object"),
        ({}, "weight_map: expected an object"),
    ],
)
def test_an_index_names_files_of_its_own_directory(directory, index, words):
    (directory.parent / "outside.safetensors").write_bytes(b"")
    (directory / "model.safetensors").unlink()
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(SpecError, match=words):
        catalogue.resolve(str(directory))


@pytest.mark.parametrize("written", ["", '{"model": null}', '{"version": "1.0", "model": {"type": "x"}}'])
def test_a_broken_tokenizer_is_refused_with_its_file(directory, written):
    (directory / "tokenizer.json").write_text(written)
    model, weights = catalogue.resolve(str(directory))
    with pytest.raises(SpecError, match=r"transformers makes no tokenizer of it: .*\.") as refused:
        text.encode(model, weights, "hello")
    assert "\n" not in str(refused.value)
